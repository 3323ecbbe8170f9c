package plan

import (
	"cmp"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Memory keeps from one plan to the next what was worked out of what is planned with, which
// never changes: doing so anew for each plan of a large fleet costs more than all the rest of
// it. What was worked out of an object is kept for as long as the desired state has that very
// one, and what was looked up in a map for as long as the input has that very map. Nothing that
// depends on the time is kept. It is not for concurrent use, and nil remembers nothing. It is for
// one key.
type Memory struct {
	of            *model.Desired // of which now and claims are
	now, previous map[digestKey]string
	claims        []*desiredClaim   // in the order of names
	claimNames    []model.ClaimName // the very same list for as long as there are no others
	// naming are the claims that name a server, by what they call it: there are
	// ServerBootConfigurations that may be for the same one.
	naming map[string]model.ClaimName

	plans   uint64            // that were made with it
	asked   map[string]*asked // by what it writes
	lacking lackText          // that what is asked lacks

	servers keys[model.ServerName, *model.ServerRecord]
	kept    keptOf[model.ServerName, serverKept]
	judged  keptOf[model.BMCName, *BMC] // by the last plan
	bmcs    keys[model.BMCName, *model.BMC]
	lookups
	room workspace
}

// workspace is the memory that plans are made in, one after the other. What a plan returns
// points to nothing of it.
type workspace struct {
	servers []server
	bmcs    []bmcView
	served  []*server
}

// anew is a list of n zero values, made in the place of one that is not needed any longer.
func anew[E any](was []E, n int) []E {
	clear(was)
	return slices.Grow(was[:0], n)[:n]
}

// desiredClaim is a claim in Git, with what each plan asks of all claims: to look into every
// manifest takes most of the time of a plan of very many.
type desiredClaim struct {
	name   model.ClaimName
	claim  *model.ServerClaim
	asked  *asked // made when first needed, see Memory.asks
	judged *Claim // by the last plan

	// plain is set for one that names nothing but servers' labels: it can always be served.
	plain bool
	// namesServers is set for one that refers to servers by their names.
	namesServers bool
}

func newDesiredClaim(name model.ClaimName, c *model.ServerClaim) *desiredClaim {
	return &desiredClaim{
		name: name, claim: c,
		plain: c.Spec.ServerRef == nil && c.Spec.IgnitionSecretRef == nil && !c.BootConfiguration &&
			c.Annotations[model.AnnotationOperation] != model.OperationIgnore,
		namesServers: slices.ContainsFunc(c.References, func(r model.Reference) bool { return r.To.Kind == model.KindServer }),
	}
}

// judge is what is said of the claim: the very same value as before where that is the same.
func (c *desiredClaim) judge(j Claim) *Claim {
	if c.judged == nil || *c.judged != j {
		c.judged = new(j)
	}
	return c.judged
}

// asked is what claims ask of a server beside its name; those that ask for the same share it.
type asked struct {
	// first is the first label that they require, in the order of keys.
	first    label
	requires bool
	lacks    string // why they have no server, of Memory.lacking and first; "" = not said yet
	// unbound is why no server is free for those, and offered whether one of the free servers
	// has their labels, each of the plan with a number.
	unbound   proposal.Why
	of        uint64
	offered   bool
	offeredOf uint64
}

// lackText is why a claim has no server that requires a label which no available server
// has: what stands before and after that label.
type lackText struct{ before, after string }

// see has m know a desired state.
func (m *Memory) see(d *model.Desired) {
	if m.of == d {
		return
	}
	m.now, m.previous = make(map[digestKey]string, len(m.now)), m.now
	m.seeClaims(d)
	m.naming = make(map[string]model.ClaimName)
	for _, c := range m.claims {
		if c.plain {
			continue
		}
		if ref := c.claim.Spec.ServerRef; ref != nil && !c.claim.BootConfiguration {
			m.naming[ref.Name] = c.name
		}
	}
	if len(m.asked) > 2*len(m.claims) { // most are asked by none any longer
		m.asked = nil
		for _, c := range m.claims {
			c.asked = nil
		}
	}
	m.of = d
}

// seeClaims finds the claims of a desired state. There are no others than in the one before
// but for a few, as a rule, so that only these have to be put in their places.
func (m *Memory) seeClaims(d *model.Desired) {
	claims := make([]*desiredClaim, 0, len(d.Claims))
	for _, c := range m.claims {
		switch claim := d.Claims[c.name]; claim {
		case nil:
		case c.claim:
			claims = append(claims, c)
		default:
			claims = append(claims, newDesiredClaim(c.name, claim))
		}
	}
	known := len(claims)
	if known < len(d.Claims) {
		for name, claim := range d.Claims {
			if _, ok := slices.BinarySearchFunc(claims[:known], name, (*desiredClaim).compareName); !ok {
				claims = append(claims, newDesiredClaim(name, claim))
			}
		}
		slices.SortFunc(claims, func(a, b *desiredClaim) int { return a.compareName(b.name) })
	}
	if known < len(claims) || known < len(m.claims) {
		m.claimNames = make([]model.ClaimName, len(claims))
		for i, c := range claims {
			m.claimNames[i] = c.name
		}
	}
	m.claims = claims
}

func (c *desiredClaim) compareName(name model.ClaimName) int { return cmp.Compare(c.name, name) }

// asks is what a claim asks of a server beside its name.
func (m *Memory) asks(c *desiredClaim) *asked {
	if c.asked != nil {
		return c.asked
	}
	text := asks(c.claim)
	if c.asked = m.asked[text]; c.asked == nil {
		c.asked = new(asked)
		c.asked.first, c.asked.requires = firstLabel(c.claim)
		if m.asked == nil {
			m.asked = make(map[string]*asked)
		}
		m.asked[text] = c.asked
	}
	return c.asked
}

// asks is a text that is equal for claims that ask for the same servers, but for those that
// they name.
func asks(c *model.ServerClaim) string {
	if c.Spec.ServerSelector == nil && len(c.Spec.Tolerations) == 0 {
		return c.Tenant
	}
	var b strings.Builder
	b.WriteString(c.Tenant + "\x00")
	if c.Spec.ServerSelector != nil {
		b.WriteString(c.Spec.ServerSelector.String())
	}
	for _, t := range c.Spec.Tolerations {
		b.WriteString("\x00" + t.Key + "\x01" + t.Operator + "\x01" + t.Value + "\x01" + string(t.Effect))
	}
	return b.String()
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

// lacks is why claims have no server: a label that they require, within a text.
func (m *Memory) lacks(a *asked, t lackText) string {
	if m.lacking != t {
		m.lacking = t
		for _, a := range m.asked {
			a.lacks = ""
		}
	}
	if a.lacks == "" {
		a.lacks = t.before + a.first.lacking() + t.after
	}
	return a.lacks
}

// claimAt is where in claims one of a name is, and whether it is there.
func (m *Memory) claimAt(name model.ClaimName) (int, bool) {
	i, inGit := m.claimPlaces.of(m.claimNames)[name]
	return i, inGit
}
