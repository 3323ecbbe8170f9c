package bind

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

// Input is the fleet as one plan sees it.
type Input struct {
	Servers []Server // sorted by name
	Claims  []Claim  // sorted by name
	Desired *model.Desired
	Tenants model.Tenants
	// Aliases has the names of servers that Git calls otherwise, by their names in Git.
	Aliases map[string]model.ServerName
	// Hold says why no claim may be bound; zero if claims may be bound.
	Hold       proposal.Why
	Unreadable []model.UnreadableRecord
}

// Server is a view of one server.
type Server struct {
	Name     model.ServerName
	UUID     string
	Labels   map[string]string
	Manifest *model.Server // nil if Git has none
	State    model.ServerState
	Claim    model.ClaimName // of its record
	// Unfree says in a few words why an Available server cannot be bound; "" if it can.
	Unfree string
	// Busy servers get no claim in this plan, because an earlier move is under way.
	Busy bool
	// Coming servers become free without an action of a person.
	Coming bool
	// Bootstrapped are the BootstrapOnly rules whose conditions have held once.
	Bootstrapped []string
	// Statuses of conditions that ServerReadinessRules can require; unset without rules.
	BMCReadable, Discovered, InventoryComplete, Wiped string
}

// Claim is one claim in force.
type Claim struct {
	Name     model.ClaimName
	Manifest *model.ServerClaim
	Record   *model.ClaimRecord
	Server   model.ServerName // "" if it has none
	// Why says why the claim has no server. In an Input it says why it must not get one,
	// whatever servers are free.
	Why proposal.Why
}

// Result has the decisions on claims and ServerReadinessRules.
type Result struct {
	Claims  []*Claim
	Servers []Outcome // one for each server of the Input
	Rules   []ReadinessRule
	fleet   *fleet
}

// Outcome has the decisions on one server.
type Outcome struct {
	Bind         *model.ServerClaim   // the claim that it gets, nil if none
	Taints       []proposal.RuleTaint // by ServerReadinessRules
	Bootstrapped []string             // the bootstrap-only rules whose conditions hold for the first time
}

// Plan decides on all claims and all servers at once, so that no two claims get one server.
//
// Claims are served by priority, then in the order in which they came to Git, then by name.
// A claim takes the matching server that the fewest waiting claims could use, then the first
// by name. Claims with equal requirements form a group, so that n claims take O(n log n).
func Plan(in Input) *Result {
	f := newFleet(in)
	r := &Result{Rules: f.readiness(), Servers: f.outcomes, Claims: make([]*Claim, len(in.Claims)), fleet: f}
	all, waiting := slices.Clone(in.Claims), []waitingClaim(nil)
	for i := range all {
		c := &all[i]
		r.Claims[i] = c
		switch {
		case c.Server != "":
			continue
		case in.Hold.Reason != "":
			c.Why = in.Hold
			continue
		}
		if c.Why = cmp.Or(f.unready(c.Manifest), c.Why); c.Why.Reason == "" {
			waiting = append(waiting, waitingClaim{Claim: c, group: f.groupOf(c.Manifest)})
		}
	}
	f.serve(waiting)
	for _, w := range waiting {
		if w.Why.Reason == "" {
			w.Why = f.unbound(w.group)
		}
	}
	return r
}

// waitingClaim is a claim that may get a server.
type waitingClaim struct {
	*Claim
	group    *group
	priority int
}

// serve gives servers to claims.
func (f *fleet) serve(waiting []waitingClaim) {
	queue, wanted := f.queue(waiting), make([]int, len(f.Servers))
	var groups []*group
	for _, w := range queue {
		if w.group.size++; w.group.size == 1 {
			groups = append(groups, w.group)
		}
	}
	for _, g := range groups {
		for _, i := range g.candidates {
			wanted[i] += g.size
		}
	}
	for _, g := range groups {
		slices.SortFunc(g.candidates, func(a, b int) int {
			return cmp.Or(cmp.Compare(wanted[a], wanted[b]), cmp.Compare(a, b))
		})
	}
	for _, w := range queue {
		g := w.group
		for len(g.candidates) > 0 && f.outcomes[g.candidates[0]].Bind != nil {
			g.candidates = g.candidates[1:]
		}
		if len(g.candidates) > 0 {
			at := g.candidates[0]
			f.outcomes[at].Bind = w.Manifest
			w.Why = proposal.Why{Reason: model.ReasonInProgress, Message: fmt.Sprintf("server %s is chosen for it", f.Servers[at].Name)}
		}
	}
}

// queue returns the claims for which a server is free, in their order. ServerBootConfigurations
// come last: they are for servers that no claim requests.
func (f *fleet) queue(waiting []waitingClaim) []waitingClaim {
	var queue []waitingClaim
	var adopted map[model.ClaimName]bool
	for _, w := range waiting {
		if len(w.group.candidates) == 0 {
			continue
		}
		if adopted == nil {
			adopted = f.adopted()
		}
		if !adopted[w.Name] {
			w.priority, _ = strconv.Atoi(w.Manifest.Annotations[model.AnnotationPriority])
			queue = append(queue, w)
		}
	}
	slices.SortFunc(queue, func(a, b waitingClaim) int {
		if a.Manifest.BootConfiguration != b.Manifest.BootConfiguration {
			if a.Manifest.BootConfiguration {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.Record.Sequence, b.Record.Sequence), cmp.Compare(a.Name, b.Name))
	})
	return queue
}

// adopted are the claims that Servers in Git name as theirs, while those servers are not
// discovered yet.
func (f *fleet) adopted() map[model.ClaimName]bool {
	claims := make(map[model.ClaimName]bool)
	for name, spec := range f.Desired.Servers {
		if ref := spec.Spec.ServerClaimRef; ref != nil {
			if at, known := f.at(f.resolve(string(name))); !known || f.Servers[at].State == model.StateInitial {
				claims[model.Named[model.ClaimName](ref.Namespace, ref.Name)] = true
			}
		}
	}
	return claims
}

// unready says why a claim cannot be served, whatever servers are free.
func (f *fleet) unready(c *model.ServerClaim) proposal.Why {
	why := Suspended(c)
	if c.BootConfiguration {
		why = cmp.Or(why, f.superseded(c))
	}
	if c.Spec.IgnitionSecretRef != nil && why.Reason == "" {
		_, why = booting.BootOfClaim(f.Desired, c)
	}
	return why
}

// Suspended says that a claim has the annotation by which it is ignored, if so.
func Suspended(c *model.ServerClaim) proposal.Why {
	if c.Annotations[model.AnnotationOperation] != model.OperationIgnore {
		return proposal.Why{}
	}
	return proposal.Why{Reason: model.ReasonIgnored, Message: "suspended by annotation " + model.AnnotationOperation + ": ignore", Actor: proposal.Tenant}
}

// superseded says why a ServerBootConfiguration has no server, though one may be free: the
// server boots what a claim or another ServerBootConfiguration says.
func (f *fleet) superseded(c *model.ServerClaim) proposal.Why {
	name, own := f.resolve(c.Spec.ServerRef.Name), model.Named[model.ClaimName](c.Namespace, c.Name)
	claim, named := f.naming[c.Spec.ServerRef.Name]
	if f.Desired.Claims[own] != nil {
		claim, named = own, true
	}
	why := proposal.Why{Reason: model.ReasonSuperseded, Actor: proposal.RackOperator}
	if named {
		why.Message = fmt.Sprintf("server %s boots what ServerClaim %s says", name, claim)
		return why
	}
	at, known := f.at(name)
	if !known || f.Servers[at].Manifest == nil || f.Servers[at].Manifest.Spec.BootConfigurationRef == nil {
		return proposal.Why{}
	}
	spec := f.Servers[at].Manifest
	other := model.Named[model.ClaimName](spec.Spec.BootConfigurationRef.Namespace, spec.Spec.BootConfigurationRef.Name)
	if other == own {
		return proposal.Why{}
	}
	why.Message = fmt.Sprintf("Server %s (%s) names another in bootConfigurationRef: %s", spec.Name, spec.Source, other)
	return why
}
