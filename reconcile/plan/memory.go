package plan

import (
	"maps"
	"slices"

	"ingot/model"
)

// Memory keeps from one plan to the next what was worked out of a desired state, which
// never changes: doing so anew for each plan of a large fleet costs more than all the rest
// of it. It is not for concurrent use, and nil remembers nothing. It is for one key.
type Memory struct {
	of            *model.Desired // of which now and claims are
	now, previous map[digestKey]string
	claims        []desiredClaim
	// naming are the claims that name a server, by what they call it: there are
	// ServerBootConfigurations that may be for the same one.
	naming map[string]model.ClaimName

	lacking lackText // that claims have
}

// desiredClaim is a claim in Git.
type desiredClaim struct {
	name  model.ClaimName
	claim *model.ServerClaim
	// first is the first label that it requires, in the order of keys.
	first    label
	requires bool
	lacks    string // why it has no server, of Memory.lacking and first; "" = not said yet
}

// lackText is why a claim has no server that requires a label which no available server
// has: what stands before and after that label.
type lackText struct{ before, after string }

// see has m know a desired state.
func (m *Memory) see(d *model.Desired) {
	if m.of == d {
		return
	}
	m.of, m.now, m.previous = d, make(map[digestKey]string), m.now
	m.claims, m.naming = make([]desiredClaim, 0, len(d.Claims)), make(map[string]model.ClaimName)
	for _, name := range slices.Sorted(maps.Keys(d.Claims)) {
		c := desiredClaim{name: name, claim: d.Claims[name]}
		c.first, c.requires = firstLabel(c.claim)
		m.claims = append(m.claims, c)
		if ref := c.claim.Spec.ServerRef; ref != nil && !c.claim.BootConfiguration {
			m.naming[ref.Name] = name
		}
	}
}

// firstLabel is the first label that a claim requires, in the order of keys.
func firstLabel(c *model.ServerClaim) (label, bool) {
	sel := c.Spec.ServerSelector
	if sel == nil || len(sel.MatchLabels) == 0 {
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

// lacks is why a claim has no server: a label that it requires, within a text.
func (m *Memory) lacks(c *desiredClaim, t lackText) string {
	if m.lacking != t {
		m.lacking = t
		for i := range m.claims {
			m.claims[i].lacks = ""
		}
	}
	if c.lacks == "" {
		c.lacks = t.before + c.first.lacking() + t.after
	}
	return c.lacks
}
