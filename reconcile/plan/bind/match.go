package bind

import (
	"cmp"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// fleet is an Input with its indexes. Servers are numbers: their positions in Input.Servers.
type fleet struct {
	Input
	outcomes []Outcome
	states   map[string]int // the number of servers in each state except Available
	// available and coming servers are those that claims can get now and later.
	available, coming index
	groups            map[wish]*group
	naming            map[string]model.ClaimName // the claims that name a server, by its name in Git
	likely            likely
}

func newFleet(in Input) *fleet {
	f := &fleet{
		Input: in, outcomes: make([]Outcome, len(in.Servers)), states: make(map[string]int),
		groups: make(map[wish]*group), naming: make(map[string]model.ClaimName),
	}
	for i := range in.Servers {
		s := &in.Servers[i]
		if s.State == model.StateAvailable {
			f.available.add(i, s.Labels)
			continue
		}
		f.states[string(s.State)]++
		if s.Coming {
			f.coming.add(i, s.Labels)
		}
	}
	for i := range in.Claims {
		if c := in.Claims[i].Manifest; c.Spec.ServerRef != nil && !c.BootConfiguration {
			f.naming[c.Spec.ServerRef.Name] = in.Claims[i].Name
		}
	}
	return f
}

// at finds a server by its name.
func (f *fleet) at(name model.ServerName) (int, bool) {
	return slices.BinarySearchFunc(f.Servers, name, func(s Server, n model.ServerName) int { return cmp.Compare(s.Name, n) })
}

// resolve returns the name by which Ingot knows the server that Git calls name.
func (f *fleet) resolve(name string) model.ServerName {
	if known, ok := f.Aliases[name]; ok {
		return known
	}
	return model.ServerName(name)
}

type label struct{ key, value string }

// index finds servers by their labels.
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

// among returns the servers that have the rarest of the labels that a claim requires.
func (x *index) among(c *model.ServerClaim) []int {
	best := x.all
	if sel := c.Spec.ServerSelector; sel != nil {
		for k, v := range sel.MatchLabels {
			if with := x.by[label{k, v}]; len(with) < len(best) {
				best = with
			}
		}
	}
	return best
}

// distinguishing returns the keys of the labels that a claim requires and some of the servers
// lack. Comparing all labels of all servers would take most of a plan's time.
func (x *index) distinguishing(c *model.ServerClaim) []string {
	return slices.DeleteFunc(c.RequiredKeys(), func(key string) bool {
		return len(x.by[label{key, c.Spec.ServerSelector.MatchLabels[key]}]) == len(x.all)
	})
}

// mismatch says why a claim does not match a server, whatever its state; "" if it does. Keys are
// those that model.ServerClaim.UnmetOf checks.
func (f *fleet) mismatch(c *model.ServerClaim, i int, keys []string) string {
	s := &f.Servers[i]
	if of := f.Tenants.At(c.Tenant); of != nil && !of.MayBind(s.Labels) {
		return "not for " + of.Path + " (git.tenants)"
	}
	if unmet := c.UnmetOf(keys, s.Labels); unmet != "" {
		return "lack label " + unmet
	}
	if s.Manifest != nil {
		if ok, _ := c.Tolerates(s.Manifest.Spec.Taints); !ok {
			return "tainted"
		}
	}
	for _, t := range f.outcomes[i].Taints {
		if ok, _ := c.Tolerates([]model.Taint{t.Taint}); !ok {
			return "tainted by ServerReadinessRule " + t.Rule
		}
	}
	return ""
}

// wish is what a claim requires. It is equal for claims that match the same servers.
type wish struct {
	tenant string
	server model.ServerName // "" if it names none
	first  label            // the first required label by its key
	more   string           // other requirements
}

func (f *fleet) wishOf(c *model.ServerClaim) wish {
	w := wish{tenant: c.Tenant}
	if ref := c.Spec.ServerRef; ref != nil {
		w.server = f.resolve(ref.Name)
	}
	more := make([]byte, 0, 256) // with separators that no value contains
	add := func(sep string, values ...string) {
		for _, v := range values {
			more = append(append(more, sep...), v...)
		}
	}
	if sel := c.Spec.ServerSelector; sel != nil {
		for k, v := range sel.MatchLabels {
			if w.first.key == "" || k < w.first.key {
				w.first = label{k, v}
			}
		}
		if len(sel.MatchLabels) > 1 {
			for _, k := range c.RequiredKeys() {
				add("\x00", k, sel.MatchLabels[k])
			}
		}
		for _, r := range sel.MatchExpressions {
			add("\x01", r.Key, string(r.Operator))
			add("\x02", r.Values...)
		}
	}
	for _, t := range c.Spec.Tolerations {
		add("\x03", t.Key, t.Operator, t.Value, string(t.Effect))
	}
	w.more = string(more)
	return w
}

// group is all waiting claims with equal wishes.
type group struct {
	claim      *model.ServerClaim // one of them
	first      label
	size       int          // of those for which a server is free
	candidates []int        // the free servers that match, best first
	why        proposal.Why // why they have no server; made when first needed
}

// groupOf returns the group of a claim.
func (f *fleet) groupOf(c *model.ServerClaim) *group {
	w := f.wishOf(c)
	g := f.groups[w]
	if g == nil {
		g = &group{claim: c, first: w.first, candidates: f.candidates(c, w.server)}
		f.groups[w] = g
	}
	return g
}

// candidates returns the free servers that a claim matches.
func (f *fleet) candidates(c *model.ServerClaim, name model.ServerName) []int {
	among := f.available.among(c)
	if name != "" {
		at, known := f.at(name)
		if !known {
			return nil
		}
		among = []int{at}
	}
	if len(among) == 0 {
		return nil
	}
	var free []int
	keys := f.available.distinguishing(c)
	for _, i := range among {
		s := &f.Servers[i]
		if s.State == model.StateAvailable && s.Unfree == "" && !s.Busy && f.mismatch(c, i, keys) == "" {
			free = append(free, i)
		}
	}
	return free
}
