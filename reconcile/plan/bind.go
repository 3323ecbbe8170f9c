package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// bindClaims gives servers that are free to claims that wait. One function sees
// all claims and all servers, so there is no race to lose: two claims never get
// one server, nor one claim two.
//
// Claims are served by priority, then in the order in which they came to Git,
// then by name. Each takes, of the free servers that match it, the one that the
// fewest waiting claims could use, then the first by name. Claims that ask for
// the same are looked at together, which keeps it O(n log n) for n of them.
func (f *fleet) bindClaims() {
	if f.observeOnly.Reason != "" {
		return
	}
	free := f.freeServers()
	if len(free) == 0 {
		return
	}
	queue := f.waiting(free)
	groups := f.group(queue, free)
	taken := make([]bool, len(free))
	for _, w := range queue {
		g := groups[w.wish]
		for g.next < len(g.candidates) && taken[g.candidates[g.next]] {
			g.next++
		}
		if g.next == len(g.candidates) {
			continue
		}
		i := g.candidates[g.next]
		taken[i] = true
		free[i].bind = w.claim
	}
}

// waitingClaim is a claim without a server.
type waitingClaim struct {
	name     model.ClaimName
	claim    *model.ServerClaim
	priority int
	sequence int64
	wish     wish
}

// wish is the server that a claim names, "" if none, and what it asks of it. It is equal for
// claims that ask for the same servers.
type wish struct {
	server model.ServerName
	asks   *asked
}

// wishOf is what servers a claim asks for.
func (f *fleet) wishOf(d *desiredClaim) wish {
	w := wish{asks: f.memory.asks(d)}
	if ref := d.claim.Spec.ServerRef; ref != nil {
		w.server = f.resolve(ref.Name)
	}
	return w
}

// waiting returns the claims without a server that one of the free servers could be given to,
// in their order.
func (f *fleet) waiting(free []*server) []waitingClaim {
	var queue []waitingClaim
	var adopted map[model.ClaimName]bool
	offered := f.labelsOf(free)
	for i, d := range f.memory.claims {
		if f.served[i] != nil || !f.isOffered(d, offered) {
			continue // by far the most, and without a look into their manifests
		}
		if adopted == nil {
			adopted = f.adopted()
		}
		name, c := d.name, d.claim
		if adopted[name] || f.unready(c).Reason != "" || f.unbindable(name).Reason != "" {
			continue
		}
		priority, _ := strconv.Atoi(c.Annotations[model.AnnotationPriority])
		queue = append(queue, waitingClaim{name, c, priority, f.claimRecord(name).Sequence, f.wishOf(d)})
	}
	slices.SortFunc(queue, func(a, b waitingClaim) int {
		return cmp.Or(lastOf(a.claim, b.claim), -cmp.Compare(a.priority, b.priority), cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.name, b.name))
	})
	return queue
}

// labels are those of some servers.
type labels map[label]bool

type label struct{ key, value string }

func (f *fleet) labelsOf(servers []*server) labels {
	all := make(labels)
	for _, s := range servers {
		for k, v := range f.serverLabels(s) {
			all[label{k, v}] = true
		}
	}
	return all
}

// isOffered reports whether each label that a claim requires is among those of the free
// servers, which is found out once for all claims that ask for the same.
func (f *fleet) isOffered(d *desiredClaim, free labels) bool {
	asks := f.memory.asks(d)
	if asks.offeredOf != f.memory.plans {
		asks.offeredOf, asks.offered = f.memory.plans, !asks.requires || free.have(d.claim)
	}
	return asks.offered
}

// have reports whether each label that a claim requires is among these.
func (l labels) have(c *model.ServerClaim) bool {
	for k, v := range c.Spec.ServerSelector.MatchLabels {
		if !l[label{k, v}] {
			return false
		}
	}
	return true
}

// adopted are the claims that manifests of servers say are served already, by servers that
// were not looked into yet.
func (f *fleet) adopted() map[model.ClaimName]bool {
	claims := make(map[model.ClaimName]bool)
	for name, s := range f.in.Desired.Servers {
		known := f.server(f.resolve(string(name)))
		past := known != nil && known.rec.Life.State != model.StateInitial
		if ref := s.Spec.ServerClaimRef; ref != nil && !past {
			claims[model.Named[model.ClaimName](ref.Namespace, ref.Name)] = true
		}
	}
	return claims
}

// unready says why a claim cannot be served whatever servers are free.
func (f *fleet) unready(c *model.ServerClaim) proposal.Why {
	var why proposal.Why
	if c.Spec.IgnitionSecretRef != nil { // else nothing can be missing
		_, why = proposal.BootOfClaim(f.in.Desired, c)
	}
	if c.BootConfiguration {
		why = cmp.Or(f.superseded(c), why)
	}
	if c.Annotations[model.AnnotationOperation] == model.OperationIgnore {
		why = proposal.Why{Reason: model.ReasonIgnored, Message: "suspended by annotation " + model.AnnotationOperation + ": ignore", Actor: proposal.Tenant}
	}
	return why
}

// unbindable says why a claim is not to be bound anew, whatever servers are free.
func (f *fleet) unbindable(name model.ClaimName) proposal.Why {
	for _, u := range f.record.Unreadable {
		if u.Claim == name {
			return proposal.Why{Reason: string(model.DoubtUnreadable), Message: fmt.Sprintf("the record of server %s, which serves it, cannot be read: approve by %s "+
				"that it is given up", u.Server, proposal.ApproveLine(u.Token)), Since: u.Since, Actor: proposal.RackOperator}
		}
	}
	if why := f.boundInGap(name); why.Reason != "" {
		return why
	}
	if len(f.in.Desired.Absent) > 0 { // seldom
		if a, listed := f.in.Desired.Absence(name.Identity()); listed && a.Blob == "" {
			return AbsentWhy("claim "+string(name), a)
		}
	}
	return f.unknownFleet(name)
}

// claimGroup is all waiting claims that ask for the same, and the servers that they could get.
type claimGroup struct {
	claim      *model.ServerClaim // one of them
	size       int
	candidates []int // indices of free servers, best first
	next       int
}

// group finds each group's candidates.
func (f *fleet) group(queue []waitingClaim, free []*server) map[wish]*claimGroup {
	groups := make(map[wish]*claimGroup)
	for _, w := range queue {
		if groups[w.wish] == nil {
			groups[w.wish] = &claimGroup{claim: w.claim}
		}
		groups[w.wish].size++
	}
	wanted := make([]int, len(free)) // how many waiting claims could use each
	index := f.labelIndex(groups, free)
	for _, g := range groups {
		keys := distinguishing(g.claim, index, len(free))
		for _, i := range f.among(g.claim, free, index) {
			if f.suits(g.claim, free[i], keys) {
				g.candidates = append(g.candidates, i)
				wanted[i] += g.size
			}
		}
	}
	for _, g := range groups {
		slices.SortStableFunc(g.candidates, func(a, b int) int {
			return cmp.Or(cmp.Compare(wanted[a], wanted[b]), cmp.Compare(a, b))
		})
	}
	return groups
}

// labelIndex lists the free servers by each label that some group requires.
func (f *fleet) labelIndex(groups map[wish]*claimGroup, free []*server) map[label][]int {
	index := make(map[label][]int)
	for _, g := range groups {
		if sel := g.claim.Spec.ServerSelector; sel != nil {
			for k, v := range sel.MatchLabels {
				index[label{k, v}] = nil
			}
		}
	}
	if len(index) == 0 {
		return index
	}
	for i, s := range free {
		for k, v := range f.serverLabels(s) {
			if is, asked := index[label{k, v}]; asked {
				index[label{k, v}] = append(is, i)
			}
		}
	}
	return index
}

// among narrows down the free servers that a claim could match.
func (f *fleet) among(c *model.ServerClaim, free []*server, index map[label][]int) []int {
	if ref := c.Spec.ServerRef; ref != nil {
		name := f.resolve(ref.Name)
		if i, ok := slices.BinarySearchFunc(free, name, func(s *server, n model.ServerName) int { return cmp.Compare(s.name, n) }); ok {
			return []int{i}
		}
		return nil
	}
	best, narrowed := []int(nil), false
	if sel := c.Spec.ServerSelector; sel != nil {
		for k, v := range sel.MatchLabels {
			if l := index[label{k, v}]; !narrowed || len(l) < len(best) {
				best, narrowed = l, true
			}
		}
	}
	if narrowed {
		return best
	}
	all := make([]int, len(free))
	for i := range all {
		all[i] = i
	}
	return all
}

// suits reports whether a free server is what the claim asks for.
func (f *fleet) suits(c *model.ServerClaim, s *server, keys []string) bool {
	if ref := c.Spec.ServerRef; ref != nil && f.resolve(ref.Name) != s.name {
		return false
	}
	return f.mismatch(c, s, keys) == ""
}

// distinguishing are the keys of the labels that a claim requires and not all of a number of servers have, which
// are listed by their labels: with many claims and servers of many labels, looking at all of them would take most
// of the plan's time.
func distinguishing[S any](c *model.ServerClaim, by map[label][]S, servers int) []string {
	return slices.DeleteFunc(c.RequiredKeys(), func(key string) bool {
		return len(by[label{key, c.Spec.ServerSelector.MatchLabels[key]}]) == servers
	})
}

// freeServers are those that a claim may be bound to now, in the order of names.
func (f *fleet) freeServers() []*server {
	var free []*server
	for _, s := range f.servers {
		if f.unfree(s) == "" && !f.in.Busy[s.name] {
			free = append(free, s)
		}
	}
	return free
}

// unfree is why no claim may be bound to the server now, in a word or two; "" if
// one may.
func (f *fleet) unfree(s *server) string {
	if s.rec.Life.State != model.StateAvailable {
		return string(s.rec.Life.State)
	}
	maintained := f.maintenance(s).by != ""
	switch {
	case s.spec != nil && s.spec.Spec.Unclaimable:
		return "cordoned"
	case s.spec == nil && f.in.Desired.IsQuarantined(s.name.Identity()):
		return "without a manifest that can be read"
	case maintained:
		return "about to enter Maintenance"
	case s.outOfReach():
		return "out of reach"
	case f.isContradicted(s):
		return "not what Git says of it"
	case s.duplicate().Reason != "":
		return "of a UUID that another machine has"
	case s.unsupportedArchitecture().Reason != "":
		return "of an architecture that is not in boot.architectures"
	case s.power() != model.PowerOff || s.reading.Offs < f.in.Policy.OffReadings || s.rec.Boot.Ticket.Open():
		return "not yet powered off"
	}
	return ""
}

func (s *server) outOfReach() bool {
	return s.blocked.Reason != "" || s.reading.Failures > 0 || s.putOff()
}

// putOff reports whether the server's last move failed and waits to be tried again.
func (s *server) putOff() bool { return s.now().Before(s.notBefore()) || s.foundInGap() }

// mismatch is why a claim does not match a server, whatever its state; "" if it does. Keys are those that
// model.ServerClaim.UnmetOf looks at.
func (f *fleet) mismatch(c *model.ServerClaim, s *server, keys []string) string {
	labels := f.serverLabels(s)
	if why := f.barred(c, labels); why != "" {
		return why
	}
	if unmet := c.UnmetOf(keys, labels); unmet != "" {
		return "lack label " + unmet
	}
	return s.untolerated(c)
}

// untolerated says which taint of the server a claim does not tolerate, "" if there is none.
func (s *server) untolerated(c *model.ServerClaim) string {
	if s.spec != nil {
		if ok, _ := c.Tolerates(s.spec.Spec.Taints); !ok {
			return "tainted"
		}
	}
	if rule := s.taintedBy(c); rule != "" {
		return "tainted by ServerReadinessRule " + rule
	}
	return ""
}

// serverLabels are the labels of a server, see model.ServerLabels. Merged ones are kept
// for as long as the plan is made.
func (f *fleet) serverLabels(s *server) map[string]string {
	var spec *model.BMC
	if b := s.bmc; b != nil {
		spec = b.spec
	}
	if spec == nil || s.spec == nil || len(spec.Labels) == 0 || len(s.spec.Labels) == 0 {
		return model.ServerLabels(spec, s.spec)
	}
	if l, ok := f.labels[s.name]; ok {
		return l
	}
	l := model.ServerLabels(spec, s.spec)
	f.labels[s.name] = l
	return l
}
