package imagecache

import (
	"sync"
	"time"
)

// A fetch or a stream that brings less than slowBytes within slowAfter is slow. There may be slowFetches
// times as many of these as of others, because they take little of the line.
const (
	slowAfter   = 15 * time.Second
	slowBytes   = 15 << 20
	slowFetches = 4
)

// place is that of a fetch or a stream among those that are under way at the same time.
type place struct {
	cache *Cache
	late  *time.Timer

	mu   sync.Mutex
	slow bool // it has a place among the slow ones instead
	left bool
}

// take returns the place of what has taken a slot for so many bytes. Once it shows to be slow it gives
// that to another: who boots from one registry waits neither for another registry nor for the machine
// that takes its image drop by drop.
func (c *Cache) take(bytes int64, progress func() int64) *place {
	p := &place{cache: c}
	p.late = time.AfterFunc(c.slowAfter, func() {
		if progress() < min(slowBytes, bytes) {
			p.stepAside()
		}
	})
	return p
}

// stepAside goes on among the slow ones, if there is a place.
func (p *place) stepAside() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return
	}
	select {
	case p.cache.slow <- struct{}{}:
		p.slow = true
		<-p.cache.slots
	default:
	}
}

func (p *place) leave() {
	p.late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	if p.slow {
		<-p.cache.slow
	} else {
		<-p.cache.slots
	}
}
