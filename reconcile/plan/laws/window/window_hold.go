package window

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// standing are the lists that were held before, with the steps that are still asked for.
// Those that a commit approved are allowed.
func (w *window) standing(waiting []model.Disruption) []model.GuardHold {
	left := make(map[Key]bool, len(waiting))
	for _, d := range waiting {
		left[KeyOf(d)] = true
	}
	var holds []model.GuardHold
	for _, h := range w.in.Record.Holds {
		h.Steps = slices.DeleteFunc(slices.Clone(h.Steps), func(d model.Disruption) bool {
			was := left[KeyOf(d)]
			delete(left, KeyOf(d))
			return !was
		})
		switch {
		case len(h.Steps) == 0:
		case h.Token != "" && slices.Contains(w.in.Approvals, h.Token):
			for _, d := range h.Steps {
				w.allowed[KeyOf(d)] = true
			}
			w.approvedSteps = append(w.approvedSteps, h.Steps...)
		default:
			holds = append(holds, h)
		}
	}
	return holds
}

// hold checks whether there is room now for a list that waits for room. One that waits
// for approval goes on to do so, whatever is left of it: the person who approves it
// has to see the whole of what will happen.
func (w *window) hold(h model.GuardHold) {
	if !h.Until.IsZero() {
		at, full := w.earliest(h.Steps)
		if at.Equal(w.in.Now) && full == nil {
			w.allow(h.Steps)
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
	held := make(map[Key]bool)
	for _, h := range w.holds {
		for _, d := range h.Steps {
			held[KeyOf(d)] = true
		}
	}
	var order []group
	steps := make(map[group][]model.Disruption)
	for _, d := range waiting {
		if held[KeyOf(d)] || w.allowed[KeyOf(d)] {
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

// decide decides on steps that are new.
func (w *window) decide(steps []model.Disruption) {
	at, full := w.earliest(steps)
	if full == nil {
		w.allow(steps)
		return
	}
	for i := range steps {
		steps[i].At = time.Time{}
	}
	h := model.GuardHold{
		Revision: steps[0].Revision, Since: w.in.Now, Limit: full.limit, Scope: full.scope, Steps: steps, Until: at,
	}
	w.add(h)
}

// holdUncertain has all new steps that are uncertain wait in one list.
func (w *window) holdUncertain(waiting []model.Disruption) {
	var steps []model.Disruption
	for _, g := range w.groups(waiting) {
		for _, d := range g {
			if w.in.Uncertain[KeyOf(d)] {
				steps = append(steps, d)
			}
		}
	}
	if len(steps) > 0 {
		w.add(model.GuardHold{Revision: w.in.Revision, Since: w.in.Now, Steps: steps, Gap: true})
	}
}

// add has a new list wait.
func (w *window) add(h model.GuardHold) {
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

// allow lets steps be begun now, and counts them.
func (w *window) allow(steps []model.Disruption) {
	for _, d := range steps {
		w.allowed[KeyOf(d)] = true
		d.At = w.in.Now
		// One entry tells of a server that it was disrupted last, so that many steps on
		// one do not push those on others out of what is remembered.
		w.done = slices.DeleteFunc(w.done, func(e model.Disruption) bool {
			_, asked := w.asked[KeyOf(e)]
			return !asked && countOf(e) == countOf(d)
		})
		w.done = append(w.done, d)
	}
	w.book(steps, w.in.Now, 0)
}

// token is what approves a list.
func (w *window) token(h *model.GuardHold) string {
	var b strings.Builder
	fmt.Fprintf(&b, "guard %s %d", h.Revision, w.serial)
	for _, d := range h.Steps {
		fmt.Fprintf(&b, "\n%s %s %s %q", d.Action, d.Server, d.Claim, d.Value)
	}
	return proposal.Token(w.in.Seed, b.String(), 20)
}
