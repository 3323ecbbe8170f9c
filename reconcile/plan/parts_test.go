package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// What was read of a server's parts is read again with its power: when they could not be
// seen before, when some failed, and once a day.
func TestPartsAreReadAgain(t *testing.T) {
	const name = "s1"
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	its := (&server{fleet: &fleet{in: &Input{Now: now}}, name: name}).partsTime() // of the day
	ago := now.Add(-time.Minute)
	if !its.Before(ago) || now.Sub(its) < proposal.PartsLate {
		t.Fatalf("this test needs a server whose time is earlier than %s", its)
	}
	whole := &model.Inventory{Processors: []model.Processor{{ID: "1"}}, MemoryBytes: 1}
	fails := &model.Inventory{Processors: whole.Processors, MemoryBytes: 1, Problems: []string{"memory: 500"}}
	reading := func(at time.Time, ons int, on bool, unread int) proposal.Reading {
		return proposal.Reading{InventoryAt: at, Ons: ons, InventoryOn: on, Unread: unread}
	}
	tests := map[string]struct {
		inv     *model.Inventory
		power   model.Power
		reading proposal.Reading
		at      time.Time // zero = now
		started time.Time
		blocked bool // by Secure Boot
		due     bool
	}{
		"that were read today are not":                      {inv: whole, reading: reading(ago, proposal.PartsOns, true, 0)},
		"that were read before its time of the day are":     {inv: whole, reading: reading(its.Add(-time.Minute), proposal.PartsOns, true, 0), due: true},
		"that were read while it was off are, once it runs": {inv: whole, reading: reading(ago, proposal.PartsOns, false, 0), due: true},
		"but not once it is on alone":                       {inv: whole, reading: reading(ago, proposal.PartsOns-1, false, 0)},
		"nor while its firmware tests itself":               {inv: whole, reading: proposal.Reading{InventoryAt: ago, Ons: proposal.PartsOns, POST: true}},
		"nor while it is off":                               {inv: whole, power: model.PowerOff, reading: reading(ago, 0, false, 0)},
		"of which some failed are not at once":              {inv: fails, reading: reading(now.Add(-proposal.PartsRetry+1), 9, true, 1)},
		"of which some failed are after a while":            {inv: fails, reading: reading(now.Add(-proposal.PartsRetry), 9, true, 1), due: true},
		"of which some failed three times are after a longer while": {
			inv: fails, reading: reading(now.Add(-4*proposal.PartsRetry+1), 9, true, 3),
		},
		"of which some always fail are not given up": {inv: fails, reading: reading(now.Add(-proposal.PartsRetryMax), 9, true, 1e9), due: true},
		"of which some failed before the start are, in a while": {
			inv: fails, reading: reading(time.Time{}, 9, false, 0), started: now.Add(-proposal.PartsLate), due: true,
		},
		"but not those of a whole fleet at once": {inv: fails, reading: reading(time.Time{}, 9, false, 0), started: ago},
		"of which none could be had are not with each reading of the power": {
			inv: whole, reading: proposal.Reading{Ons: 9, InventoryAt: its.Add(-time.Hour), PartsAfter: now.Add(1)},
		},
		"of which none could be had are after a while": {
			inv: whole, reading: proposal.Reading{Ons: 9, InventoryAt: its.Add(-time.Hour), PartsAfter: now}, due: true,
		},
		"that were not read since the start are at its time of the day": {
			inv: whole, reading: reading(time.Time{}, 9, false, 0), at: its.Add(time.Hour), due: true,
		},
		"that were not read since the start are not at all others": {inv: whole, reading: reading(time.Time{}, 9, false, 0)},
		"of which none was ever shown are, once it runs":           {inv: &model.Inventory{}, reading: reading(time.Time{}, proposal.PartsOns, false, 0), due: true},
		"of which it shows none while it runs are not again":       {inv: &model.Inventory{}, reading: reading(ago, proposal.PartsOns, true, 0)},
		"that say that Secure Boot is in the way are, in a while":  {inv: whole, reading: reading(now.Add(-proposal.PartsRetry), 9, true, 0), blocked: true, due: true},
		"that say that Secure Boot is in the way are not at once":  {inv: whole, reading: reading(now.Add(-proposal.PartsRetry+1), 9, true, 0), blocked: true},
		"that were never read are left to what needs them":         {reading: reading(time.Time{}, 9, false, 0)},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			in := Input{Now: now, Started: tt.started, Policy: proposal.DefaultPolicy()}
			if !tt.at.IsZero() {
				in.Now = tt.at
			}
			facts := &model.ServerFacts{Power: model.PowerOn, Inventory: tt.inv}
			if tt.power != "" {
				facts.Power = tt.power
			}
			rec := &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: name}}
			if tt.blocked {
				rec.Boot.Problem = &model.BootProblem{Reason: model.ReasonSecureBootBlocksProbe}
			}
			st := (&server{fleet: &fleet{in: &in}, name: name, facts: facts, reading: &tt.reading, rec: rec}).rest(proposal.Why{})
			want := []proposal.Action{proposal.Inspect{Inventory: tt.due}}
			if diff := cmp.Diff(want, st.Move.Do); diff != "" || !st.Move.Routine {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAReadingOfPartsIsNoted(t *testing.T) {
	at := settleNow
	tests := map[string]struct {
		before   proposal.Reading
		problems []string
		want     proposal.Reading
	}{
		"while it is off":                 {before: proposal.Reading{At: at, Offs: 3}, want: proposal.Reading{At: at, Offs: 3, InventoryAt: at}},
		"while it runs":                   {before: proposal.Reading{At: at, Ons: proposal.PartsOns}, want: proposal.Reading{At: at, Ons: proposal.PartsOns, InventoryAt: at, InventoryOn: true}},
		"while it has only come on":       {before: proposal.Reading{At: at, Ons: 1}, want: proposal.Reading{At: at, Ons: 1, InventoryAt: at}},
		"while it is off, after it ran":   {before: proposal.Reading{At: at, InventoryOn: true}, want: proposal.Reading{At: at, InventoryAt: at, InventoryOn: true}},
		"with parts that fail":            {before: proposal.Reading{At: at, Unread: 2}, problems: []string{"x"}, want: proposal.Reading{At: at, InventoryAt: at, Unread: 3}},
		"in which nothing fails any more": {before: proposal.Reading{At: at, Unread: 2}, want: proposal.Reading{At: at, InventoryAt: at}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := tt.before.ReadParts(&model.Inventory{Problems: tt.problems})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What fails as a whole does not say of a BMC again and again that it cannot be reached.
func TestAReadingOfPartsThatFailsIsPutOff(t *testing.T) {
	for name, tt := range map[string]struct {
		do     proposal.Inspect
		before proposal.Reading
		want   proposal.Reading
	}{
		"the first":               {do: proposal.Inspect{Inventory: true}, want: proposal.Reading{Unread: 1, PartsAfter: settleNow.Add(proposal.PartsRetry)}},
		"one more":                {do: proposal.Inspect{Inventory: true}, before: proposal.Reading{Unread: 2}, want: proposal.Reading{Unread: 3, PartsAfter: settleNow.Add(4 * proposal.PartsRetry)}},
		"one of the power is not": {before: proposal.Reading{Unread: 2}, want: proposal.Reading{Unread: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			m := moveOf(recordOf(), nil, []proposal.Action{tt.do})
			m.Routine, m.was.reading = true, tt.before
			failed := m.Settle([]proposal.Answer{{At: settleNow, Failed: &proposal.Failure{Text: "busy"}}}, settleNow).Reading
			after := failed.Saw(model.PowerOn, nil, 3, settleNow)
			for _, got := range []proposal.Reading{failed, after} {
				if diff := cmp.Diff(tt.want, proposal.Reading{Unread: got.Unread, PartsAfter: got.PartsAfter}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestPartsThatAreAsTheyWereAreNoNews(t *testing.T) {
	for name, tt := range map[string]struct {
		read *model.Inventory
		news bool
	}{
		"the same":    {read: &model.Inventory{Model: "X"}},
		"other parts": {read: &model.Inventory{Model: "X", MemoryBytes: 1}, news: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := moveOf(recordOf(), nil, []proposal.Action{proposal.Inspect{Inventory: true}})
			m.Routine, m.was.facts = true, &model.ServerFacts{Name: "s1", Power: model.PowerOff, Inventory: &model.Inventory{Model: "X"}}
			got := m.Settle([]proposal.Answer{{At: settleNow, Facts: &model.ServerFacts{Power: model.PowerOff, Inventory: tt.read}}}, settleNow)
			if got.News != tt.news || (len(got.Changes.ServerFacts) > 0) != tt.news || !got.Reading.InventoryAt.Equal(settleNow) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
