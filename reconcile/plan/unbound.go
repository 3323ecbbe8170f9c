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
func (f *fleet) unbound(name model.ClaimName, c *model.ServerClaim) Why {
	if f.observeOnly.Reason != "" {
		return f.observeOnly
	}
	if why := f.unready(c); why.Reason != "" {
		return why
	}
	if why := f.unbindable(name); why.Reason != "" {
		return why
	}
	if ref := c.Spec.ServerRef; ref != nil {
		return f.unboundRef(c, f.resolve(ref.Name))
	}
	u := f.unboundServers()
	if text, ok := u.noneHas(f, c); ok {
		return Why{Reason: model.ReasonNoServerFree, Message: text, Actor: RackOperator}
	}
	asks := f.asks(c)
	if why, ok := f.noneFree[asks]; ok {
		return why
	}
	why := Why{Reason: model.ReasonNoServerFree, Message: u.text(f.countAgainst(c)), Actor: RackOperator}
	f.noneFree[asks] = why
	return why
}

// unboundServers are the servers as unbound counts them for claims that name none.
type unboundServers struct {
	all       int
	states    map[string]int // how many are in each state in which no claim gets one
	available []*server
	labelled  map[label][]*server // the available ones
	// lacking is the text for a claim that requires a label which no available server has,
	// around that label; made when first needed.
	lacking *[2]string
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

// noneHas is the text for a claim that requires first a label which no available server
// has. There may be very many such claims, and but for the label the text is the same.
func (u *unboundServers) noneHas(f *fleet, c *model.ServerClaim) (string, bool) {
	first, requires := f.firstLabel(c)
	if !requires || len(u.available) == 0 || len(u.labelled[first]) > 0 {
		return "", false
	}
	if u.lacking == nil {
		const mark = "lack label \x00" // which none is
		counts := maps.Clone(u.states)
		counts[mark] = len(u.available)
		before, after, _ := strings.Cut(u.text(counts), mark)
		u.lacking = &[2]string{before, after}
	}
	return u.lacking[0] + first.lacking() + u.lacking[1], true
}

// firstLabel is the first label that a claim requires, if servers are to be counted by it.
func (f *fleet) firstLabel(c *model.ServerClaim) (label, bool) {
	sel := c.Spec.ServerSelector
	if sel == nil || len(sel.MatchLabels) == 0 || f.in.Policy.Tenants.At(c.Tenant) != nil {
		return label{}, false
	}
	var first string
	for k := range sel.MatchLabels {
		if first == "" || k < first {
			first = k
		}
	}
	return label{first, sel.MatchLabels[first]}, true
}

// lacking says that servers have not a label, as ServerClaim.Unmet writes it.
func (l label) lacking() string { return "lack label " + l.key + "=" + l.value }

// unboundServers sorts the servers once for all claims of a plan.
func (f *fleet) unboundServers() *unboundServers {
	if f.unboundOf != nil {
		return f.unboundOf
	}
	u := &unboundServers{all: len(f.servers), states: make(map[string]int), labelled: make(map[label][]*server)}
	for _, s := range f.servers {
		if s.rec.State != model.StateAvailable {
			u.states[string(s.rec.State)]++
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

// countAgainst counts the servers by the first thing that speaks against each. Those
// that lack the first label which a claim requires are counted by the label, not one by one:
// many claims may ask for as many labels.
func (f *fleet) countAgainst(c *model.ServerClaim) map[string]int {
	u := f.unboundServers()
	counts, among := maps.Clone(u.states), u.available
	if first, requires := f.firstLabel(c); requires {
		among = u.labelled[first]
		if lack := len(u.available) - len(among); lack > 0 {
			counts[first.lacking()] = lack
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
		why = Why{Reason: model.ReasonSelectorMismatch, Message: fmt.Sprintf("server %s does not match the claim's "+
			"serverSelector %s", name, c.Unmet(f.serverLabels(s))), Actor: Tenant}
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
