package reconcile

import (
	"testing"
	"time"
)

func TestWhatCanWaitIsLeftOutForAnIntervalAndOnePublication(t *testing.T) {
	const interval = 10 * time.Second
	begun := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	var out leftOut
	for _, step := range []struct {
		at     time.Duration
		urgent bool
		want   haste
	}{
		{0, true, hurryAlways},
		{3 * time.Second, false, hurryForDecisions},
		{6 * time.Second, true, hurryAlways},
		{11 * time.Second, true, hurryAlways}, // a decision waits, and goes first
		{11500 * time.Millisecond, true, hurryNever},
		{12 * time.Second, true, hurryAlways}, // nothing is left out since
		{23 * time.Second, false, hurryNever},
		{24 * time.Second, false, hurryForDecisions},
	} {
		now := begun.Add(step.at)
		got := out.haste(now, interval, step.urgent)
		if got != step.want {
			t.Errorf("after %s, urgent %t: haste %d, want %d", step.at, step.urgent, got, step.want)
		}
		out = out.after(now, interval, got != hurryNever)
	}
}
