package registry

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"ingot/registry/store"
)

// forever is the lease of a store that only one process can open.
const forever = 100 * 365 * 24 * time.Hour

// ErrLeadershipLost is returned by Run once another Ingot leads.
var ErrLeadershipLost = errors.New("leadership lost: another ingot leads")

// errNotRenewed is the detail of a leader that could not renew its lease in time.
var errNotRenewed = errors.New("the lease was not renewed in time: another ingot may lead")

// LeadState is the role of this process.
type LeadState string

// The states of leadership.
const (
	// Leads: this process is the only leader.
	Leads LeadState = "Leads"
	// Follows: another process leads.
	Follows LeadState = "Follows"
	// StoreSilent: the store does not respond, so the leader is unknown.
	StoreSilent LeadState = "StoreSilent"
	// LeadEnded: this process led, and will not lead again.
	LeadEnded LeadState = "LeadEnded"
)

// Lead is the leadership of this process, and whether the store responds.
type Lead struct {
	log     *slog.Logger
	metrics *metrics
	ttl     time.Duration

	fence  atomic.Uint64             // 0 while another process leads
	led    atomic.Bool               // this process leads, or did
	ended  atomic.Bool               // this process does not lead again
	until  atomic.Pointer[time.Time] // end of the lease
	holder atomic.Pointer[string]    // the leader, if it is another process
	health atomic.Pointer[error]     // of the last call to the store
}

func newLead(o *Options, m *metrics) *Lead {
	l := &Lead{log: o.Log, metrics: m, ttl: o.LeaderTTL}
	if o.RedisURL == "" {
		l.ttl = forever
	}
	return l
}

// Fence returns the fencing number of this leader, which is higher than that of all leaders before,
// or 0 while this process does not lead.
func (l *Lead) Fence() uint64 { return l.fence.Load() }

// Leading reports whether no other process can lead now. It turns false when the store has not
// responded for the time of a lease, and true when it responds again and had no other leader.
func (l *Lead) Leading() bool {
	end := l.until.Load()
	return l.Fence() != 0 && end != nil && time.Now().Before(*end)
}

// Healthy returns nil, or why the store cannot be used: it does not respond, or another process
// leads. State distinguishes the two.
func (l *Lead) Healthy() error {
	if err := l.health.Load(); err != nil {
		return *err
	}
	return nil
}

// State returns the role of this process and, unless it leads, the reason for people.
func (l *Lead) State() (LeadState, error) {
	health := l.Healthy()
	switch {
	case l.ended.Load():
		return LeadEnded, ErrLeadershipLost
	case health != nil && !errors.Is(health, store.ErrFenced):
		return StoreSilent, health
	case l.Leading():
		return Leads, nil
	case l.Fence() != 0:
		return StoreSilent, errNotRenewed
	case l.led.Load():
		return LeadEnded, ErrLeadershipLost
	}
	if holder := l.holder.Load(); holder != nil && *holder != "" {
		return Follows, fmt.Errorf("another ingot leads: %s", *holder)
	}
	return Follows, errors.New("this ingot does not lead yet")
}

// End gives leadership up for the lifetime of this process, for example when the status branch shows a
// newer fencing number. Fence is then 0, and Save, AwaitLead and Run return ErrFenced or
// ErrLeadershipLost.
func (l *Lead) End() {
	l.ended.Store(true)
	if fence := l.Fence(); fence != 0 {
		l.log.Error("leadership ended", "fence", fence)
	}
	l.setFence(0)
}

// setFence notes the fencing number of this process, 0 while it does not lead.
func (l *Lead) setFence(fence uint64) {
	l.fence.Store(fence)
	if l.ended.Load() { // checked after the store, so that End cannot be undone by a process that begins to lead
		fence = 0
		l.fence.Store(0)
	}
	if fence != 0 {
		l.led.Store(true)
	}
	l.metrics.leading.Set(float64(min(fence, 1)))
}

func (l *Lead) extend(requested time.Time) {
	end := requested.Add(l.ttl)
	l.until.Store(&end)
}

// note records the result of a call to the store, and logs changes. ErrFenced ends the lead.
func (l *Lead) note(err error) {
	before := l.Healthy()
	switch {
	case err == nil:
		l.health.Store(nil)
		l.metrics.up.Set(1)
		if before != nil {
			l.log.Info("store responds again")
		}
		return
	case errors.Is(err, store.ErrFenced):
		if l.Fence() != 0 {
			l.log.Error("leadership lost: another ingot leads", "fence", l.Fence())
		}
		l.setFence(0)
	case before == nil && l.Fence() == 0:
		l.log.Error("the store cannot be used; waiting for it", "err", err)
	case before == nil:
		l.log.Warn("the store cannot be used; continuing from memory", "err", err)
	}
	l.metrics.errors.Inc()
	l.metrics.up.Set(0)
	err = fmt.Errorf("store: %w", err)
	l.health.Store(&err)
}
