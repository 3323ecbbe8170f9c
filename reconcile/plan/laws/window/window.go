// Package window is the guard's limit (law 2): so many disruptions within a window of time, others by approval.
package window

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// MaxDone is how many disruptions are remembered, and so the highest limit.
const MaxDone = 4096

// Input is what the guard decides upon.
type Input struct {
	// Asked are the requested steps that were not decided yet, in a stable order. The Value of a step distinguishes one
	// request from the next: an equal step within the window is the same request.
	Asked     []model.Disruption
	Uncertain func(model.Disruption) bool // whether a step waits for an approval whatever the limit is
	Record    model.FleetRecord           // of which Holds, ApprovedSteps and Done count
	Bound     map[string]int              // how many servers are bound to claims of each namespace
	Approvals []string
	Policy    *policy.Options
	Revision  model.Revision
	Now       time.Time
	Seed      string // fresh for each plan, and secret: tokens are made of it
}

// Result is what the guard decided.
type Result struct {
	Allowed []model.Disruption // the steps that may be begun now; the others are in Holds of Record
	Record  model.FleetRecord
	Next    time.Time // when the first of Holds may go; zero = none will by time
}

// Check decides which disruptions may be begun, so that never more than the limit are within any window, all commits
// together, but those that a commit approved by name (law 2). Deciding again with the result changes nothing: a list
// that waits may have room once another step on one of its servers was allowed, so it is decided until nothing
// changes. In each round but the last at least one list gets room.
func Check(in Input) Result {
	for n := 0; ; n++ {
		r := decideOnce(in)
		if n == model.MaxHolds+2 || reflect.DeepEqual(r.Record, in.Record) {
			return r
		}
		in.Record = r.Record
	}
}

// decideOnce decides upon the lists that wait, and then upon what is new. All that is uncertain waits in one list.
func decideOnce(in Input) Result {
	w := newWindow(in)
	w.takeOver()
	w.standing()
	certain := func(d model.Disruption) bool { return !in.Uncertain(d) }
	if steps := slices.DeleteFunc(slices.Concat(w.groups()...), certain); len(steps) > 0 {
		w.add(model.GuardHold{Revision: in.Revision, Since: in.Now, Steps: steps, Gap: true})
	}
	for _, steps := range w.groups() {
		at, full := w.earliest(steps)
		if full == nil {
			w.allow(steps)
			continue
		}
		w.add(model.GuardHold{Revision: steps[0].Revision, Since: in.Now, Limit: full.limit, Scope: full.scope, Steps: steps, Until: at})
	}
	r := Result{Record: in.Record}
	r.Record.Holds, r.Record.ApprovedSteps, r.Record.Done = w.holds, w.approvedSteps, w.done[max(0, len(w.done)-MaxDone):]
	for _, d := range w.in.Asked {
		if w.decided[key(d)] {
			r.Allowed = append(r.Allowed, d)
		}
	}
	for _, h := range w.holds {
		if !h.Until.IsZero() && (r.Next.IsZero() || h.Until.Before(r.Next)) {
			r.Next = h.Until
		}
	}
	return r
}

type window struct {
	in      Input
	asked   map[model.Disruption]bool // by key
	decided map[model.Disruption]bool // by key: true = it may be begun, false = it waits in a list
	limits  [windowKinds]int
	own     [windowKinds]int // the limits of one namespace, where there are others

	approvedSteps []model.Disruption
	done          []model.Disruption // in the order of At
	booked        []booking          // done, and what will be when its list goes
	holds         []model.GuardHold
	serial        int // of tokens
}

// key is what identifies a step, whenever it was requested.
func key(d model.Disruption) model.Disruption {
	d.At, d.Revision = time.Time{}, ""
	return d
}

func newWindow(in Input) *window {
	w := &window{in: in, asked: make(map[model.Disruption]bool, len(in.Asked)), decided: make(map[model.Disruption]bool, len(in.Asked))}
	bound, namespaces := 0, 0
	for _, n := range in.Bound {
		bound += n
		if n > 0 {
			namespaces++
		}
	}
	for kind, least := range [windowKinds]int{in.Policy.MaxDisruptions, in.Policy.MaxPowerDisruptions} {
		limit := min(MaxDone, max(least, (bound+9)/10, 0))
		w.limits[kind], w.own[kind] = limit, limit
		if namespaces > 1 {
			w.own[kind] = min(limit, max(1, limit-1))
		}
	}
	for _, d := range in.Asked {
		w.asked[key(d)] = true
	}
	return w
}

// isNew reports whether a step is asked for, and not decided yet.
func (w *window) isNew(d model.Disruption) bool {
	_, decided := w.decided[key(d)]
	return w.asked[key(d)] && !decided
}

// mark notes that steps may be begun, or wait in a list.
func (w *window) mark(steps []model.Disruption, allowed bool) {
	for _, d := range steps {
		w.decided[key(d)] = allowed
	}
}

// takeOver allows what was approved or allowed before, while it is asked for.
func (w *window) takeOver() {
	for _, d := range w.in.Record.ApprovedSteps {
		if w.isNew(d) {
			w.decided[key(d)] = true
			w.approvedSteps = append(w.approvedSteps, d)
		}
	}
	for _, d := range w.in.Record.Done {
		if d.At.After(w.in.Now) {
			d.At = w.in.Now // the clock was set back
		}
		if w.asked[key(d)] {
			w.decided[key(d)] = true
		}
		if w.asked[key(d)] || d.At.After(w.in.Now.Add(-w.in.Policy.GuardWindow)) { // what was allowed and is not begun yet is not held later
			w.done = append(w.done, d)
		}
	}
	slices.SortStableFunc(w.done, func(a, b model.Disruption) int { return a.At.Compare(b.At) })
	for _, d := range w.done {
		w.booked = append(w.booked, booking{d.At, d, 0})
	}
}

// standing decides on the lists that were held before, with the steps that are still asked for. A list that a commit
// approved is allowed, and one that waits for room once there is some. One that waits for approval goes on to do so,
// however few steps are left: the person who approves it has to see all of them.
func (w *window) standing() {
	for _, h := range w.in.Record.Holds {
		h.Steps = slices.DeleteFunc(slices.Clone(h.Steps), func(d model.Disruption) bool { return !w.isNew(d) })
		w.mark(h.Steps, false)
		switch {
		case len(h.Steps) == 0:
			continue
		case h.Token != "" && slices.Contains(w.in.Approvals, h.Token):
			w.mark(h.Steps, true)
			w.approvedSteps = append(w.approvedSteps, h.Steps...)
			continue
		case !h.Until.IsZero():
			at, full := w.earliest(h.Steps)
			if full == nil {
				w.allow(h.Steps)
				continue
			}
			h.Until, h.Limit, h.Scope = at, full.limit, full.scope
			w.book(h.Steps, at, len(w.holds)+1)
		}
		w.holds = append(w.holds, h)
	}
}

// groups are the steps that are new, those of one revision and namespace together.
func (w *window) groups() (all [][]model.Disruption) {
	type group struct {
		revision  model.Revision
		namespace string
	}
	at, seen := make(map[group]int), make(map[model.Disruption]bool)
	for _, d := range w.in.Asked {
		if seen[key(d)] || !w.isNew(d) {
			continue
		}
		seen[key(d)] = true
		d.Revision = cmp.Or(d.Revision, w.in.Revision)
		g := group{d.Revision, namespaceOf(d)}
		if _, known := at[g]; !known {
			at[g] = len(all)
			all = append(all, nil)
		}
		all[at[g]] = append(all[at[g]], d)
	}
	return all
}

func (w *window) add(h model.GuardHold) {
	w.mark(h.Steps, false)
	if len(w.holds) == model.MaxHolds {
		h = w.joined(h)
		w.holds = w.holds[:model.MaxHolds-1]
	}
	w.book(h.Steps, h.Until, len(w.holds)+1)
	w.serial++
	h.Token = w.token(&h)
	w.holds = append(w.holds, h)
}

// joined is the newest list with more steps. If either waits for approval then all do.
func (w *window) joined(more model.GuardHold) model.GuardHold {
	last := w.holds[model.MaxHolds-1]
	w.booked = slices.DeleteFunc(w.booked, func(b booking) bool { return b.list == model.MaxHolds })
	h := more
	h.Steps = slices.Concat(last.Steps, more.Steps)
	if h.Scope != last.Scope {
		h.Scope, h.Limit = "", w.limits[kindOf(h.Steps[0])]
	}
	if last.Until.IsZero() || more.Until.IsZero() {
		h.Until = time.Time{}
		return h
	}
	if at, full := w.earliest(h.Steps); full != nil {
		h.Until, h.Limit, h.Scope = at, full.limit, full.scope
	}
	return h
}

// allow lets steps be begun now, and counts them.
func (w *window) allow(steps []model.Disruption) {
	w.mark(steps, true)
	for _, d := range steps {
		d.At = w.in.Now
		// The last disruption of a server replaces the one before, so that those of one server leave room in Done.
		w.done = slices.DeleteFunc(w.done, func(e model.Disruption) bool { return !w.asked[key(e)] && countOf(e, 0) == countOf(d, 0) })
		w.done = append(w.done, d)
	}
	w.book(steps, w.in.Now, 0)
}

func (w *window) token(h *model.GuardHold) string {
	var b strings.Builder
	fmt.Fprintf(&b, "guard %s %d", h.Revision, w.serial)
	for _, d := range h.Steps {
		fmt.Fprintf(&b, "\n%s %s %s %q", d.Action, d.Server, d.Claim, d.Value)
	}
	return proposal.Token(w.in.Seed, b.String(), 20)
}
