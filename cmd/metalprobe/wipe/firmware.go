package wipe

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Firmware is what a disk can be asked to do by itself.
type Firmware interface {
	// Ready waits for what an earlier wipe left under way, repairs what it left
	// behind, and returns what the disk can do.
	Ready(ctx context.Context, progress OnProgress) (Abilities, error)
	// Clear clears the disk by one of the methods that Ready offered, and returns when
	// the disk reports that this is done.
	Clear(ctx context.Context, m Method, progress OnProgress) error
}

// OnProgress receives how far a method is, in percent; -1 when the disk does not say.
type OnProgress func(m Method, percent int)

// Limits on what a disk does by itself.
const (
	askLimit       = 30 * time.Second // for a command that only asks
	minErasure     = 10 * time.Minute
	unknownErasure = 6 * time.Hour // when the disk does not say how long it takes
)

// eraseTimeout is how long a disk may take, by its own estimate, 0 if it has none.
func eraseTimeout(estimate time.Duration) time.Duration {
	if estimate <= 0 {
		return unknownErasure
	}
	return max(2*estimate, minErasure)
}

// within returns how long a command may take that cannot be cancelled: at most limit,
// and no longer than ctx lives.
func within(ctx context.Context, limit time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(min(limit, time.Until(deadline)), time.Second)
	}
	return limit
}

// sanitizing is how far the sanitize is that a disk does in the background.
type sanitizing struct {
	running bool
	percent int
}

var errSanitize = errors.New("the disk says that its sanitize has failed")

// How the progress of a sanitize is polled.
const (
	askEvery      = 2 * time.Second
	maxUnanswered = 15 // in a row: a disk may be too busy to answer
)

// await polls a disk until its sanitize has ended. One that goes on is waited for as long as ctx
// lives, because a large disk takes days; limit is how long it may get no further.
func await(ctx context.Context, m Method, limit time.Duration, progress OnProgress, ask func() (sanitizing, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stuck := time.AfterFunc(limit, func() { cancel(fmt.Errorf("the disk has got no further for %v", limit)) })
	defer stuck.Stop()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for unanswered, furthest := 0, 0; ; {
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
			progress(m, s.percent)
			if s.percent > furthest {
				furthest = s.percent
				stuck.Reset(limit)
			}
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
