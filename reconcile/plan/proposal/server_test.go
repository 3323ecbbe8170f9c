package proposal_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// The parts of a server are read again with its power: when they could not be
// seen before, when some failed, and once a day.
func TestPartsAreReadAgain(t *testing.T) {
	const name = model.ServerName("s1")
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	spread := time.Duration(policy.Jitter(name) * float64(reading.PartsEvery))
	its := now.Add(-spread).Truncate(reading.PartsEvery).Add(spread) // its time of the day
	ago := now.Add(-time.Minute)
	if !its.Before(ago) || now.Sub(its) < reading.PartsLate {
		t.Fatalf("this test needs a server whose time is earlier than %s", its)
	}
	whole := &model.Inventory{
		Processors: []model.Processor{{ID: "1"}}, MemoryBytes: 1,
		Storages: []model.Storage{{Drives: []model.Drive{{Name: "1"}}}}, MACAddresses: []string{"02:00:00:00:00:01"},
	}
	noDrives := &model.Inventory{Processors: whole.Processors, MemoryBytes: 1, MACAddresses: whole.MACAddresses}
	fails := &model.Inventory{Processors: whole.Processors, MemoryBytes: 1, Problems: []string{"memory: 500"}}
	readAt := func(at time.Time, ons int, on bool, unread int) reading.State {
		return reading.State{Parts: reading.Parts{InventoryAt: at, InventoryOn: on, Unread: unread}, Ons: ons}
	}
	never := readAt(time.Time{}, 9, false, 0)
	noneUntil := func(at time.Time) reading.State {
		return reading.State{Ons: 9, Parts: reading.Parts{InventoryAt: its.Add(-time.Hour), PartsAfter: at}}
	}
	for title, tt := range map[string]struct {
		inv     *model.Inventory
		power   model.Power
		reading reading.State
		at      time.Time // zero = now
		started time.Time
		blocked bool // by Secure Boot
		due     bool
	}{
		"that were read today are not":                                      {inv: whole, reading: readAt(ago, reading.PartsOns, true, 0)},
		"that were read before its time of the day are":                     {inv: whole, reading: readAt(its.Add(-time.Minute), reading.PartsOns, true, 0), due: true},
		"of which none lacked while it was off are not, once it runs":       {inv: whole, reading: readAt(ago, reading.PartsOns, false, 0)},
		"without drives while it was off are, once it runs":                 {inv: noDrives, reading: readAt(ago, reading.PartsOns, false, 0), due: true},
		"but not once it is on alone":                                       {inv: noDrives, reading: readAt(ago, reading.PartsOns-1, false, 0)},
		"nor while its firmware tests itself":                               {inv: noDrives, reading: reading.State{Parts: reading.Parts{InventoryAt: ago}, Ons: reading.PartsOns, POST: true}},
		"nor while it is off":                                               {inv: noDrives, power: model.PowerOff, reading: readAt(ago, 0, false, 0)},
		"of which some failed are not at once":                              {inv: fails, reading: readAt(now.Add(-reading.PartsRetry+1), 9, true, 1)},
		"of which some failed are after a while":                            {inv: fails, reading: readAt(now.Add(-reading.PartsRetry), 9, true, 1), due: true},
		"of which some failed three times are after a longer while":         {inv: fails, reading: readAt(now.Add(-4*reading.PartsRetry+1), 9, true, 3)},
		"of which some always fail are not given up":                        {inv: fails, reading: readAt(now.Add(-reading.PartsRetryMax), 9, true, 1e9), due: true},
		"of which some failed before the start are, in a while":             {inv: fails, reading: never, started: now.Add(-reading.PartsLate), due: true},
		"but not those of a whole fleet at once":                            {inv: fails, reading: never, started: ago},
		"of which none could be had are not with each reading of the power": {inv: whole, reading: noneUntil(now.Add(1))},
		"of which none could be had are after a while":                      {inv: whole, reading: noneUntil(now), due: true},
		"that were not read since the start are at its time of the day":     {inv: whole, reading: never, at: its.Add(time.Hour), due: true},
		"that were not read since the start are not at all others":          {inv: whole, reading: never},
		"of which none was ever shown are, once it runs":                    {inv: &model.Inventory{}, reading: readAt(time.Time{}, reading.PartsOns, false, 0), due: true},
		"of which it shows none while it runs are not again":                {inv: &model.Inventory{}, reading: readAt(ago, reading.PartsOns, true, 0)},
		"that say that Secure Boot is in the way are, in a while":           {inv: whole, reading: readAt(now.Add(-reading.PartsRetry), 9, true, 0), blocked: true, due: true},
		"that say that Secure Boot is in the way are not at once":           {inv: whole, reading: readAt(now.Add(-reading.PartsRetry+1), 9, true, 0), blocked: true},
		"that were never read are left to what needs them":                  {reading: never},
	} {
		t.Run(title, func(t *testing.T) {
			o, rec := policy.Default(), &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: name}}
			s := &proposal.Server{
				Moment: &proposal.Moment{Now: now, Started: tt.started, Policy: &o}, Name: name, Record: rec, Reading: &tt.reading,
				Facts: &model.ServerFacts{Power: cmp.Or(tt.power, model.PowerOn), Inventory: tt.inv},
			}
			if !tt.at.IsZero() {
				s.Now = tt.at
			}
			if tt.blocked {
				s.Record.Boot.Problem = &model.BootProblem{Reason: model.ReasonSecureBootBlocksProbe}
			}
			got := s.Rest(proposal.Why{})
			if want := []proposal.Action{proposal.Inspect{Inventory: tt.due}}; !slices.Equal(got.Do, want) || !got.Routine {
				t.Errorf("done is %+v, want %+v", got.Do, want)
			}
		})
	}
}

func TestWhatConfiguresAMachine(t *testing.T) {
	for want, keys := range map[model.TicketThing][][]string{
		"":                   {{}, {"ignition"}, {"ignition", "ipxe-script"}},
		model.ThingCloudInit: {{"user-data"}, {"user-data", "ipxe-script"}},
		model.ThingScript:    {{"ipxe-script"}},
	} {
		for _, k := range keys {
			b := proposal.Boot{Secret: make(map[string]model.Sensitive)}
			for _, key := range k {
				b.Secret[key] = model.NewSensitive("x")
			}
			if got := b.Config(); got != want {
				t.Errorf("%v: %q, want %q", k, got, want)
			}
		}
	}
}
