package bind

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// unbound says why the claims of a group have no server (law 9).
func (f *Fleet) unbound(g *group) proposal.Why {
	switch {
	case g.why.Reason != "":
	case g.claim.Spec.ServerRef != nil:
		g.why = f.unboundRef(g.claim, g.keys)
	default:
		g.why = proposal.Why{Reason: model.ReasonNoServerFree, Message: f.counted(g), Actor: proposal.RackOperator}
		if f.oneIsComing(g) {
			g.why.Actor = proposal.ActorNone
		}
	}
	return g.why
}

func (f *Fleet) unboundRef(c *model.ServerClaim, keys []string) proposal.Why {
	ref := c.Spec.ServerRef.Name
	s := f.server(ref)
	if s == nil {
		return proposal.Why{Reason: model.ReasonServerUnknown, Message: f.UnknownServer(ref), Actor: proposal.Tenant}
	}
	if unmet := c.UnmetOf(keys, s.Labels); unmet != "" {
		return proposal.Why{Reason: model.ReasonSelectorMismatch, Message: fmt.Sprintf("server %s does not match the claim's "+
			"serverSelector %s", s.Name, unmet), Actor: proposal.Tenant}
	}
	why := proposal.Why{Reason: model.ReasonServerNotFree, Message: fmt.Sprintf("server %s is %s", s.Name, f.against(c, s, keys)), Actor: proposal.RackOperator}
	if s.Coming {
		why.Actor = proposal.ActorNone
	}
	if claim := s.Record.Claim.Name; claim != "" {
		why.Message += " for " + string(claim)
	}
	return why
}

// against is the first reason why a claim does not get a server.
func (f *Fleet) against(c *model.ServerClaim, s *View, keys []string) string {
	switch why := f.lacks(c, s, keys); {
	case why != "":
		return why
	case s.State() != model.StateAvailable:
		return string(s.State())
	}
	return cmp.Or(tainted(c, s), s.Unfree, "taken by claims before it")
}

// counted counts all servers by the first reason why a group does not get them. Labels come before states, because a
// server that becomes free helps only the claims that match it. Servers without the rarest required label are counted
// as one number, because many claims may require as many labels.
func (f *Fleet) counted(g *group) string {
	if len(f.Servers) == 0 {
		return "no server is known yet"
	}
	all := f.all()
	rarest, among := all.rarest(g)
	if sel := g.claim.Spec.ServerSelector; sel != nil && (len(among) == 0 || len(sel.MatchExpressions) > 0) {
		if stray, near := f.labels().Stray(sel, &f.likely.labelGuesses); stray != "" {
			return "no server has label " + stray + " (" + f.number + ")" + near
		}
	}
	counts := make(map[string]int)
	if lack := len(f.Servers) - len(among); lack > 0 {
		counts["lack label "+rarest.key+"="+rarest.value] = lack
	}
	keys := all.distinguishing(g)
	for _, i := range among {
		counts[f.against(g.claim, f.Servers[i], keys)]++
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	for i, reason := range reasons {
		reasons[i] = strconv.Itoa(counts[reason]) + " " + reason
	}
	return f.number + ": " + strings.Join(reasons, ", ")
}

// oneIsComing reports whether a server that the group matches becomes free without an action of a person.
func (f *Fleet) oneIsComing(g *group) bool {
	_, among := f.coming.rarest(g)
	keys := f.coming.distinguishing(g)
	return slices.ContainsFunc(among, func(i int) bool { return f.mismatch(g.claim, f.Servers[i], keys) == "" })
}
