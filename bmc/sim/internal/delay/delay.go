// Package delay waits, in simulated machines, for as long as real ones take.
package delay

import (
	"context"
	"time"
)

// Wait waits for d, and returns false if ctx ended before.
func Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
