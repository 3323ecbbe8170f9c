package reading_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/reading"
)

func TestABMCThatSaysAnotherTimeOfItsRestart(t *testing.T) {
	first := time.Date(2026, 3, 9, 2, 38, 30, 0, time.UTC)
	for name, tc := range map[string]struct {
		before, now time.Time
		want        bool
	}{
		"the same":                         {first, first, false},
		"a second later, by its uptime":    {first, first.Add(time.Second), false},
		"an hour later":                    {first, first.Add(time.Hour), true},
		"one for the first time":           {time.Time{}, first, true},
		"none, as its manager is unread":   {first, time.Time{}, false},
		"none ever":                        {time.Time{}, time.Time{}, false},
		"an earlier one, its clock is set": {first, first.Add(-time.Hour), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reading.Restarted(tc.before, tc.now); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAReadingOfPartsIsNoted(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 1, 0, time.UTC)
	for name, tt := range map[string]struct {
		before   reading.State
		problems []string
		want     reading.State
	}{
		"while it is off":                 {before: reading.State{At: at, Offs: 3}, want: reading.State{At: at, Offs: 3, Parts: reading.Parts{InventoryAt: at}}},
		"while it runs":                   {before: reading.State{At: at, Ons: reading.PartsOns}, want: reading.State{At: at, Ons: reading.PartsOns, Parts: reading.Parts{InventoryAt: at, InventoryOn: true}}},
		"while it has only come on":       {before: reading.State{At: at, Ons: 1}, want: reading.State{At: at, Ons: 1, Parts: reading.Parts{InventoryAt: at}}},
		"while it is off, after it ran":   {before: reading.State{At: at, Parts: reading.Parts{InventoryOn: true}}, want: reading.State{At: at, Parts: reading.Parts{InventoryAt: at, InventoryOn: true}}},
		"with parts that fail":            {before: reading.State{At: at, Parts: reading.Parts{Unread: 2}}, problems: []string{"x"}, want: reading.State{At: at, Parts: reading.Parts{InventoryAt: at, Unread: 3}}},
		"in which nothing fails any more": {before: reading.State{At: at, Parts: reading.Parts{Unread: 2}}, want: reading.State{At: at, Parts: reading.Parts{InventoryAt: at}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.before.ReadParts(&model.Inventory{Problems: tt.problems})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
