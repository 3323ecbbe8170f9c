package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// Result is what Plan decided, and why each object is where it is.
type Result struct {
	// Decided are records that change without anything being done to a machine.
	Decided Changes
	// Moves and Readings are what to do now with servers and BMCs, none with one that is
	// busy.
	Moves    map[model.ServerName]*Move
	Readings map[model.BMCName]*BMCMove
	// Next is when to plan again if nothing happens before; zero = not by time.
	Next time.Time

	// ObserveOnly says why nothing is done to any server, "" when something may be.
	ObserveOnly Why
	// What follows is all that is known of, in the order of names.
	Servers      []Server
	Claims       []Claim
	BMCs         []BMC
	Endpoints    []Endpoint
	Maintenances []Maintenance
}

// Changes is what is saved at once, durably.
type Changes struct {
	Fleet       *model.FleetRecord
	Servers     []*model.ServerRecord
	BMCs        []*model.BMCRecord
	Claims      []*model.ClaimRecord
	DropClaims  []model.ClaimName
	BMCFacts    []*model.BMCFacts
	ServerFacts []*model.ServerFacts
	// Payloads are what boot tickets serve, by ticket.
	Payloads map[string]model.Sensitive

	Endpoints     []*model.EndpointRecord
	DropEndpoints []string
}

// Server is one server as a plan found it, and what comes of it.
type Server struct {
	Name     model.ServerName
	Record   *model.ServerRecord
	Manifest *model.Server      // nil = Git says nothing of it
	Claim    *model.ServerClaim // the claim that it is bound to, if that is in force
	Stage    InstallStage       // of what the claim asks for
	Why      Why                // the zero one = it is where it should be

	// What else there is to say of it, nil where there is nothing.
	Duplicate   *Why // another machine has its UUID
	Unarmed     *Why // it cannot be armed for what it is to boot
	Unbooted    *Why // it did not boot what it is armed for
	Pending     *Why // its claim asks for something else than was installed
	Unconfirmed *Why // nothing has said that it booted what was installed
	Exposed     *Why // its claim's Secret was served to another machine

	// RanWhenLastRead is set when Why is nothing but that the server cannot be read now,
	// and it was On before: what runs on it goes on without its BMC.
	RanWhenLastRead bool
}

// Claim is one claim in force.
type Claim struct {
	Name     model.ClaimName
	Manifest *model.ServerClaim
	Record   *model.ClaimRecord
	Server   model.ServerName // "" = it has none
	Why      Why              // why it has no server
}

// BMC is one BMC, of Git or recognised on the network.
type BMC struct {
	Name      model.BMCName
	Manifest  *model.BMC // made up for one that was Found
	Found     bool       // recognised by the MAC prefix database
	Record    *model.BMCRecord
	Address   string   // "" = it is not to be spoken to
	Endpoint  string   // the device that it is, "" = not known
	Problems  []string // of systems that cannot become servers
	Why       Why      // why it is not usable
	Duplicate *Why     // machines behind it have the UUIDs of other servers
}

// Endpoint is one device.
type Endpoint struct {
	Name        string
	MAC         string
	IP          string // "" = nobody knows where it is
	Record      *model.EndpointRecord
	Manifest    *model.Endpoint  // nil = Git says nothing of it
	Prefix      *model.MACPrefix // the entry that it was recognised by, if any
	IsBMC       bool             // by that entry
	DescribedBy model.BMCName    // the BMC in Git that it is, if any
	Why         Why              // why it does not count as a BMC by itself
	Lost        *Why             // why nobody knows where it is
}

// Maintenance is one ServerMaintenance in force.
type Maintenance struct {
	Name     string
	Manifest *model.ServerMaintenance
	Server   model.ServerName // as Ingot knows the one that it names
	Refused  bool             // its tenant may not take that server out of service
}

// some is a why where there is one.
func some(why Why) *Why {
	if why.Reason == "" {
		return nil
	}
	return new(why) // a copy, so that only this takes memory
}

// judge says of a server what it is like before its step.
func (s *server) judge() Server {
	j := Server{Name: s.name, Record: s.rec, Manifest: s.spec, Claim: s.claim, Stage: s.installStage(), Duplicate: some(s.duplicate())}
	if p := s.rec.BootProblem; FailedBoot(p) {
		j.Unbooted = some(s.problemWhy(p))
	}
	j.Unarmed = some(s.bootTrouble())
	if s.unconfirmed() {
		j.Unconfirmed = some(s.unconfirmedWhy())
	}
	if s.claim == nil {
		return j
	}
	if s.outdated() {
		j.Pending = some(s.pendingReprovision())
	}
	j.Exposed = some(s.exposed())
	return j
}

// stepWhy is why a server whose next step is st is not where it should be.
func (j *Server) stepWhy(st Step) Why {
	if st.Why.Reason == "" && st.Move != nil && acts(st.Move) {
		return Why{Reason: model.ReasonInProgress, Message: "next: " + moveText(st.Move), Since: j.Record.Since}
	}
	return st.Why
}

// acts reports whether a move does more than read.
func acts(m *Move) bool {
	for _, a := range m.Do {
		if _, reads := a.(Inspect); !reads {
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
	all := make([]Claim, 0, len(f.in.Desired.Claims))
	for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Claims)) {
		c := Claim{Name: name, Manifest: f.in.Desired.Claims[name], Record: f.claimRecord(name)}
		if s := f.byName[f.served[name]]; s != nil {
			c.Server = s.name
		} else {
			c.Why = f.unbound(c.Manifest)
		}
		all = append(all, c)
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
		all = append(all, Maintenance{
			Name: name, Manifest: m, Server: server,
			Refused: f.byName[server] != nil && !f.mayMaintain(m, server),
		})
	}
	return all
}
