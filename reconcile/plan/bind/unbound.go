package bind

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

// unbound says why the claims of a group have no server (law 9).
func (f *fleet) unbound(g *group) proposal.Why {
	switch c := g.claim; {
	case g.why.Reason != "":
	case c.Spec.ServerRef != nil:
		g.why = f.unboundRef(c)
	default:
		g.why = proposal.Why{Reason: model.ReasonNoServerFree, Message: f.counted(g) + f.likelyLabel(c), Actor: proposal.RackOperator}
		if f.oneIsComing(c) {
			g.why.Actor = proposal.ActorNone
		}
	}
	return g.why
}

// unboundRef says why a claim does not get the server that it names.
func (f *fleet) unboundRef(c *model.ServerClaim) proposal.Why {
	ref := c.Spec.ServerRef.Name
	i, known := f.at(f.resolve(ref))
	if !known {
		return proposal.Why{Reason: model.ReasonServerUnknown, Message: f.unknownServer(ref), Actor: proposal.Tenant}
	}
	s, keys := &f.Servers[i], c.RequiredKeys()
	if strings.HasPrefix(f.mismatch(c, i, keys), "lack") {
		return proposal.Why{Reason: model.ReasonSelectorMismatch, Message: fmt.Sprintf("server %s does not match the claim's "+
			"serverSelector %s", s.Name, c.UnmetOf(keys, s.Labels)), Actor: proposal.Tenant}
	}
	why := proposal.Why{Reason: model.ReasonServerNotFree, Message: fmt.Sprintf("server %s is %s", s.Name, f.against(c, i, keys)), Actor: proposal.RackOperator}
	if s.Coming {
		why.Actor = proposal.ActorNone
	}
	if s.Claim != "" {
		why.Message += " for " + string(s.Claim)
	}
	return why
}

// against is the first reason why a claim does not get a server.
func (f *fleet) against(c *model.ServerClaim, i int, keys []string) string {
	s := &f.Servers[i]
	if s.State != model.StateAvailable {
		return string(s.State)
	}
	return cmp.Or(f.mismatch(c, i, keys), s.Unfree, "taken by claims before it")
}

// counted counts all servers by the first reason why a group does not get them. Servers without
// the first required label are counted as one number, because many claims may require as many labels.
func (f *fleet) counted(g *group) string {
	if len(f.Servers) == 0 {
		return "no server is known yet"
	}
	counts, among := maps.Clone(f.states), f.available.all
	if g.first.key != "" && f.Tenants.At(g.claim.Tenant) == nil {
		among = f.available.by[g.first]
		if lack := len(f.available.all) - len(among); lack > 0 {
			counts["lack label "+g.first.key+"="+g.first.value] = lack
		}
	}
	if len(among) > 0 {
		keys := f.available.distinguishing(g.claim)
		for _, i := range among {
			counts[f.against(g.claim, i, keys)]++
		}
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", counts[r], r)
	}
	return text.Plural(len(f.Servers), "server") + ": " + strings.Join(reasons, ", ")
}

// oneIsComing reports whether a server that the claim matches becomes free without an action of
// a person.
func (f *fleet) oneIsComing(c *model.ServerClaim) bool {
	among := f.coming.among(c)
	if len(among) == 0 {
		return false
	}
	keys := f.coming.distinguishing(c)
	return slices.ContainsFunc(among, func(i int) bool { return f.mismatch(c, i, keys) == "" })
}
