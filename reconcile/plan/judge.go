package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
)

// some is a why where there is one.
func some(why Why) *Why {
	if why.Reason == "" {
		return nil
	}
	return new(why) // a copy, so that only this takes memory
}

// judge says of a server what it is like before its step.
func (s *server) judge() Server {
	j := Server{Name: s.name, Record: s.rec, Manifest: s.spec, Claim: s.claim, Stage: s.installStage(), Duplicate: some(s.duplicate()), Taints: s.taints}
	if p := s.rec.BootProblem; FailedBoot(p) {
		j.Unbooted = some(s.problemWhy(p))
	}
	j.Unarmed, j.Approval = some(s.bootTrouble()), some(s.approvalWhy())
	if s.unconfirmed() {
		j.Unconfirmed = some(s.unconfirmedWhy())
	}
	if s.claim == nil {
		return j
	}
	if s.outdated() {
		j.Pending = some(s.pendingReprovision())
	}
	j.Exposed, j.CloudInit, j.Power = some(s.exposed()), some(s.cloudInitFailed()), some(s.powerIgnored())
	return j
}

// powerIgnored says that the server's claim decides on its power, and not its manifest.
func (s *server) powerIgnored() Why {
	if s.spec == nil || s.spec.Spec.Power == "" {
		return Why{}
	}
	return s.whySince(model.ReasonPowerIgnored, fmt.Sprintf("spec.power %s of Server %s (%s) is ignored: %s decides, and says "+
		"%s", s.spec.Spec.Power, s.spec.Name, s.spec.Source, s.claim.Identity(), s.claim.Spec.Power), RackOperator)
}

// stepWhy is why a server whose next step is st is not where it should be.
func (j *Server) stepWhy(st Step) Why {
	if st.Why.Reason == "" && st.Move != nil && acts(st.Move) {
		return Why{Reason: model.ReasonInProgress, Message: "next: " + moveText(st.Move), Since: j.Record.Since}
	}
	return st.Why
}

// acts reports whether a move does more than read, or what nobody waits for.
func acts(m *Move) bool {
	for _, a := range m.Do {
		if _, reads := a.(Inspect); !reads && !aside(a) {
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
func (f *fleet) judgeClaims() []Claim {
	all := make([]Claim, len(f.memory.claims))
	chosen := make(map[model.ClaimName]*server)
	for _, s := range f.servers {
		if s.bind != nil {
			chosen[s.bind.Identity().ClaimName()] = s
		}
	}
	for i, rec := range f.claimRecords() {
		d, c := f.memory.claims[i], &all[i]
		if rec == nil {
			rec = f.claimRecord(d.name)
		}
		c.Name, c.Manifest, c.Record = d.name, d.claim, rec
		if s := f.served[i]; s != nil {
			c.Server = s.name
		} else if s := chosen[d.name]; s != nil {
			c.Why = Why{Reason: model.ReasonInProgress, Message: fmt.Sprintf("server %s is chosen for it", s.name)}
		} else {
			c.Why = f.unbound(d)
		}
	}
	return all
}

// judgeBMCs says of each BMC how it fares.
func (f *fleet) judgeBMCs() []BMC {
	behind := make(map[model.BMCName]Why, len(f.bmcs)) // what is wrong with the first server that cannot be read
	for _, s := range f.servers {
		if s.reading.Failures < 2 || s.reading.mistaken() || behind[s.rec.BMC].Reason != "" {
			continue
		}
		why := s.unreachable()
		if why.Reason == model.ReasonBMCUnreachable {
			why.Reason = model.ReasonConnectionFailed
		}
		behind[s.rec.BMC] = why
	}
	all := make([]BMC, len(f.bmcs))
	for i, b := range f.bmcs {
		j := BMC{
			Name: b.name, Manifest: b.spec, Found: b.found, Record: b.rec, Address: b.target.Address,
			Problems: b.problems, Why: b.why, Duplicate: some(b.duplicate()),
		}
		if b.endpoint != nil {
			j.Endpoint = b.endpoint.name
		}
		if j.Why.Reason == "" {
			j.Why = behind[b.name]
		}
		all[i] = j
	}
	return all
}

// judgeEndpoints says of each device what it is, and where.
func (f *fleet) judgeEndpoints() []Endpoint {
	all := make([]Endpoint, len(f.endpoints))
	for i, v := range f.endpoints {
		j := Endpoint{
			Name: v.name, MAC: v.mac, IP: v.ip, Record: v.rec, Manifest: v.spec, Prefix: v.entry,
			IsBMC: v.bmc, DescribedBy: v.by, Why: v.why,
		}
		if v.ip == "" {
			j.Lost = some(v.addressLost())
		}
		all[i] = j
	}
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
