package daemon

import (
	"time"

	"golang.org/x/sys/unix"
)

// steadyClock returns a clock that starts at wall's time and then follows the time since
// boot: a wall clock that is set, by hand or by NTP, ends no timeout early.
func steadyClock(wall func() time.Time, sinceBoot func() time.Duration) func() time.Time {
	began, start := wall().Round(0), sinceBoot()
	return func() time.Time { return began.Add(sinceBoot() - start) }
}

// sinceBoot returns the time since the machine started, including the time that it slept
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
