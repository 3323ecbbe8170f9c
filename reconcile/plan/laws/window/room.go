package window

import (
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

type windowKind int

const (
	takesServer windowKind = iota // its user loses the server, or what is on it
	takesPower                    // its user loses its power for a while
	windowKinds
)

func kindOf(d model.Disruption) windowKind {
	if slices.Contains([]string{proposal.StepPowerOff, proposal.StepOperation, proposal.StepDiscover}, d.Action) {
		return takesPower
	}
	return takesServer
}

// namespaceOf is the namespace whose limit a step counts for.
func namespaceOf(d model.Disruption) string {
	if d.Claim == "" {
		return ""
	}
	namespace, _ := model.SplitName(d.Claim)
	return namespace
}

// counted is what counts once within the window: that a server is released and then wiped is one disruption. A step
// that waits in a list may be withdrawn, so that no step of another list counts as one with it. List 0 was allowed.
type counted struct {
	kind   windowKind
	server model.ServerName
	claim  model.ClaimName
	list   int
}

func countOf(d model.Disruption, list int) counted {
	return counted{kindOf(d), d.Server, d.Claim, list}
}

// booking is a step, of a list, that counts from at on.
type booking struct {
	at   time.Time
	step model.Disruption
	list int
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

// fullness is a limit that leaves no room, of a namespace or "", the fleet.
type fullness struct {
	limit int
	scope string
}

// earliest is when steps may go all together, and the limit that is full now, nil if none is. The time is zero if they
// exceed a limit by themselves, so that they need an approval. They never take the room of lists that wait already.
func (w *window) earliest(steps []model.Disruption) (time.Time, *fullness) {
	full := w.full(steps, w.in.Now)
	if full == nil {
		return w.in.Now, nil
	}
	if long := w.exceeds(nil, steps); long != nil {
		return time.Time{}, long
	}
	tried := w.in.Now
	for _, b := range w.booked {
		at := b.at.Add(w.in.Policy.GuardWindow)
		if !at.After(tried) {
			continue
		}
		if tried = at; w.full(steps, at) == nil {
			break // behind the last of booked there is all the room
		}
	}
	return tried, full
}

// full returns the limit that steps would exceed at a time, in the window that ends then or when a waiting list goes.
func (w *window) full(steps []model.Disruption, at time.Time) *fullness {
	ends := []time.Time{at}
	for _, b := range w.booked {
		if b.at.After(at) && b.at.Before(at.Add(w.in.Policy.GuardWindow)) && !b.at.Equal(ends[len(ends)-1]) {
			ends = append(ends, b.at)
		}
	}
	for _, end := range ends {
		var within []booking
		for _, b := range w.booked {
			if b.at.After(end.Add(-w.in.Policy.GuardWindow)) && !b.at.After(end) {
				within = append(within, b)
			}
		}
		if f := w.exceeds(within, steps); f != nil {
			return f
		}
	}
	return nil
}

// exceeds returns the limit that steps exceed together with the bookings within one window. Steps that add no server
// exceed none: a limit may be lower since those began.
func (w *window) exceeds(within []booking, steps []model.Disruption) *fullness {
	type scope struct {
		kind      windowKind
		namespace string
	}
	seen, own := make(map[counted]bool, len(within)+len(steps)), make(map[scope]int)
	var fleet [windowKinds]int
	count := func(d model.Disruption, list int) (added bool) {
		c := countOf(d, list)
		if seen[c] {
			return false
		}
		seen[c] = true
		fleet[c.kind]++
		own[scope{c.kind, namespaceOf(d)}]++
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
