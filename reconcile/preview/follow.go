package preview

import (
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// rounds is how many plans are made at most, one after the other. A server needs few until
// something is asked of it, and all take their decisions at the same time.
const rounds = 24

// future is what is decided if Git says something and nothing else happens.
type future struct {
	in   *world.Input
	last *plan.Result
	// steps are what the guard lets be begun, by server.
	steps map[model.ServerName][]model.Disruption
	// held is what it holds back.
	held map[model.ServerName][]model.Disruption
	// asked is what is asked of each machine first.
	asked map[model.ServerName][]proposal.Action
}

// follow plans until nothing is left to decide.
func follow(in *world.Input) *future {
	f := &future{
		in: in, steps: make(map[model.ServerName][]model.Disruption), held: make(map[model.ServerName][]model.Disruption),
		asked: make(map[model.ServerName][]proposal.Action),
	}
	before := in.Observed.Fleet
	for range rounds {
		f.last = plan.Plan(in)
		f.noteSteps(&before)
		if !f.record() {
			break
		}
	}
	for _, h := range in.Observed.Fleet.Holds {
		for _, d := range h.Steps {
			f.held[d.Server] = append(f.held[d.Server], d)
		}
	}
	return f
}

// noteSteps notes what the guard let be begun, that it had not before.
func (f *future) noteSteps(before *model.FleetRecord) {
	decided := f.last.Decided.Fleet
	if decided == nil {
		return
	}
	known := func(list []model.Disruption, d model.Disruption) bool {
		return slices.ContainsFunc(list, func(e model.Disruption) bool { return d.Same(e) && d.At.Equal(e.At) })
	}
	for _, d := range slices.Concat(decided.Done, decided.ApprovedSteps) {
		if !known(before.Done, d) && !known(before.ApprovedSteps, d) && !slices.ContainsFunc(f.steps[d.Server], d.Same) {
			f.steps[d.Server] = append(f.steps[d.Server], d)
		}
	}
}

// record takes what was decided for recorded, and reports whether that was anything. What was
// planned with stays as it was, for a plan's memory goes by that.
func (f *future) record() bool {
	o, c := *f.in.Observed, f.last.Decided
	f.in.Observed = &o
	claims, endpoints := len(c.Claims)+len(c.DropClaims) > 0, len(c.Endpoints)+len(c.DropEndpoints) > 0
	any := c.Fleet != nil || claims || endpoints
	if c.Fleet != nil {
		o.Fleet = *c.Fleet
	}
	if claims {
		o.Claims = maps.Clone(o.Claims)
	}
	if endpoints {
		o.Endpoints = maps.Clone(o.Endpoints)
	}
	if len(f.last.Moves)+len(c.DropServers) > 0 {
		o.Servers, f.in.Readings = maps.Clone(o.Servers), maps.Clone(f.in.Readings)
	}
	for _, rec := range c.Claims {
		o.Claims[rec.Name] = rec
	}
	for _, name := range c.DropClaims {
		delete(o.Claims, name)
	}
	for _, rec := range c.Endpoints {
		o.Endpoints[rec.Name] = rec
	}
	for _, name := range c.DropEndpoints {
		delete(o.Endpoints, name)
	}
	for _, name := range c.DropServers {
		any = true
		delete(o.Servers, name)
	}
	for name, m := range f.last.Moves {
		any = true
		o.Servers[name] = m.Then
		f.ask(name, m)
	}
	return any
}

// ask has a server be under way once more is asked of its machine than to be read.
func (f *future) ask(name model.ServerName, m *plan.Move) {
	read := len(m.Do) > 0
	for _, a := range m.Do {
		if _, ok := a.(proposal.Inspect); !ok {
			read = false
			f.asked[name] = append(f.asked[name], a)
		}
	}
	r := f.in.Readings[name]
	switch {
	case len(m.Do) == 0:
	case read && r.Failures == 0 && !r.At.IsZero():
		r.At, r.InventoryAt = f.in.Now, f.in.Now
		f.in.Readings[name] = r
	default:
		f.in.Busy[name] = true
	}
}
