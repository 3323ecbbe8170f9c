package model

// StoredServer is a server's record as the store keeps it, with observations and scratch.
type StoredServer struct {
	Decided  ServerRecord `json:"decided"`
	Observed struct {
		PowerObserved
		BootObserved
		SettingsObserved
	} `json:"observed,omitzero"`
	Scratch struct {
		LifeScratch
		PowerScratch
		BootScratch
		BootProblem ProblemScratch `json:"bootProblem,omitzero"`
	} `json:"scratch,omitzero"`
}

// Stored is the record as the store keeps it.
func (r *ServerRecord) Stored() (s StoredServer) {
	s.Decided = *r
	o, c := &s.Observed, &s.Scratch
	o.PowerObserved, o.BootObserved, o.SettingsObserved = r.Power.PowerObserved, r.Boot.BootObserved, r.Settings.SettingsObserved
	c.LifeScratch, c.PowerScratch, c.BootScratch = r.Life.LifeScratch, r.Power.PowerScratch, r.Boot.BootScratch
	if r.Boot.Problem != nil {
		c.BootProblem = r.Boot.Problem.ProblemScratch
	}
	return s
}

// Record is the record that was stored as s.
func (s StoredServer) Record() *ServerRecord {
	r, o, c := &s.Decided, &s.Observed, &s.Scratch
	r.Power = RecordPower{o.PowerObserved, c.PowerScratch}
	r.Boot.BootObserved, r.Settings.SettingsObserved = o.BootObserved, o.SettingsObserved
	r.Life.LifeScratch, r.Boot.BootScratch = c.LifeScratch, c.BootScratch
	if r.Boot.Problem != nil {
		r.Boot.Problem.ProblemScratch = c.BootProblem
	}
	return r
}

// StoredBMC is a BMC's record as the store keeps it.
type StoredBMC struct {
	Decided BMCRecord  `json:"decided"`
	Scratch BMCScratch `json:"scratch,omitzero"`
}

// Stored is the record as the store keeps it.
func (r *BMCRecord) Stored() StoredBMC { return StoredBMC{*r, r.BMCScratch} }

// Record is the record that was stored as s.
func (s StoredBMC) Record() *BMCRecord {
	s.Decided.BMCScratch = s.Scratch
	return &s.Decided
}
