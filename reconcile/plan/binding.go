package plan

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
)

// bindClaims decides which server each claim gets, and notes the taints of servers.
func (f *planner) bindClaims() *bind.Result {
	for i := range f.Claims {
		c := &f.Claims[i]
		if s := f.Served[c.Name]; s != nil {
			c.Server = s.Name
		} else {
			c.Why = f.Unbindable(c.Name)
		}
	}
	servers := make([]bind.Server, len(f.Servers))
	for i, s := range f.Servers {
		servers[i] = s.ToBind()
	}
	r := bind.Plan(bind.Input{
		Servers: servers, Claims: f.Claims, Desired: f.In.Desired, Tenants: f.In.Policy.Tenants,
		Aliases: f.Moment.Aliases, Hold: f.ObserveOnly, Unreadable: f.Record.Unreadable,
	})
	for i, o := range r.Servers {
		s := f.Servers[i]
		s.Binds, s.Taints, s.Bootstrapped = o.Bind, o.Taints, o.Bootstrapped
		if len(o.Taints) > 0 {
			f.Moment.Conditions[s.Name] = o.Taints
		}
	}
	return r
}

// unmatched warns of manifests that name unknown servers or labels, once each BMC was asked for
// its servers.
func (f *planner) unmatched(r *bind.Result) []model.Problem {
	if f.Outdated() || slices.ContainsFunc(f.BMCs.BMCs, (*bmcs.BMC).IsUnasked) {
		return nil
	}
	unread := 0
	for _, b := range f.BMCs.BMCs {
		if b.Facts == nil {
			unread++
		}
	}
	return r.Unmatched(unread)
}

// planClaims finds the records of claims, makes those of new claims, and drops those of claims
// that are gone.
func (f *planner) planClaims(r *Result) {
	known, wanted := f.In.Observed.Claims, 0
	for i := range f.Claims {
		c := &f.Claims[i]
		if c.Record = known[c.Name]; c.Record != nil {
			wanted++
			continue
		}
		c.Record = f.ClaimRecord(c.Name)
		if f.ObserveOnly.Reason == "" {
			r.Decided.Claims = append(r.Decided.Claims, c.Record)
		}
	}
	if wanted == len(known) || f.ObserveOnly.Reason != "" {
		return
	}
	for name := range known {
		if f.In.Desired.Claims[name] == nil && f.Served[name] == nil && !f.DeletionUntrusted(name) {
			r.Decided.DropClaims = append(r.Decided.DropClaims, name)
		}
	}
	slices.Sort(r.Decided.DropClaims)
}
