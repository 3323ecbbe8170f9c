package reconcile

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"ingot/reconcile/plan/proposal"
)

// Bounds on the checks of boots.
const (
	maxChecksOfHost = 4   // at the same time, so that a registry without an answer delays no other
	maxChecks       = 128 // at the same time
	checkAgainMin   = 15 * time.Second
	checkAgainMax   = 5 * time.Minute
	checkedFor      = 5 * time.Minute // a success is valid, because a tag may move
)

// bootChecks check what claims without a server would boot, before they get one. Equal boots are checked once.
type bootChecks struct {
	mu      sync.Mutex
	all     map[proposal.BootKey]*bootCheck
	queues  map[string][]*bootCheck // waiting, by the host of their images
	workers map[string]int
	running chan struct{}
	shown   map[proposal.BootKey]proposal.Checked // copy of the results; nil when they changed
	until   time.Time                             // one of shown is no longer valid, zero = never
}

// bootCheck is one check, and its last result.
type bootCheck struct {
	boot     proposal.Boot
	queued   bool // or running
	failures int
	next     time.Time // of the next attempt
	result   proposal.Checked
}

func newBootChecks() *bootChecks {
	return &bootChecks{
		all: make(map[proposal.BootKey]*bootCheck), queues: make(map[string][]*bootCheck), workers: make(map[string]int), running: make(chan struct{}, maxChecks),
	}
}

// results returns the valid results, and Pending for checks without one. A success that has expired is pending again.
func (c *bootChecks) results(now time.Time) map[proposal.BootKey]proposal.Checked {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isCurrent(now) {
		c.shown, c.until = make(map[proposal.BootKey]proposal.Checked, len(c.all)), time.Time{}
		for key, check := range c.all {
			if r := &check.result; !r.Pending && r.Failed == nil {
				if !check.next.After(now) {
					*r = proposal.Checked{Pending: true, Since: now}
				} else {
					c.until = proposal.Earlier(c.until, check.next)
				}
			}
			c.shown[key] = check.result
		}
	}
	return c.shown
}

func (c *bootChecks) isCurrent(now time.Time) bool {
	return c.shown != nil && (c.until.IsZero() || now.Before(c.until))
}

func (c *bootChecks) isShown(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isCurrent(now)
}

// checkBoots begins the checks that a plan wants and that are due, forgets those that it does not want, and returns when
// the next one is due; zero = none is.
func (l *Loop) checkBoots(ctx context.Context, wanted map[proposal.BootKey]proposal.Boot, now time.Time) (next time.Time) {
	if l.Check == nil {
		return next
	}
	c := l.checks
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, check := range c.all {
		if _, still := wanted[key]; !still && !check.queued {
			delete(c.all, key)
			c.shown = nil
		}
	}
	for key, boot := range wanted {
		check := c.all[key]
		if check == nil {
			check = &bootCheck{boot: boot, result: proposal.Checked{Pending: true, Since: now}}
			c.all[key], c.shown = check, nil
		}
		switch {
		case check.queued:
		case check.next.After(now):
			next = proposal.Earlier(next, check.next)
		default:
			check.queued = true
			host := imageHost(boot.Image)
			if check.failures == 0 {
				c.queues[host] = slices.Insert(c.queues[host], 0, check) // before those that failed
			} else {
				c.queues[host] = append(c.queues[host], check)
			}
			if c.workers[host] < maxChecksOfHost {
				c.workers[host]++
				l.moves.Go(func() { l.checkQueue(ctx, host) })
			}
		}
	}
	return next
}

// checkQueue makes the checks of one host until none waits.
func (l *Loop) checkQueue(ctx context.Context, host string) {
	c := l.checks
	for {
		c.mu.Lock()
		queue := c.queues[host]
		if len(queue) == 0 {
			if c.workers[host]--; c.workers[host] == 0 {
				delete(c.workers, host)
				delete(c.queues, host)
			}
			c.mu.Unlock()
			return
		}
		check := queue[0]
		c.queues[host] = queue[1:]
		c.mu.Unlock()

		c.running <- struct{}{}
		err := l.Check(ctx, check.boot)
		<-c.running
		l.checked(check, failure(err, stopped(ctx, err)))
	}
}

// checked notes the result of a check.
func (l *Loop) checked(check *bootCheck, failed *proposal.Failure) {
	now := l.Clock()
	c := l.checks
	c.mu.Lock()
	defer c.mu.Unlock()
	l.Metrics.checked(failed)
	check.queued = false
	if failed != nil && failed.Kind == proposal.FailureStopped {
		return
	}
	if failed == nil {
		check.result, check.failures, check.next = proposal.Checked{Since: now}, 0, now.Add(checkedFor)
	} else {
		if had := check.result.Failed; had == nil || had.Reason != failed.Reason {
			check.result.Since = now
		}
		check.result.Pending, check.result.Failed = false, failed
		check.next = now.Add(min(checkAgainMin<<min(check.failures, 8), checkAgainMax))
		check.failures++
	}
	c.shown = nil
	l.snapshots.note(now, false)
	signal(l.soon) // a tenant waits for the server
	l.Wake()
}

// imageHost is the host that an image is fetched from, or the folder.
func imageHost(image string) string {
	for _, scheme := range []string{"https://", "http://", "oci://"} {
		image = strings.TrimPrefix(image, scheme)
	}
	if strings.HasPrefix(image, "oci:") {
		return "oci:"
	}
	host, _, _ := strings.Cut(image, "/")
	return host
}
