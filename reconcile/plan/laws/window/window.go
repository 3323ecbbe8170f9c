package window

import (
	"math"
	"reflect"
	"slices"
	"time"

	"ingot/model"
)

// MaxDone is how many disruptions are remembered, and so the highest limit.
const MaxDone = 4096

// Limits are how much may be taken from users of servers without an approval.
type Limits struct {
	// MaxDisruptions and MaxPowerDisruptions are of how many servers within Window, or
	// ten percent of the bound ones if that is more.
	MaxDisruptions, MaxPowerDisruptions int
	Window                              time.Duration
}

// Input is what the guard decides upon.
type Input struct {
	// Asked is what is asked for and was not decided yet, in a stable order. A step's
	// Value tells one asking from the next: the same step within the window is the same
	// asking.
	Asked []model.Disruption
	// Uncertain are steps that wait for an approval whatever the limit is.
	Uncertain map[Key]bool
	// Record is the fleet's, of which Holds, ApprovedSteps and Done count.
	Record *model.FleetRecord
	// Bound is how many servers are bound to claims of each namespace.
	Bound     map[string]int
	Approvals []string
	Limits    Limits
	Revision  model.Revision
	Now       time.Time
	// Seed is fresh for each plan, and nobody can guess it: tokens are made of it.
	Seed string
}

// Lists are what the guard keeps in the fleet's record.
type Lists struct {
	Holds               []model.GuardHold
	ApprovedSteps, Done []model.Disruption
}

// Result is what the guard decided.
type Result struct {
	// Allowed are the steps that may be begun now, Held says which list the others wait
	// in, as an index into Holds.
	Allowed []model.Disruption
	Held    map[Key]int

	Lists
	// Changed is set when Lists are not as they were.
	Changed bool
	// Next is when the first of Holds may go; zero = none will by time.
	Next time.Time
}

// Check decides which disruptions may be begun, so that never more than the limit
// are within any window, all commits together, but those that a commit approved by name
// (law 2). Deciding again with the result changes nothing: a list that waits may have
// room once another step on one of its servers was allowed, so it is decided until nothing
// changes.
func Check(in Input) Result {
	before := in.Record
	r := decideOnce(in)
	for n := 0; r.Changed && n < maxRounds; n++ {
		in.Record = &model.FleetRecord{Holds: r.Holds, ApprovedSteps: r.ApprovedSteps, Done: r.Done}
		r = decideOnce(in)
	}
	r.Changed = r.differs(before)
	return r
}

// maxRounds is how often the guard decides again: in each round but the last at least one
// list got room.
const maxRounds = model.MaxHolds + 2

// decideOnce decides upon the lists that wait, and then upon what is new.
func decideOnce(in Input) Result {
	w := newWindow(in)
	waiting := w.known()
	for _, hold := range w.standing(waiting) {
		w.hold(hold)
	}
	w.holdUncertain(waiting)
	for _, g := range w.groups(waiting) {
		w.decide(g)
	}
	return w.result()
}

// window is one decision under way.
type window struct {
	in     Input
	asked  map[Key]model.Disruption
	limits [windowKinds]int
	// own is the limit of one namespace, where there are others.
	own           [windowKinds]int
	allowed       map[Key]bool
	approvedSteps []model.Disruption
	done          []model.Disruption // in the order of At
	// booked is done, and what will be by the time that its list is to go.
	booked []booking
	holds  []model.GuardHold
	serial int // of tokens
}

func newWindow(in Input) *window {
	w := &window{in: in, asked: make(map[Key]model.Disruption, len(in.Asked)), allowed: make(map[Key]bool, len(in.Asked))}
	bound, namespaces := 0, 0
	for _, n := range in.Bound {
		bound += n
		if n > 0 {
			namespaces++
		}
	}
	for kind, least := range [windowKinds]int{in.Limits.MaxDisruptions, in.Limits.MaxPowerDisruptions} {
		limit := min(MaxDone, max(least, (bound+9)/10, 0))
		w.limits[kind], w.own[kind] = limit, limit
		if namespaces > 1 {
			w.own[kind] = min(limit, max(1, limit-1))
		}
	}
	for _, d := range in.Asked {
		w.asked[KeyOf(d)] = d
	}
	return w
}

// known takes over what was decided before, and returns the steps that were not: those
// that were approved or allowed are allowed while they are asked for.
func (w *window) known() (waiting []model.Disruption) {
	now, oldest := w.in.Now, w.in.Now.Add(-w.in.Limits.Window)
	for _, d := range w.in.Record.ApprovedSteps {
		if _, asked := w.asked[KeyOf(d)]; asked && !w.allowed[KeyOf(d)] {
			w.allowed[KeyOf(d)] = true
			w.approvedSteps = append(w.approvedSteps, d)
		}
	}
	for _, d := range w.in.Record.Done {
		if d.At.After(now) {
			d.At = now // the clock was set back
		}
		_, asked := w.asked[KeyOf(d)]
		if asked {
			w.allowed[KeyOf(d)] = true
		}
		if asked || d.At.After(oldest) { // what was allowed and is not begun yet is not held later
			w.done = append(w.done, d)
		}
	}
	slices.SortStableFunc(w.done, func(a, b model.Disruption) int { return a.At.Compare(b.At) })
	for _, d := range w.done {
		w.booked = append(w.booked, booking{d.At, d, 0})
	}
	seen := make(map[Key]bool, len(w.in.Asked))
	for _, d := range w.in.Asked {
		if !w.allowed[KeyOf(d)] && !seen[KeyOf(d)] {
			seen[KeyOf(d)] = true
			waiting = append(waiting, d)
		}
	}
	return waiting
}

func (w *window) result() Result {
	r := Result{Lists: Lists{w.holds, w.approvedSteps, w.done}, Held: make(map[Key]int)}
	r.Done = r.Done[max(0, len(r.Done)-MaxDone):]
	for _, d := range w.in.Asked {
		if w.allowed[KeyOf(d)] {
			r.Allowed = append(r.Allowed, d)
		}
	}
	next := time.Unix(math.MaxInt32, 0)
	for i, h := range r.Holds {
		for _, d := range h.Steps {
			r.Held[KeyOf(d)] = i
		}
		if !h.Until.IsZero() && h.Until.Before(next) {
			next, r.Next = h.Until, h.Until
		}
	}
	r.Changed = r.differs(w.in.Record)
	return r
}

// differs reports whether the lists are not those of a record.
func (l Lists) differs(old *model.FleetRecord) bool {
	return !reflect.DeepEqual(l, Lists{old.Holds, old.ApprovedSteps, old.Done})
}
