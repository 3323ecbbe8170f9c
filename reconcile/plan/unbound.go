package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
)

// unbound says why a claim has no server (law 6): what is wrong with the claim,
// or for each server the first thing that speaks against it, counted.
func (f *fleet) unbound(c *model.ServerClaim) Why {
	if f.observeOnly.Reason != "" {
		return f.observeOnly
	}
	if why := f.unready(c); why.Reason != "" {
		return why
	}
	if why := f.unbindable(c.ClaimName()); why.Reason != "" {
		return why
	}
	if ref := c.Spec.ServerRef; ref != nil {
		return f.unboundRef(c, f.resolve(ref.Name))
	}
	asks := f.asks(c)
	if why, ok := f.noneFree[asks]; ok {
		return why
	}
	counts := f.countAgainst(c)
	why := Why{Reason: model.ReasonNoServerFree, Actor: RackOperator}
	if len(f.servers) == 0 {
		why.Message = "no server is known yet"
		return why
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	for i, r := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", counts[r], r)
	}
	why.Message = fmt.Sprintf("%s: %s", text.Plural(len(f.servers), "server"), strings.Join(reasons, ", "))
	f.noneFree[asks] = why
	return why
}

// unboundServers are the servers as unbound counts them for claims that name none.
type unboundServers struct {
	states    map[string]int // how many are in each state in which no claim gets one
	available []*server
	labelled  map[string][]*server // the available ones, by "key=value"
}

// unboundServers sorts the servers once for all claims of a plan.
func (f *fleet) unboundServers() *unboundServers {
	if f.unboundOf != nil {
		return f.unboundOf
	}
	u := &unboundServers{states: make(map[string]int), labelled: make(map[string][]*server)}
	for _, s := range f.servers {
		if s.rec.State != model.StateAvailable {
			u.states[string(s.rec.State)]++
			continue
		}
		u.available = append(u.available, s)
		for k, v := range f.serverLabels(s) {
			u.labelled[k+"="+v] = append(u.labelled[k+"="+v], s)
		}
	}
	f.unboundOf = u
	return u
}

// countAgainst counts the servers by the first thing that speaks against each. Those
// that lack the first label which a claim requires are told by the label, not one by one:
// many claims may ask for as many labels.
func (f *fleet) countAgainst(c *model.ServerClaim) map[string]int {
	u := f.unboundServers()
	counts, among := maps.Clone(u.states), u.available
	if sel := c.Spec.ServerSelector; sel != nil && len(sel.MatchLabels) > 0 && f.in.Policy.Tenants.At(c.Tenant) == nil {
		first := slices.Min(slices.Collect(maps.Keys(sel.MatchLabels)))
		among = u.labelled[first+"="+sel.MatchLabels[first]]
		if lack := len(u.available) - len(among); lack > 0 {
			counts["lack label "+c.Unmet(nil)] = lack
		}
	}
	for _, s := range among {
		counts[f.against(c, s)]++
	}
	return counts
}

// unboundRef says why the one server that a claim names is not given to it.
func (f *fleet) unboundRef(c *model.ServerClaim, name model.ServerName) Why {
	s := f.byName[name]
	if s == nil {
		return Why{Reason: model.ReasonServerUnknown, Message: fmt.Sprintf("server %s is not known", name), Actor: Tenant}
	}
	why := Why{Reason: model.ReasonServerNotFree, Message: fmt.Sprintf("server %s is %s", name, f.against(c, s)), Actor: RackOperator}
	if s.rec.Claim != "" {
		why.Message += " for " + string(s.rec.Claim)
	}
	if strings.HasPrefix(f.mismatch(c, s), "lack") {
		why = Why{Reason: model.ReasonSelectorMismatch, Message: fmt.Sprintf("server %s does not match the claim's serverSelector %s", name, c.Unmet(f.serverLabels(s))), Actor: Tenant}
	}
	return why
}

// against is the first thing that speaks against a server for a claim.
func (f *fleet) against(c *model.ServerClaim, s *server) string {
	switch unfree := f.unfree(s); {
	case unfree != "" && s.rec.State != model.StateAvailable:
		return unfree
	case f.mismatch(c, s) != "":
		return f.mismatch(c, s)
	case unfree != "":
		return unfree
	}
	return "taken by claims before it"
}
