package plan

import (
	"reflect"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// planner is one plan under way.
type planner struct {
	*world.World
	laws   *laws.Laws
	places *places
}

// Plan decides what to do now, and says why each object is where it is. The same input
// gives the same result.
func Plan(in *world.Input) *Result {
	f := &planner{World: world.New(in)}
	p := f.BMCs.Propose()
	r := &Result{
		Decided: p.Changes, Moves: make(map[model.ServerName]*Move), Readings: p.Readings, Next: p.Wake, ObserveOnly: f.ObserveOnly,
	}
	f.planClaims(r)
	f.laws = &laws.Laws{
		Moment: f.Moment, ObserveOnly: f.ObserveOnly, HealOnly: f.In.HealOnly != "" && f.In.ObserveOnly == "",
		Guard: laws.NewGuard(&f.In.Observed.Fleet),
	}
	if f.Outdated() {
		f.laws.Outdated = f.ObserveOnly
	}
	if f.ObserveOnly.Reason == "" {
		r.Next = proposal.Earlier(r.Next, f.guard())
	}
	bound := f.bindClaims()
	f.noteUnread()
	r.Claims, r.BMCs, r.Endpoints, r.Maintenances = bound.Claims, f.BMCs.BMCs, f.BMCs.Endpoints(), f.maintenances(bound)
	r.ReadinessRules, r.Unmatched = bound.Rules, f.unmatched(bound)
	f.planServers(r)
	if !reflect.DeepEqual(f.Record, &in.Observed.Fleet) {
		r.Decided.Fleet = f.Record
	}
	return r
}

// planServers takes each server's next step.
func (f *planner) planServers(r *Result) {
	f.places = newPlaces(f)
	f.Moment.InstallsLeft = f.places.left[proposal.InstallPlace]
	r.Servers = make([]*Server, len(f.Servers))
	for i, s := range f.Servers {
		c := f.choose(s)
		r.Servers[i] = f.describe(s, &c)
		r.Next = proposal.Earlier(r.Next, c.Wake)
		if f.In.Busy[s.Name] {
			continue
		}
		if !c.Waits && !c.Forget {
			r.Moves[s.Name] = f.move(s, &c.Proposal)
		}
		if c.queued != nil {
			f.places.queued = append(f.places.queued, QueuedMove{s.Name, f.move(s, c.queued)})
		}
		if d := &r.Decided; c.Forget {
			d.DropServers = append(d.DropServers, s.Name)
			if !slices.Contains(d.DropBMCFacts, s.Record.BMC) {
				d.DropBMCFacts = append(d.DropBMCFacts, s.Record.BMC)
			}
		}
	}
	r.Queued = f.places.queued
}
