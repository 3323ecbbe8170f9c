package bind

import (
	"cmp"
	"slices"
	"sort"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// Fleet is an Input with the decisions, and with indexes. Its parts find servers by their positions.
type Fleet struct {
	Input
	Rules []ReadinessRule
	// Wanted are the boots of claims that could get a server now.
	Wanted map[proposal.BootKey]proposal.Boot

	number string // of servers, in words
	// available and coming servers are those that claims can get now and later; known are all, see all.
	available, coming, known index
	groups                   map[string]*group          // by their requirements
	named                    map[string]model.ClaimName // see naming; made when first needed
	likely                   likely
	catalogLost              proposal.Why

	key []byte // of groupOf, to be used again
}

func newFleet(in Input) *Fleet {
	waiting := 0
	for _, c := range in.Claims {
		if c.Server == "" {
			waiting++
		}
	}
	f := &Fleet{Input: in, number: text.Plural(len(in.Servers), "server"), groups: make(map[string]*group, waiting), Wanted: make(map[proposal.BootKey]proposal.Boot), catalogLost: proposal.CatalogLost(in.Desired)}
	f.likely.serverGuesses.Left, f.likely.labelGuesses.Left, f.likely.imageGuesses.Left = model.MaxGuesses, model.MaxGuesses, model.MaxGuesses
	for i, s := range in.Servers {
		switch {
		case s.State() == model.StateAvailable:
			f.available.add(i, s.Labels)
		case s.Coming:
			f.coming.add(i, s.Labels)
		}
	}
	f.readiness()
	return f
}

// find returns the position of the server that Git calls name, -1 if there is none.
func (f *Fleet) find(name string) int {
	of := f.Resolve(name)
	i, known := sort.Find(len(f.Servers), func(i int) int { return cmp.Compare(of, f.Servers[i].Name) })
	if !known {
		return -1
	}
	return i
}

// server is the server that Git calls name, nil if there is none.
func (f *Fleet) server(name string) *View {
	if i := f.find(name); i >= 0 {
		return f.Servers[i]
	}
	return nil
}

func (f *Fleet) naming(server string) (claim model.ClaimName, named bool) {
	if f.named == nil {
		f.named = make(map[string]model.ClaimName)
		for _, c := range f.Claims {
			if m := c.Manifest; m.Spec.ServerRef != nil && !m.BootConfiguration {
				f.named[m.Spec.ServerRef.Name] = c.Name
			}
		}
	}
	claim, named = f.named[server]
	return claim, named
}

type label struct{ key, value string }

type index struct {
	all []int
	by  map[label][]int
}

func (x *index) add(i int, labels map[string]string) {
	if x.by == nil {
		x.by = make(map[label][]int)
	}
	x.all = append(x.all, i)
	for k, v := range labels {
		x.by[label{k, v}] = append(x.by[label{k, v}], i)
	}
}

// all finds all servers; made when first needed.
func (f *Fleet) all() *index {
	if f.known.all == nil {
		for i, s := range f.Servers {
			f.known.add(i, s.Labels)
		}
	}
	return &f.known
}

// rarest returns the rarest of the labels that a group requires, and the servers that have it; all if it requires none.
func (x *index) rarest(g *group) (of label, servers []int) {
	servers = x.all
	for _, key := range g.keys {
		if with := x.by[g.label(key)]; len(with) < len(servers) {
			of, servers = g.label(key), with
		}
	}
	return of, servers
}

// distinguishing returns the keys of required labels that some of the servers lack: comparing all labels takes long.
func (x *index) distinguishing(g *group) []string {
	return slices.DeleteFunc(slices.Clone(g.keys), func(key string) bool { return len(x.by[g.label(key)]) == len(x.all) })
}

// mismatch says why a claim does not match a server, whatever its state; "" if it does. Keys are as in UnmetOf.
func (f *Fleet) mismatch(c *model.ServerClaim, s *View, keys []string) string {
	return cmp.Or(f.lacks(c, s, keys), tainted(c, s))
}

// lacks says which label that a claim requires a server lacks, or that it is for other tenants.
func (f *Fleet) lacks(c *model.ServerClaim, s *View, keys []string) string {
	if unmet := c.UnmetOf(keys, s.Labels); unmet != "" {
		return "lack label " + unmet
	}
	if of := f.Policy.Tenants.At(c.Tenant); of != nil && !of.MayBind(s.Labels) {
		return "not for " + of.Path + " (git.tenants)"
	}
	return ""
}

func tainted(c *model.ServerClaim, s *View) string {
	if s.Manifest != nil {
		if ok, _ := c.Tolerates(s.Manifest.Spec.Taints); !ok {
			return "tainted"
		}
	}
	for _, t := range s.Taints {
		if ok, _ := c.Tolerates([]model.Taint{t.Taint}); !ok {
			return "tainted by ServerReadinessRule " + t.Rule
		}
	}
	return ""
}

// group is all waiting claims with equal requirements.
type group struct {
	claim      *model.ServerClaim // one of them
	keys       []string           // of the labels that it requires to have one value
	size       int                // of those for which a server is free
	candidates []int              // the free servers that match, best first
	why        proposal.Why       // why they have no server; made when first needed
}

func (g *group) label(key string) label {
	return label{key, g.claim.Spec.ServerSelector.MatchLabels[key]}
}

func (f *Fleet) groupOf(c *model.ServerClaim) *group {
	id, keys := append(f.key[:0], c.Tenant...), c.RequiredKeys()
	add := func(sep string, values ...string) { // no value contains a separator
		for _, v := range values {
			id = append(append(id, sep...), v...)
		}
	}
	if ref := c.Spec.ServerRef; ref != nil {
		add("\x00", string(f.Resolve(ref.Name)))
	}
	if sel := c.Spec.ServerSelector; sel != nil {
		for _, k := range keys {
			add("\x01", k, sel.MatchLabels[k])
		}
		for _, r := range sel.MatchExpressions {
			add("\x02", r.Key, string(r.Operator))
			add("\x03", r.Values...)
		}
	}
	for _, t := range c.Spec.Tolerations {
		add("\x04", t.Key, t.Operator, t.Value, string(t.Effect))
	}
	f.key = id
	g := f.groups[string(id)]
	if g == nil {
		g = &group{claim: c, keys: keys}
		g.candidates = f.candidates(g)
		f.groups[string(id)] = g
	}
	return g
}

func (f *Fleet) candidates(g *group) (free []int) {
	_, among := f.available.rarest(g)
	if ref := g.claim.Spec.ServerRef; ref != nil {
		among = nil
		if i := f.find(ref.Name); i >= 0 {
			among = []int{i}
		}
	}
	if len(among) == 0 {
		return nil
	}
	keys := f.available.distinguishing(g)
	for _, i := range among {
		s := f.Servers[i]
		if s.State() == model.StateAvailable && s.Unfree == "" && !s.Busy && f.mismatch(g.claim, s, keys) == "" {
			free = append(free, i)
		}
	}
	return free
}
