package daemon

import (
	"time"

	"golang.org/x/sys/unix"
)

// steadyClock returns a clock that begins with wall's time and from then on
// goes as the machine's own does, also while that sleeps: a wall clock that is set, by
// hand or by NTP, ends no time-out early.
func steadyClock(wall func() time.Time, sinceBoot func() time.Duration) func() time.Time {
	began, start := wall().Round(0), sinceBoot()
	return func() time.Time { return began.Add(sinceBoot() - start) }
}

// sinceBoot is the time since the machine started, with the time that it slept
// (clock_gettime(2), CLOCK_BOOTTIME).
func sinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(processStart)
	}
	return time.Duration(t.Nano())
}

// processStart has a monotonic reading, for systems without CLOCK_BOOTTIME.
var processStart = time.Now()
