package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// unbound says why a claim has no server (law 6): what is wrong with the claim,
// or for each server the first thing that speaks against it, counted.
func (f *fleet) unbound(d *desiredClaim) proposal.Why {
	c := d.claim
	if f.observeOnly.Reason != "" {
		return f.observeOnly
	}
	if !d.plain {
		if why := f.unready(c); why.Reason != "" {
			return why
		}
	}
	if why := f.unbindable(d.name); why.Reason != "" {
		return why
	}
	if !d.plain && c.Spec.ServerRef != nil {
		return f.unboundRef(c, c.Spec.ServerRef.Name)
	}
	asks := f.memory.asks(d)
	if asks.of != f.memory.plans {
		asks.of, asks.unbound = f.memory.plans, f.noneFree(asks, c)
	}
	return asks.unbound
}

// noneFree says of all claims that ask for the same why no server is free for them.
func (f *fleet) noneFree(asks *asked, c *model.ServerClaim) proposal.Why {
	u, why := f.unboundServers(), proposal.Why{Reason: model.ReasonNoServerFree, Actor: proposal.RackOperator}
	if f.oneIsComing(u, asks, c) {
		why.Actor = proposal.ActorNone
	}
	if f.countsByLabel(asks, c) && u.noneHas(asks.first) {
		why.Message = f.memory.lacks(asks, u.lackText()) + f.likelyLabel(c)
		return why
	}
	why.Message = u.text(f.countAgainst(asks, c)) + f.likelyLabel(c)
	return why
}

// unboundServers are the servers as unbound counts them for claims that name none.
type unboundServers struct {
	all       int
	states    map[string]int // how many are in each state in which no claim gets one
	available []*server
	coming    []*server           // which become free without anybody's doing
	comingBy  map[label][]*server // the same by their labels
	labelled  map[label][]*server // the available ones
	lacking   lackText            // made when first needed
}

// text says what speaks against how many servers.
func (u *unboundServers) text(counts map[string]int) string {
	if u.all == 0 {
		return "no server is known yet"
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", counts[r], r)
	}
	return fmt.Sprintf("%s: %s", text.Plural(u.all, "server"), strings.Join(reasons, ", "))
}

// noneHas reports whether there are available servers and none of them has a label.
func (u *unboundServers) noneHas(l label) bool {
	return len(u.available) > 0 && len(u.labelled[l]) == 0
}

// lackText is why a claim has no server that requires first a label which no available
// server has. There may be very many such claims.
func (u *unboundServers) lackText() lackText {
	if u.lacking == (lackText{}) {
		const mark = "lack label \x00" // which none is
		counts := maps.Clone(u.states)
		counts[mark] = len(u.available)
		u.lacking.before, u.lacking.after, _ = strings.Cut(u.text(counts), mark)
	}
	return u.lacking
}

// countsByLabel reports whether for a claim servers are counted by the first label that it
// requires.
func (f *fleet) countsByLabel(asks *asked, c *model.ServerClaim) bool {
	return asks.requires && f.in.Policy.Tenants.At(c.Tenant) == nil
}

// lacking says that servers have not a label, as ServerClaim.Unmet writes it.
func (l label) lacking() string { return "lack label " + l.key + "=" + l.value }

// unboundServers sorts the servers once for all claims of a plan.
func (f *fleet) unboundServers() *unboundServers {
	if f.unboundOf != nil {
		return f.unboundOf
	}
	u := &unboundServers{all: len(f.servers), states: make(map[string]int), labelled: make(map[label][]*server), comingBy: make(map[label][]*server)}
	for _, s := range f.servers {
		if s.rec.Life.State != model.StateAvailable {
			u.states[string(s.rec.Life.State)]++
			if s.coming() {
				u.coming = append(u.coming, s)
				for k, v := range f.serverLabels(s) {
					u.comingBy[label{k, v}] = append(u.comingBy[label{k, v}], s)
				}
			}
			continue
		}
		u.available = append(u.available, s)
		for k, v := range f.serverLabels(s) {
			u.labelled[label{k, v}] = append(u.labelled[label{k, v}], s)
		}
	}
	f.unboundOf = u
	return u
}

// oneIsComing reports whether a server that the claim may have will be free without anybody's
// doing.
func (f *fleet) oneIsComing(u *unboundServers, asks *asked, c *model.ServerClaim) bool {
	among, keys := u.coming, distinguishing(c, u.comingBy, len(u.coming))
	if f.countsByLabel(asks, c) {
		among = u.comingBy[asks.first]
	}
	return slices.ContainsFunc(among, func(s *server) bool { return f.mismatch(c, s, keys) == "" })
}

// coming reports whether the server will be free without anybody's doing: it is being discovered
// or wiped, and nothing stands in the way of that.
func (s *server) coming() bool {
	if s.spec != nil && s.spec.Spec.Unclaimable || s.outOfReach() {
		return false
	}
	switch s.rec.Life.State {
	case model.StateInitial:
		return s.rec.Life.FoundRunning.IsZero() && s.fleet.in.Policy.DiscoveryImage != ""
	case model.StateDiscovery:
		return true
	case model.StateCleanup:
		return s.cleanupMode() == model.CleanupNone || s.cleanupImage() != ""
	case model.StateAvailable, model.StateReserved, model.StateReleased, model.StateMaintenance, model.StateError:
	}
	return false
}

// countAgainst counts the servers by the first thing that speaks against each. Those
// that lack the first label which a claim requires are counted by the label, not one by one:
// many claims may ask for as many labels.
func (f *fleet) countAgainst(asks *asked, c *model.ServerClaim) map[string]int {
	u := f.unboundServers()
	counts, among := maps.Clone(u.states), u.available
	if f.countsByLabel(asks, c) {
		among = u.labelled[asks.first]
		if lack := len(u.available) - len(among); lack > 0 {
			counts[asks.first.lacking()] = lack
		}
	}
	keys := distinguishing(c, u.labelled, len(u.available))
	for _, s := range among {
		counts[f.against(c, s, keys)]++
	}
	return counts
}

// unboundRef says why the one server that a claim names is not given to it.
func (f *fleet) unboundRef(c *model.ServerClaim, ref string) proposal.Why {
	name := f.resolve(ref)
	s := f.server(name)
	if s == nil {
		return proposal.Why{Reason: model.ReasonServerUnknown, Message: f.unknownServer(ref), Actor: proposal.Tenant}
	}
	keys := c.RequiredKeys()
	why := proposal.Why{Reason: model.ReasonServerNotFree, Message: fmt.Sprintf("server %s is %s", name, f.against(c, s, keys)), Actor: proposal.RackOperator}
	if s.coming() {
		why.Actor = proposal.ActorNone
	}
	if s.rec.Claim.Name != "" {
		why.Message += " for " + string(s.rec.Claim.Name)
	}
	if strings.HasPrefix(f.mismatch(c, s, keys), "lack") {
		why = proposal.Why{Reason: model.ReasonSelectorMismatch, Message: fmt.Sprintf("server %s does not match the claim's "+
			"serverSelector %s", name, c.UnmetOf(keys, f.serverLabels(s))), Actor: proposal.Tenant}
	}
	return why
}

// against is the first thing that speaks against a server for a claim.
func (f *fleet) against(c *model.ServerClaim, s *server, keys []string) string {
	unfree := f.unfree(s)
	if unfree != "" && s.rec.Life.State != model.StateAvailable {
		return unfree
	}
	return cmp.Or(f.mismatch(c, s, keys), unfree, "taken by claims before it")
}
