package plan

import (
	"cmp"
	"maps"

	"ingot/model"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
)

// Assume returns the input of the next plan if all that r decided is saved and its actions succeed, and whether that
// differs from in. A machine of which more is requested than a reading is busy from then on.
func Assume(in *world.Input, r *Result) (next *world.Input, changed bool) {
	next, o := copied(in)
	c := &r.Decided
	if c.Fleet != nil {
		o.Fleet = *c.Fleet
	}
	for _, rec := range c.Claims {
		o.Claims[rec.Name] = rec
	}
	for _, rec := range c.Endpoints {
		o.Endpoints[rec.Name] = rec
	}
	drop(o.Claims, c.DropClaims)
	drop(o.Endpoints, c.DropEndpoints)
	drop(o.Servers, c.DropServers)
	changed = c.Fleet != nil || len(c.Claims)+len(c.Endpoints)+len(c.DropClaims)+len(c.DropEndpoints)+len(c.DropServers) > 0
	for name, m := range r.Moves {
		changed = changed || m.Then != in.Observed.Servers[name]
		o.Servers[name] = m.Then
		for _, a := range m.Do {
			if _, reads := a.(proposal.Inspect); !reads {
				next.Busy[name], changed = true, true
			} else if read := in.Readings[name]; o.ServerFacts[name] != nil && read.At.Before(in.Now) {
				read = read.Saw(o.ServerFacts[name].Power, m.Then.Power.Asked, &in.Policy, in.Now)
				read.InventoryAt = in.Now
				next.Readings[name], changed = read, true
			}
		}
	}
	return next, changed
}

// AssumeWiped returns the input of the next plan if servers that have to be wiped are, and so are free.
func AssumeWiped(in *world.Input, names []model.ServerName) *world.Input {
	next, o := copied(in)
	o.ServerFacts = maps.Clone(o.ServerFacts)
	for _, name := range names {
		s := &proposal.Server{Moment: &proposal.Moment{Now: in.Now, Desired: in.Desired, Observed: in.Observed}, Record: o.Servers[name]}
		s = event.After(event.After(s, event.Event{Kind: event.GivenUp}), event.Event{Kind: event.Freed, Proof: new(proposal.Proof)})
		o.Servers[name] = s.Record
		facts := *cmp.Or(o.ServerFacts[name], &model.ServerFacts{Name: name, Inventory: new(model.Inventory)})
		facts.Power = model.PowerOff
		o.ServerFacts[name] = &facts
		next.Readings[name] = reading.State{At: in.Now, Parts: reading.Parts{InventoryAt: in.Now}, Reached: true, Offs: in.Policy.OffReadings}
		delete(next.Busy, name)
	}
	return next
}

// copied returns a copy of an input, with copies of the maps that assumptions change.
func copied(in *world.Input) (*world.Input, *model.Observed) {
	next, o := *in, *in.Observed
	o.Servers, o.Claims, o.Endpoints = maps.Clone(o.Servers), maps.Clone(o.Claims), maps.Clone(o.Endpoints)
	next.Observed, next.Readings, next.Busy = &o, maps.Clone(in.Readings), make(map[model.ServerName]bool, len(in.Busy))
	maps.Copy(next.Busy, in.Busy)
	return &next, &o
}

func drop[K comparable, V any](m map[K]V, names []K) {
	for _, name := range names {
		delete(m, name)
	}
}
