// Package plan decides. Plan is a function of the manifests in Git, the observations and the time: it has no I/O, no
// clock and no randomness, so that the same input gives the same result. Move.Settle decides what follows from the answers to the
// actions of a move. Nothing is decided elsewhere.
//
// Package world puts together what is known. The parts (life, boot, install, disks, power, service, settings) propose
// what could be done with a server, in the order of propose.go. Package laws checks each proposal, and choose.go takes
// the first one that no law holds and that finds its places. Package bind gives servers to claims, package bmcs decides
// which BMCs to read. The words that they share are in proposal, event, booting, policy and reading.
package plan

import (
	"reflect"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

type planner struct {
	*world.World
	laws   *laws.Laws
	places *places
	asked  []*proposal.Proposal // of the guard
}

// Plan decides what to do now, and says why each object is where it is.
func Plan(in *world.Input) *Result {
	f := &planner{World: world.New(in)}
	p := f.BMCs.Propose()
	r := &Result{
		Decided: p.Changes, Moves: make(map[model.ServerName]*Move), Readings: p.Readings, Next: p.Wake, ObserveOnly: f.ObserveOnly,
	}
	f.planClaims(r)
	f.laws = &laws.Laws{
		Moment: f.Moment, ObserveOnly: f.ObserveOnly, HealOnly: f.In.HealOnly != "" && f.In.ObserveOnly == "",
	}
	if f.ObserveOnly.Reason == "" {
		r.Next = proposal.Earlier(r.Next, f.guard())
	}
	bound := f.bindClaims()
	f.noteUnread()
	for i, m := range f.Maintenances {
		if f.Server(m.Server) == nil {
			f.Maintenances[i].Unknown = bound.UnknownServer(m.Manifest.Spec.ServerRef.Name)
		}
	}
	r.Claims, r.BMCs, r.Endpoints, r.Maintenances = f.Claims, f.BMCs.BMCs, f.BMCs.Endpoints(), f.Maintenances
	r.ReadinessRules, r.Unmatched, r.Wanted = bound.Rules, f.unmatched(bound), bound.Wanted
	f.planServers(r)
	r.Asked = f.asked
	if !reflect.DeepEqual(f.Record, &in.Observed.Fleet) {
		r.Decided.Fleet = f.Record
	}
	return r
}

func (f *planner) planServers(r *Result) {
	f.places = newPlaces(f)
	f.Moment.InstallsLeft = f.places.left[proposal.InstallPlace]
	r.Servers = make([]*Server, len(f.Servers))
	for i, s := range f.Servers {
		c := f.choose(s, len(r.Queued))
		r.Servers[i] = f.describe(s, &c)
		r.Next = proposal.Earlier(r.Next, c.Wake)
		if f.In.Busy[s.Name] {
			continue
		}
		if !c.Waits {
			r.Moves[s.Name] = f.move(s, &c.Proposal)
		}
		if c.queued != nil {
			r.Queued = append(r.Queued, QueuedMove{s.Name, f.move(s, c.queued)})
		}
		if d := &r.Decided; c.What == proposal.StepForget {
			d.DropServers = append(d.DropServers, s.Name)
			if !slices.Contains(d.DropBMCFacts, s.Record.BMC) {
				d.DropBMCFacts = append(d.DropBMCFacts, s.Record.BMC)
			}
		}
		if c.Step() != "" {
			r.Taken = append(r.Taken, new(c.Proposal))
		}
	}
}

// bindClaims decides which server each claim gets, and notes the taints of servers.
func (f *planner) bindClaims() *bind.Fleet {
	for _, c := range f.Claims {
		if s := f.Served[c.Name]; s != nil {
			c.Server = s.Name
		} else {
			c.Why = f.Unbindable(c)
		}
	}
	in := bind.Input{
		Moment: f.Moment, Servers: make([]*bind.View, 0, len(f.Servers)), Claims: f.Claims, Hold: f.ObserveOnly, Unreadable: f.Record.Unreadable,
		Checked: f.In.Checked,
	}
	for _, s := range f.Servers {
		if s.State() == model.StateAvailable {
			s.Architecture = proposal.ArchitectureOf(s.Server).Name
		}
		in.Servers = append(in.Servers, &s.View)
	}
	r := bind.Plan(in)
	for _, s := range f.Servers {
		if len(s.Taints) > 0 {
			f.Moment.Conditions[s.Name] = s.Taints
		}
	}
	return r
}

// unmatched warns of manifests that name unknown servers or labels, once all BMCs were asked.
func (f *planner) unmatched(r *bind.Fleet) []model.Problem {
	if f.Outdated() || slices.ContainsFunc(f.BMCs.BMCs, (*bmcs.BMC).IsUnasked) {
		return nil
	}
	read := func(b *bmcs.BMC) bool { return b.Facts != nil }
	return r.Unmatched(len(slices.DeleteFunc(slices.Clone(f.BMCs.BMCs), read)))
}

// planClaims finds the records of claims, makes new ones, and drops those of claims that are gone.
func (f *planner) planClaims(r *Result) {
	known, wanted := f.In.Observed.Claims, 0
	for _, c := range f.Claims {
		if c.Record = known[c.Name]; c.Record != nil {
			wanted++
			continue
		}
		c.Record = f.NewRecord(c.Name)
		if f.ObserveOnly.Reason == "" {
			r.Decided.Claims = append(r.Decided.Claims, c.Record)
		}
	}
	if wanted == len(known) || f.ObserveOnly.Reason != "" {
		return
	}
	for name := range known {
		if f.In.Desired.Claims[name] == nil && f.Served[name] == nil && !f.Desired.IsQuarantined(name.Identity()) {
			r.Decided.DropClaims = append(r.Decided.DropClaims, name)
		}
	}
	slices.Sort(r.Decided.DropClaims)
}
