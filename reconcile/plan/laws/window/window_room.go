package window

import (
	"slices"
	"time"

	"ingot/model"
)

// booking is a step that counts from at on.
type booking struct {
	at   time.Time
	step model.Disruption
	// list is that of a step which waits: it may yet be withdrawn or approved, so no step
	// of another list counts as one with it. Zero = the step was allowed.
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

// fullness is a limit that leaves no room.
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
