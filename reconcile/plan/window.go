package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// MaxDone is how many disruptions are remembered, and so the highest limit.
const MaxDone = 4096

// windowLimits are how much may be taken from users of servers without an approval.
type windowLimits struct {
	// MaxDisruptions and MaxPowerDisruptions are of how many servers within Window, or
	// ten percent of the bound ones if that is more.
	MaxDisruptions, MaxPowerDisruptions int
	Window                              time.Duration
}

// windowInput is what the guard decides upon.
type windowInput struct {
	// Asked is what is asked for and was not decided yet, in a stable order. A step's
	// Value tells one asking from the next: the same step within the window is the same
	// asking.
	Asked []model.Disruption
	// Record is the fleet's, of which Holds, Letting and Done count.
	Record *model.FleetRecord
	// Bound is how many servers are bound to claims of each namespace.
	Bound     map[string]int
	Approvals []string
	Limits    windowLimits
	Revision  model.Revision
	Now       time.Time
	// Seed is fresh for each plan, and nobody can guess it: tokens are made of it.
	Seed string
}

// windowResult is what the guard decided.
type windowResult struct {
	// Allowed are the steps that may be begun now, Held says which list the others wait
	// in, as an index into Holds.
	Allowed []model.Disruption
	Held    map[stepKey]int

	Holds         []model.GuardHold
	Letting, Done []model.Disruption
	// Changed is set when any of these three is not as it was.
	Changed bool
	// Next is when the first of Holds may go; zero = none will by time.
	Next time.Time
}

// stepKey tells a step from others, whenever it was asked for.
type stepKey struct {
	action string
	server model.ServerName
	claim  model.ClaimName
	value  string
}

func keyOf(d model.Disruption) stepKey { return stepKey{d.Action, d.Server, d.Claim, d.Value} }

// windowKind is what has a limit of its own.
type windowKind int

const (
	takesServer windowKind = iota // its user loses the server, or what is on it
	takesPower                    // its user loses its power for a while
	windowKinds
)

func kindOf(d model.Disruption) windowKind {
	switch d.Action {
	case stepPowerOff, stepOperation, stepDiscover:
		return takesPower
	}
	return takesServer
}

// countKey is what counts once within the window: that a server is released and then
// wiped is one disruption.
type countKey struct {
	kind   windowKind
	server model.ServerName
	claim  model.ClaimName
}

func countOf(d model.Disruption) countKey { return countKey{kindOf(d), d.Server, d.Claim} }

// namespaceOf is the namespace whose limit a step counts for.
func namespaceOf(d model.Disruption) string {
	if d.Claim == "" {
		return ""
	}
	namespace, _ := model.SplitName(d.Claim)
	return namespace
}

// judgeWindow decides which disruptions may be begun, so that never more than the limit
// are within any window, all commits together, but those that a commit approved by name
// (law 2). Judging again with what came out changes nothing: a list that waits may have
// room once another step on one of its servers was let go, so it is judged until nothing
// moves any more.
func judgeWindow(in windowInput) windowResult {
	before := in.Record
	r := judgeOnce(in)
	for n := 0; r.Changed && n < maxJudgements; n++ {
		in.Record = &model.FleetRecord{Holds: r.Holds, ApprovedSteps: r.Letting, Done: r.Done}
		r = judgeOnce(in)
	}
	r.Changed = !sameWindow(&r, before)
	return r
}

// maxJudgements is how often the guard judges anew: each time but the last at least one
// list got room.
const maxJudgements = model.MaxHolds + 2

// judgeOnce decides upon the lists that wait, and then upon what is new.
func judgeOnce(in windowInput) windowResult {
	w := newWindow(in)
	waiting := w.known()
	for _, hold := range w.standing(waiting) {
		w.hold(hold)
	}
	for _, g := range w.groups(waiting) {
		w.judge(g)
	}
	return w.result()
}

// booking is a step that counts from at on.
type booking struct {
	at   time.Time
	step model.Disruption
	// list is that of a step which waits: it may yet be withdrawn or approved, so no step
	// of another list counts as one with it. Zero = the step was let go.
	list int
}

// window is one judgement under way.
type window struct {
	in     windowInput
	asked  map[stepKey]model.Disruption
	limits [windowKinds]int
	// own is the limit of one namespace, where there are others.
	own           [windowKinds]int
	allowed       map[stepKey]bool
	approvedSteps []model.Disruption
	done          []model.Disruption // in the order of At
	// booked is done, and what will be by the time that its list is to go.
	booked []booking
	holds  []model.GuardHold
	serial int // of tokens
}

func newWindow(in windowInput) *window {
	w := &window{in: in, asked: make(map[stepKey]model.Disruption, len(in.Asked)), allowed: make(map[stepKey]bool, len(in.Asked))}
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
		w.asked[keyOf(d)] = d
	}
	return w
}

// known takes over what was decided before, and returns the steps that were not: those
// that are approved or were let go are allowed while they are asked for.
func (w *window) known() (waiting []model.Disruption) {
	now, oldest := w.in.Now, w.in.Now.Add(-w.in.Limits.Window)
	for _, d := range w.in.Record.ApprovedSteps {
		if _, asked := w.asked[keyOf(d)]; asked && !w.allowed[keyOf(d)] {
			w.allowed[keyOf(d)] = true
			w.approvedSteps = append(w.approvedSteps, d)
		}
	}
	for _, d := range w.in.Record.Done {
		if d.At.After(now) {
			d.At = now // the clock was set back
		}
		_, asked := w.asked[keyOf(d)]
		if asked {
			w.allowed[keyOf(d)] = true
		}
		if asked || d.At.After(oldest) { // what was let go and is not begun yet is not held later
			w.done = append(w.done, d)
		}
	}
	slices.SortStableFunc(w.done, func(a, b model.Disruption) int { return a.At.Compare(b.At) })
	for _, d := range w.done {
		w.booked = append(w.booked, booking{d.At, d, 0})
	}
	seen := make(map[stepKey]bool, len(w.in.Asked))
	for _, d := range w.in.Asked {
		if !w.allowed[keyOf(d)] && !seen[keyOf(d)] {
			seen[keyOf(d)] = true
			waiting = append(waiting, d)
		}
	}
	return waiting
}

// standing are the lists that were held before, with the steps that are still asked for.
// Those that a commit approved are let go.
func (w *window) standing(waiting []model.Disruption) []model.GuardHold {
	left := make(map[stepKey]bool, len(waiting))
	for _, d := range waiting {
		left[keyOf(d)] = true
	}
	var holds []model.GuardHold
	for _, h := range w.in.Record.Holds {
		h.Steps = slices.DeleteFunc(slices.Clone(h.Steps), func(d model.Disruption) bool {
			was := left[keyOf(d)]
			delete(left, keyOf(d))
			return !was
		})
		switch {
		case len(h.Steps) == 0:
		case h.Token != "" && slices.Contains(w.in.Approvals, h.Token):
			for _, d := range h.Steps {
				w.allowed[keyOf(d)] = true
			}
			w.approvedSteps = append(w.approvedSteps, h.Steps...)
		default:
			holds = append(holds, h)
		}
	}
	return holds
}

// hold looks whether there is room now for a list that waits for room. One that waits
// for approval goes on to do so, whatever is left of it: who approves is to see the
// whole of what will happen.
func (w *window) hold(h model.GuardHold) {
	if !h.Until.IsZero() {
		at, full := w.earliest(h.Steps)
		if at.Equal(w.in.Now) && full == nil {
			w.letGo(h.Steps)
			return
		}
		h.Until, h.Limit, h.Scope = at, full.limit, full.scope
		w.book(h.Steps, at, len(w.holds)+1)
	}
	w.holds = append(w.holds, h)
}

// groups are the steps that are new, those of one revision and namespace together.
func (w *window) groups(waiting []model.Disruption) [][]model.Disruption {
	type group struct {
		revision  model.Revision
		namespace string
	}
	held := make(map[stepKey]bool)
	for _, h := range w.holds {
		for _, d := range h.Steps {
			held[keyOf(d)] = true
		}
	}
	var order []group
	steps := make(map[group][]model.Disruption)
	for _, d := range waiting {
		if held[keyOf(d)] || w.allowed[keyOf(d)] {
			continue
		}
		d.Revision = cmp.Or(d.Revision, w.in.Revision)
		g := group{d.Revision, namespaceOf(d)}
		if steps[g] == nil {
			order = append(order, g)
		}
		steps[g] = append(steps[g], d)
	}
	all := make([][]model.Disruption, len(order))
	for i, g := range order {
		all[i] = steps[g]
	}
	return all
}

// judge decides upon steps that are new.
func (w *window) judge(steps []model.Disruption) {
	at, full := w.earliest(steps)
	if full == nil {
		w.letGo(steps)
		return
	}
	for i := range steps {
		steps[i].At = time.Time{}
	}
	h := model.GuardHold{
		Revision: steps[0].Revision, Since: w.in.Now, Limit: full.limit, Scope: full.scope, Steps: steps, Until: at,
	}
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
	h.Steps = append(slices.Clone(last.Steps), more.Steps...)
	if h.Scope != last.Scope {
		h.Scope, h.Limit = "", w.limits[kindOf(h.Steps[0])]
	}
	if last.Until.IsZero() || more.Until.IsZero() {
		h.Until = time.Time{}
		return h
	}
	at, full := w.earliest(h.Steps)
	if full != nil {
		h.Until, h.Limit, h.Scope = at, full.limit, full.scope
	}
	return h
}

// letGo lets steps be begun now, and counts them.
func (w *window) letGo(steps []model.Disruption) {
	for _, d := range steps {
		w.allowed[keyOf(d)] = true
		d.At = w.in.Now
		// One entry tells of a server that it was disrupted last, so that nobody's many
		// steps push those of others out of what is remembered.
		w.done = slices.DeleteFunc(w.done, func(e model.Disruption) bool {
			_, asked := w.asked[keyOf(e)]
			return !asked && countOf(e) == countOf(d)
		})
		w.done = append(w.done, d)
	}
	w.book(steps, w.in.Now, 0)
}

// book counts steps from at on; nothing is counted that goes by approval alone.
func (w *window) book(steps []model.Disruption, at time.Time, list int) {
	if at.IsZero() {
		return
	}
	for _, d := range steps {
		w.booked = append(w.booked, booking{at, d, list})
	}
	slices.SortStableFunc(w.booked, func(a, b booking) int { return a.at.Compare(b.at) })
}

// fullness is a limit that there is no room under.
type fullness struct {
	limit int
	scope string
}

// earliest is when steps may go all together, and what stands against it now; nil if
// nothing does. The time is zero if it never is without an approval, for they are more
// than the limit. They never take the room of those that wait already.
func (w *window) earliest(steps []model.Disruption) (time.Time, *fullness) {
	full := w.full(steps, w.in.Now)
	if full == nil {
		return w.in.Now, nil
	}
	if long := w.exceeds(nil, steps); long != nil {
		return time.Time{}, long
	}
	var times []time.Time
	for _, b := range w.booked {
		if at := b.at.Add(w.in.Limits.Window); at.After(w.in.Now) {
			times = append(times, at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	for _, at := range slices.CompactFunc(times, time.Time.Equal) {
		if w.full(steps, at) == nil {
			return at, full
		}
	}
	return time.Time{}, full // not reached: behind the last of times there is all the room
}

// full says which limit steps would break if they went at a time, in the window that
// ends then or in one that ends when those go that wait already.
func (w *window) full(steps []model.Disruption, at time.Time) *fullness {
	until := at.Add(w.in.Limits.Window)
	ends := []time.Time{at}
	for _, b := range w.booked {
		if b.at.After(at) && b.at.Before(until) && !b.at.Equal(ends[len(ends)-1]) {
			ends = append(ends, b.at)
		}
	}
	for _, end := range ends {
		var within []booking
		for _, b := range w.booked {
			if b.at.After(end.Add(-w.in.Limits.Window)) && !b.at.After(end) {
				within = append(within, b)
			}
		}
		if f := w.exceeds(within, steps); f != nil {
			return f
		}
	}
	return nil
}

// exceeds says which limit is broken by what is within one window together with steps.
// Steps that add no server to it break none: a limit may have become lower since.
func (w *window) exceeds(within []booking, steps []model.Disruption) *fullness {
	type counted struct {
		countKey
		list int
	}
	type scope struct {
		kind      windowKind
		namespace string
	}
	seen := make(map[counted]bool, len(within)+len(steps))
	var fleet [windowKinds]int
	own := make(map[scope]int)
	count := func(d model.Disruption, list int) bool {
		key := counted{countOf(d), list}
		if seen[key] {
			return false
		}
		seen[key] = true
		fleet[key.kind]++
		own[scope{key.kind, namespaceOf(d)}]++
		return true
	}
	for _, b := range within {
		count(b.step, b.list)
	}
	for _, d := range steps {
		kind, namespace := kindOf(d), namespaceOf(d)
		if !count(d, 0) {
			continue
		}
		switch {
		case w.own[kind] < w.limits[kind] && own[scope{kind, namespace}] > w.own[kind]:
			return &fullness{w.own[kind], namespace}
		case fleet[kind] > w.limits[kind]:
			return &fullness{w.limits[kind], ""}
		}
	}
	return nil
}

// token is what approves a list.
func (w *window) token(h *model.GuardHold) string {
	var b strings.Builder
	fmt.Fprintf(&b, "guard %s %d", h.Revision, w.serial)
	for _, d := range h.Steps {
		fmt.Fprintf(&b, "\n%s %s %s %q", d.Action, d.Server, d.Claim, d.Value)
	}
	return Token(w.in.Seed, b.String(), 20)
}

func (w *window) result() windowResult {
	r := windowResult{Holds: w.holds, Letting: w.approvedSteps, Done: w.done, Held: make(map[stepKey]int)}
	r.Done = r.Done[max(0, len(r.Done)-MaxDone):]
	for _, d := range w.in.Asked {
		if w.allowed[keyOf(d)] {
			r.Allowed = append(r.Allowed, d)
		}
	}
	next := time.Unix(math.MaxInt32, 0)
	for i, h := range r.Holds {
		for _, d := range h.Steps {
			r.Held[keyOf(d)] = i
		}
		if !h.Until.IsZero() && h.Until.Before(next) {
			next, r.Next = h.Until, h.Until
		}
	}
	r.Changed = !sameWindow(&r, w.in.Record)
	return r
}

func sameWindow(r *windowResult, old *model.FleetRecord) bool {
	return sameSteps(r.Letting, old.ApprovedSteps) && sameSteps(r.Done, old.Done) && slices.EqualFunc(r.Holds, old.Holds, sameHold)
}

func sameSteps(a, b []model.Disruption) bool {
	return slices.EqualFunc(a, b, func(x, y model.Disruption) bool { return x.Same(y) && x.At.Equal(y.At) })
}

func sameHold(a, b model.GuardHold) bool {
	return a.Token == b.Token && a.Until.Equal(b.Until) && a.Limit == b.Limit && a.Scope == b.Scope && sameSteps(a.Steps, b.Steps)
}
