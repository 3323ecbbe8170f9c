package report

import "ingot/model"

// Mirrored is what the status branch keeps of a server's record, for ReadBranch to read
// back: all but the marks of attempts, which would make a commit of every failure. Texts
// are bounded.
func Mirrored(rec *model.ServerRecord) *model.ServerRecord {
	m := *rec
	m.Power, m.Life.LifeScratch, m.Settings.SettingsObserved = model.RecordPower{}, model.LifeScratch{}, model.SettingsObserved{}
	m.Boot.BootObserved, m.Boot.BootScratch = model.BootObserved{}, model.BootScratch{}
	if rec.Boot.Problem != nil {
		p := *rec.Boot.Problem
		p.ProblemScratch = model.ProblemScratch{}
		p.Message = shownText(p.Message)
		m.Boot.Problem = &p
	}
	if rec.Requests.Operation != nil {
		o := *rec.Requests.Operation
		o.Message = shownText(o.Message)
		m.Requests.Operation = &o
	}
	if rec.Doubt != nil {
		d := *rec.Doubt
		d.Message = shownText(d.Message)
		m.Doubt = &d
	}
	m.Life.Message, m.Disks.Wiped = shownText(m.Life.Message), shownWipes(m.Disks.Wiped)
	return &m
}

// mirroredBMC is the same of a BMC's record.
func mirroredBMC(rec *model.BMCRecord) *model.BMCRecord {
	m := *rec
	m.BMCScratch = model.BMCScratch{}
	return &m
}

// mirrorFleet is what the status branch keeps of the fleet's record: all of it that can
// be read back. Of lists that are too long the rest is decided upon anew, should the
// record ever be needed: what is held is held again.
func mirrorFleet(rec model.FleetRecord) model.FleetRecord {
	r := room{maxShownSteps}
	fits := func(d *model.Disruption) bool { // whole or not at all, for it is compared
		return r.takes(entryOverhead + len(d.Value) + len(d.Server) + len(d.Claim) + len(d.Revision))
	}
	rec.Holds = kept(rec.Holds, func(h *model.GuardHold) bool {
		h.Steps = kept(h.Steps, fits)
		return true
	})
	r = room{maxShownSteps}
	rec.ApprovedSteps = kept(rec.ApprovedSteps, fits)
	r = room{maxShownSteps}
	rec.Done = lastKept(rec.Done, fits)
	r = room{maxShownProblemBytes}
	rec.Absent = kept(rec.Absent, func(a *model.Absence) bool {
		return r.takes(entryOverhead + len(a.Blob) + len(a.Token) + len(a.Identity.String()))
	})
	r = room{maxShownProblemBytes} // as long as one is listed, no server is taken for new
	rec.Unreadable = kept(rec.Unreadable, func(u *model.UnreadableRecord) bool {
		return r.takes(entryOverhead + len(u.Server) + len(u.Claim) + len(u.Token))
	})
	r = room{maxShownProblemBytes} // one that is left out is merely absent after a lost store
	rec.Removed = kept(rec.Removed, func(o *model.RemovedObject) bool {
		return r.takes(entryOverhead + len(o.Identity.String()) + len(o.Revision))
	})
	return rec
}
