package plan

import (
	"testing"
	"time"

	"ingot/reconcile/plan/proposal"
)

func TestABMCThatSaysAnotherTimeOfItsRestart(t *testing.T) {
	first := time.Date(2026, 3, 9, 2, 38, 30, 0, time.UTC)
	tests := map[string]struct {
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
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := proposal.Restarted(tc.before, tc.now); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
