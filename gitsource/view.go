package gitsource

import (
	"sync/atomic"
	"time"

	"ingot/model"
)

// view is the part of a Source that may be read at any time.
type view struct {
	clock   func() time.Time
	desired atomic.Pointer[model.Desired]
	status  atomic.Pointer[model.SourceState]
	seen    atomic.Pointer[model.Revision]
	nothing atomic.Bool // see Nothing
	// behind is since when the newest revision that was seen is not in force, in Unix
	// nanoseconds; 0 = it is.
	behind atomic.Int64
	// fetchedAt is when the branch was last looked at without an error.
	fetchedAt atomic.Pointer[time.Time]
	offered   atomic.Pointer[[]string] // see Offered
	changed   chan struct{}
}

// Desired returns what is in force, nil before Begin and before the first revision
// was read.
func (v *view) Desired() *model.Desired { return v.desired.Load() }

// Nothing reports whether the branch was looked at since Begin and nothing came into force,
// nor had before: it holds no commit, or none that can be used. Desired is nil, and waiting
// for it is of no use.
func (v *view) Nothing() bool { return v.nothing.Load() && v.Desired() == nil }

// State returns the state of the branch as a whole, also before the first
// revision was read.
func (v *view) State() model.SourceState { return *v.status.Load() }

// Seen returns the newest revision that was fetched, which may not be judged yet; "" before
// the first.
func (v *view) Seen() model.Revision {
	if r := v.seen.Load(); r != nil {
		return *r
	}
	return ""
}

// Offered returns what the newest commits approve, before Begin: how a start goes on may be
// for a person to choose.
func (v *view) Offered() []string {
	if tokens := v.offered.Load(); tokens != nil {
		return *tokens
	}
	return nil
}

// lag returns for how many seconds the newest revision that was seen is not in force.
func (v *view) lag() float64 {
	since := v.behind.Load()
	if since == 0 {
		return 0
	}
	return v.clock().Sub(time.Unix(0, since)).Seconds()
}

func (v *view) noteLag(inForce bool) {
	if inForce {
		v.behind.Store(0)
		return
	}
	v.behind.CompareAndSwap(0, v.clock().UnixNano())
}

// FetchedAt returns when the branch was last looked at without an error, zero before the first
// time.
func (v *view) FetchedAt() time.Time {
	if at := v.fetchedAt.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Changed delivers a value after Desired or State changed.
func (v *view) Changed() <-chan struct{} { return v.changed }

// announce shows a state of the source along with the revision in force, if it differs from
// the one shown.
func (v *view) announce(st model.SourceState) {
	old, d := v.status.Load(), v.desired.Load()
	st.Since = since(old, st.Reason, v.clock())
	confirmed := d != nil && d.KeptOverRestart && st.Reason != model.SourceFetchFailed
	if st == *old && !confirmed {
		return
	}
	v.status.Store(&st)
	if d != nil {
		next := *d
		next.Source, next.KeptOverRestart = st, d.KeptOverRestart && !confirmed
		v.desired.Store(&next)
	}
	signal(v.changed)
}

func since(old *model.SourceState, reason string, now time.Time) time.Time {
	switch {
	case reason == "":
		return time.Time{}
	case old.Reason == reason:
		return old.Since
	}
	return now
}
