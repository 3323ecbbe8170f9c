package wipe

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Firmware is what a disk can be asked to do by itself.
type Firmware interface {
	// Ready waits for what an earlier wipe left under way, puts right what it left
	// behind, and says what the disk can do.
	Ready(ctx context.Context, told Told) (Abilities, error)
	// Clear clears the disk by one of the methods that Ready offered, and returns
	// when the disk says that this is done.
	Clear(ctx context.Context, m Method, told Told) error
}

// Told is how far a method is, in percent; -1 when the disk does not say.
type Told func(m Method, percent int)

// Limits on what a disk does by itself.
const (
	askLimit        = 30 * time.Second // for a command that only asks
	shortestErasure = 10 * time.Minute
	longestErasure  = 20 * time.Hour
	unknownErasure  = 6 * time.Hour // when the disk does not say how long it takes
)

// patience is how long a disk is waited for that says how long it takes.
func patience(estimate time.Duration) time.Duration {
	if estimate <= 0 {
		return unknownErasure
	}
	return min(max(2*estimate, shortestErasure), longestErasure)
}

// within returns how long a command may take that cannot be taken back: no longer
// than ctx lives.
func within(ctx context.Context, limit time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(min(limit, time.Until(deadline)), time.Second)
	}
	return limit
}

// sanitizing is how far a disk is that clears itself in the background.
type sanitizing struct {
	running bool
	percent int
}

// errSanitize is a sanitize that the disk says has failed.
var errSanitize = errors.New("the disk says that its sanitize has failed")

// How a sanitize is asked after.
const (
	askEvery      = 2 * time.Second
	maxUnanswered = 15 // in a row: a disk may be too busy to answer
)

// await asks a disk until its sanitize has ended, for as long as limit.
func await(ctx context.Context, m Method, limit time.Duration, told Told, ask func() (sanitizing, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the disk is still at it after %v", limit))
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for unanswered := 0; ; {
		s, err := ask()
		switch {
		case errors.Is(err, errSanitize):
			return err
		case err != nil:
			if unanswered++; unanswered >= maxUnanswered {
				return fmt.Errorf("ask how far it is: %w", err)
			}
		case !s.running:
			return nil
		default:
			unanswered = 0
			told(m, s.percent)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// percentOf converts a progress in 65536ths.
func percentOf(progress uint16) int { return int(progress) * 100 / 65536 }
