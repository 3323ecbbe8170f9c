package daemon

import (
	"testing"
	"time"
)

func TestAClockThatIsSetMovesNoTimeOut(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	wall, up := began, 40*24*time.Hour
	clock := steadyClock(func() time.Time { return wall }, func() time.Duration { return up })
	for _, jump := range []time.Duration{0, time.Hour, -3 * time.Hour} {
		before := clock()
		up += time.Minute
		wall = wall.Add(time.Minute + jump)
		if passed := clock().Sub(before); passed != time.Minute {
			t.Errorf("in one minute, while the wall clock was set by %s, %s passed", jump, passed)
		}
	}
	if got := clock(); !got.Equal(began.Add(3 * time.Minute)) {
		t.Errorf("it says %s, want what the wall clock said at the start and three minutes", got)
	}
	if a, b := sinceBoot(), sinceBoot(); a <= 0 || b < a {
		t.Errorf("the machine is up for %s, and then for %s", a, b)
	}
}
