package daemon

import (
	"sync/atomic"
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
// (clock_gettime(2), CLOCK_BOOTTIME). The kernel is asked once a second, for that is a system call,
// and each packet is told its time: after a sleep the time may be behind for as long.
func sinceBoot() time.Duration {
	running := time.Since(processStart)
	if int64(running)-askedBoot.Load() >= int64(time.Second) {
		askedBoot.Store(int64(running))
		askBoot()
	}
	return running + time.Duration(beforeProcess.Load())
}

// askBoot brings beforeProcess up to date. It is never too much, so that no clock goes back.
func askBoot() {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return
	}
	before := t.Nano() - int64(time.Since(processStart))
	for old := beforeProcess.Load(); before > old && !beforeProcess.CompareAndSwap(old, before); {
		old = beforeProcess.Load()
	}
}

// processStart has a monotonic reading, which stands still while the machine sleeps.
var processStart = time.Now()

// beforeProcess is by how much the time since boot is ahead of that since processStart, in
// nanoseconds; askedBoot is when, since processStart, the kernel was asked last.
var beforeProcess, askedBoot atomic.Int64

func init() { askBoot() }
