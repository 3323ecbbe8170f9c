package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// judge says of a server what it is like before its step.
func (s *server) judge() Server {
	j := Server{Name: s.name, Record: s.rec, Manifest: s.spec, Claim: s.claim, Stage: s.installStage(), Duplicate: proposal.Some(s.duplicate()), Taints: s.taints}
	if p := s.rec.Boot.Problem; proposal.FailedBoot(p) {
		j.Unbooted = proposal.Some(s.problemWhy(p))
	}
	j.Unarmed, j.Approval = proposal.Some(s.bootTrouble()), proposal.Some(s.approvalWhy())
	if s.unconfirmed() {
		j.Unconfirmed = proposal.Some(s.unconfirmedWhy())
	}
	if s.claim == nil {
		return j
	}
	if s.outdated() {
		j.Pending = proposal.Some(s.pendingReprovision())
	}
	j.Exposed, j.CloudInit, j.Power = proposal.Some(s.exposed()), proposal.Some(s.cloudInitFailed()), proposal.Some(s.powerIgnored())
	return j
}

// powerIgnored says that the server's claim decides on its power, and not its manifest.
func (s *server) powerIgnored() proposal.Why {
	if s.spec == nil || s.spec.Spec.Power == "" {
		return proposal.Why{}
	}
	return s.whySince(model.ReasonPowerIgnored, fmt.Sprintf("spec.power %s of Server %s (%s) is ignored: %s decides, and says "+
		"%s", s.spec.Spec.Power, s.spec.Name, s.spec.Source, s.claim.Identity(), s.claim.Spec.Power), proposal.RackOperator)
}

// stepWhy is why a server whose next step is st is not where it should be.
func (j *Server) stepWhy(st Step) proposal.Why {
	if st.Why.Reason == "" && st.Move != nil && acts(st.Move) {
		return proposal.Why{Reason: model.ReasonInProgress, Message: "next: " + moveText(st.Move), Since: j.Record.Life.Since}
	}
	return st.Why
}

// acts reports whether a move does more than read, or what nobody waits for.
func acts(m *Move) bool {
	for _, a := range m.Do {
		if _, reads := a.(proposal.Inspect); !reads && !aside(a) {
			return true
		}
	}
	return false
}

func moveText(m *Move) string {
	var parts []string
	for _, a := range m.Do {
		parts = append(parts, a.String())
	}
	return strings.Join(parts, ", then ")
}

// judgeClaims says of each claim which server it has, or why none.
func (f *fleet) judgeClaims() []*Claim {
	all := make([]*Claim, len(f.memory.claims))
	chosen := make(map[model.ClaimName]*server)
	for _, s := range f.servers {
		if s.bind != nil {
			chosen[s.bind.Identity().ClaimName()] = s
		}
	}
	for i, rec := range f.claimRecords() {
		d := f.memory.claims[i]
		if rec == nil {
			rec = f.claimRecord(d.name)
		}
		c := Claim{Name: d.name, Manifest: d.claim, Record: rec}
		if s := f.served[i]; s != nil {
			c.Server = s.name
		} else if s := chosen[d.name]; s != nil {
			c.Why = proposal.Why{Reason: model.ReasonInProgress, Message: fmt.Sprintf("server %s is chosen for it", s.name)}
		} else {
			c.Why = f.unbound(d)
		}
		all[i] = d.judge(c)
	}
	return all
}

// judgeBMCs says of each BMC how it fares.
func (f *fleet) judgeBMCs() []*BMC {
	for _, s := range f.servers {
		if s.bmc == nil || s.reading.Failures < 2 || s.reading.Mistaken() || s.bmc.unread.Reason != "" {
			continue
		}
		s.bmc.unread = s.unreachable()
		if s.bmc.unread.Reason == model.ReasonBMCUnreachable {
			s.bmc.unread.Reason = model.ReasonConnectionFailed
		}
	}
	all, kept := make([]*BMC, len(f.bmcs)), f.memory.judged.of(f.memory.bmcPlaces.names)
	for i, b := range f.bmcs {
		j := BMC{
			Name: b.name, Manifest: b.spec, Found: b.found, Record: b.rec, Address: b.target.Address,
			Problems: b.problems, Why: b.why, Duplicate: proposal.Some(b.duplicate()),
		}
		if b.endpoint != nil {
			j.Endpoint = b.endpoint.name
		}
		if j.Why.Reason == "" {
			j.Why = b.unread
		}
		if kept[i] == nil || !kept[i].is(&j) {
			kept[i] = new(j)
		}
		all[i] = kept[i]
	}
	return all
}

// judgeEndpoints says of each device what it is, and where, and of each Endpoint without a device
// what it waits for.
func (f *fleet) judgeEndpoints() []Endpoint {
	all := make([]Endpoint, len(f.endpoints))
	for i, v := range f.endpoints {
		j := Endpoint{
			Name: v.name, MAC: v.mac, IP: v.ip, Record: v.rec, Manifest: v.spec, Prefix: v.entry,
			IsBMC: v.bmc, DescribedBy: v.by, Why: v.why,
		}
		if v.ip == "" {
			j.Lost = proposal.Some(v.addressLost())
		}
		all[i] = j
	}
	all = append(all, f.awaited()...)
	slices.SortFunc(all, func(a, b Endpoint) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// judgeMaintenances says of each ServerMaintenance whether it may take its server out
// of service.
func (f *fleet) judgeMaintenances() []Maintenance {
	all := make([]Maintenance, 0, len(f.in.Desired.Maintenances))
	for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Maintenances)) {
		m := f.in.Desired.Maintenances[name]
		server := f.resolve(m.Spec.ServerRef.Name)
		j := Maintenance{Name: name, Manifest: m, Server: server}
		if f.server(server) == nil {
			j.Unknown = f.unknownServer(m.Spec.ServerRef.Name)
		} else {
			j.Refused = !f.mayMaintain(m, server)
		}
		all = append(all, j)
	}
	return all
}

// judge is what is said of a server: the very same value as before where that is the same.
func (k *serverKept) judge(j Server) *Server {
	if k.judged == nil || !k.judged.is(&j) {
		k.judged = new(j)
	}
	return k.judged
}

// is reports whether the same is said of the very same objects. What is said beside that is
// made anew by each plan, and seldom.
func (j *Server) is(as *Server) bool {
	return j.Name == as.Name && j.Record == as.Record && j.Manifest == as.Manifest && j.Claim == as.Claim && j.Stage == as.Stage &&
		j.Why == as.Why && j.RanWhenLastRead == as.RanWhenLastRead && j.beside() == as.beside() && len(j.Taints)+len(as.Taints) == 0
}

// beside is what is said of the server beside why it is not where it should be.
func (j *Server) beside() [9]*proposal.Why {
	return [...]*proposal.Why{j.Duplicate, j.Unarmed, j.Unbooted, j.Pending, j.Unconfirmed, j.Exposed, j.CloudInit, j.Approval, j.Power}
}

// is reports whether the same is said of the very same objects.
func (b *BMC) is(c *BMC) bool {
	return b.Name == c.Name && b.Manifest == c.Manifest && b.Found == c.Found && b.Record == c.Record && b.Address == c.Address &&
		b.Endpoint == c.Endpoint && b.Why == c.Why && b.Duplicate == c.Duplicate && len(b.Problems)+len(c.Problems) == 0
}
