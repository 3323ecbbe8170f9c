package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// bootNamespace is where boot configurations stand that belong to no claim.
const bootNamespace = "ingot-system"

// view is the fleet as Plan sees it, with the reason for which each server is
// not where it should be.
type view struct {
	*fleet
	whys []Why // in the order of fleet.servers
	// behind are the servers of each BMC, in the order of names.
	behind map[model.BMCName][]*server
}

// newView goes through the motions of Plan and keeps what it says.
func newView(in *Input) *view {
	f := newFleet(in)
	f.guard()
	f.bindClaims()
	v := &view{fleet: f, whys: make([]Why, len(f.servers)), behind: make(map[model.BMCName][]*server)}
	for i, s := range f.servers {
		v.behind[s.rec.BMC] = append(v.behind[s.rec.BMC], s)
		before := *s
		st := s.step()
		*s = before
		v.whys[i] = st.Why
		if st.Why.Reason == "" && st.Move != nil && acts(st.Move) {
			v.whys[i] = s.why("InProgress", "next: "+moveText(st.Move))
		}
	}
	return v
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

func (v *view) serverDocument(i int) *document {
	s := v.servers[i]
	d := newDocument(model.KindServer, string(s.name))
	d.Metadata.Labels = v.serverLabels(s)
	d.Spec = v.serverSpec(s)
	d.Status = v.serverStatus(s, v.whys[i])
	d.Record = mirror(s.rec)
	return d
}

// mirror is what the status branch keeps of a record: all but the marks of
// attempts, which would make a commit of every failure. Texts are bounded.
func mirror(rec *model.ServerRecord) *model.ServerRecord {
	m := *rec
	m.Asked, m.Failures, m.LastError = nil, 0, ""
	m.NotBefore = time.Time{}
	if rec.BootProblem != nil {
		p := *rec.BootProblem
		p.Failures, p.NotBefore = 0, time.Time{}
		p.Message = shownText(p.Message)
		m.BootProblem = &p
	}
	if rec.NoDiskBoot != nil {
		n := *rec.NoDiskBoot
		n.Message = shownText(n.Message)
		m.NoDiskBoot = &n
	}
	if rec.Operation != nil {
		o := *rec.Operation
		o.Message = shownText(o.Message)
		m.Operation = &o
	}
	if rec.Doubt != nil {
		d := *rec.Doubt
		d.Message = shownText(d.Message)
		m.Doubt = &d
	}
	m.Message, m.Wiped = shownText(m.Message), shownWipes(m.Wiped)
	return &m
}

func (v *view) serverSpec(s *server) serverSpec {
	spec := serverSpec{
		SystemUUID: s.rec.UUID, SystemURI: s.rec.SystemURI,
		BMCRef: &model.LocalRef{Name: string(s.rec.BMC)}, ReclaimPolicy: model.ReclaimRecycle,
	}
	if s.spec != nil {
		spec.Taints, spec.Unclaimable = s.spec.Spec.Taints, s.spec.Spec.Unclaimable
		if s.spec.Spec.ReclaimPolicy != "" {
			spec.ReclaimPolicy = s.spec.Spec.ReclaimPolicy
		}
	}
	if s.rec.Claim != "" {
		ns, name := model.SplitName(s.rec.Claim)
		spec.ServerClaimRef = &model.ObjectRef{Namespace: ns, Name: name}
	}
	if s.rec.Ticket.Open() {
		ns, name := s.bootConfigurationName()
		spec.BootConfigurationRef = &model.ObjectRef{Namespace: ns, Name: name}
	}
	return spec
}

func (v *view) serverStatus(s *server, why Why) serverStatus {
	st := serverStatus{
		State: s.rec.State, PowerState: s.power(), Conditions: v.serverConditions(s, why), BootTimeline: s.bootFacts().timeline(),
	}
	var b bounds
	var nics []model.NetworkInterface
	if inv := s.facts.Inventory; inv != nil {
		st.Manufacturer, st.Model, st.SKU = shownText(inv.Manufacturer), shownText(inv.Model), shownText(inv.SKU)
		st.SerialNumber, st.BIOSVersion, st.IndicatorLED = shownText(inv.SerialNumber), shownText(inv.BIOSVersion), shownText(inv.IndicatorLED)
		st.TotalSystemMemory = bytesText(inv.MemoryBytes)
		st.Processors, st.Storages = b.processors(inv.Processors), b.storages(storageStatuses(inv.Storages))
		nics = inv.NetworkInterfaces
	}
	if s.rec.State == model.StateCleanup {
		st.Cleanup = b.cleanup(cleanupOf(s.wiping()))
	}
	if p := v.in.Observed.Probes[s.name]; p != nil && len(p.Data.NetworkInterfaces) > 0 {
		nics = probedInterfaces(&p.Data)
	}
	st.NetworkInterfaces, st.LeftOut = b.interfaces(nics), b.leftOut
	return st
}

// serverConditions says how the server fares, in a fixed order.
func (f *fleet) serverConditions(s *server, why Why) []metav1.Condition {
	ready := condition("Ready", true, string(s.rec.State), "", s.rec.Since)
	if why.Reason != "" {
		ready = condition("Ready", false, why.Reason, why.text(), why.Since)
	}
	conds := []metav1.Condition{ready}
	if p := f.in.Observed.Probes[s.name]; p != nil {
		conds = append(conds, condition("Discovered", true, "ReportReceived", "the probe reported", p.ReceivedAt))
	}
	if why.Reason == FoundRunning {
		conds = append(conds, condition(FoundRunning, true, FoundRunning, why.Message, why.Since))
	}
	facts := s.bootFacts()
	if stages := facts.timeline(); len(stages) > 0 {
		last := stages[len(stages)-1]
		conds = append(conds, condition("BootProgress", last.Stage == facts.outcome(), stageReasons[last.Stage], facts.progressText(stages), last.At))
	}
	if twin := s.duplicate(); twin.Reason != "" {
		conds = append(conds, condition(DuplicateUUID, true, DuplicateUUID, twin.text(), twin.Since))
	}
	if no := s.rec.NoDiskBoot; no != nil {
		conds = append(conds, condition("DiskBoot", false, no.Reason, noDiskText(s.name, no), no.Since))
	}
	if c, failed := s.operationCondition(); failed {
		conds = append(conds, c)
	}
	if c, refused := s.refusedBoot(); refused {
		conds = append(conds, c)
	}
	if c, misused := s.misuse(); misused {
		conds = append(conds, c)
	}
	if c, telling := s.macsCondition(); telling {
		conds = append(conds, c)
	}
	if c, wiped := s.wipedCondition(); wiped {
		conds = append(conds, c)
	}
	return conds
}

// operationCondition says that the power operation that was asked for last was not done,
// or in another way than asked for, or that nobody knows.
func (s *server) operationCondition() (c metav1.Condition, telling bool) {
	op := s.rec.Operation
	if op == nil {
		return metav1.Condition{}, false
	}
	text, since := op.Value+": "+op.Message, op.AskedAt
	switch op.Outcome {
	case model.OutcomeDone:
		if op.Message == "" {
			return metav1.Condition{}, false
		}
		return condition("Operation", true, "OutcomeDone", text, since), true
	case "":
		return metav1.Condition{}, false
	case model.OutcomeUnknown:
		text += "; it is not repeated: look at the machine, and give the annotation a new value if it is still wanted"
	case model.OutcomeRefused, model.OutcomeExpired:
	}
	if since.IsZero() {
		since = op.NotedAt
	}
	return condition("Operation", false, "Outcome"+string(op.Outcome), text, since), true
}

// wipedCondition says how the last wipe went, if there was one.
func (s *server) wipedCondition() (c metav1.Condition, wiped bool) {
	failed, missing := failedDisks(s.rec.Wiped), missingText(missed(s.rec.Missing))
	switch {
	case failed != "" && missing != "":
		return condition("Wiped", false, "WipeFailed", failed+"; "+missing, s.rec.Since), true
	case failed != "":
		return condition("Wiped", false, "WipeFailed", failed, s.rec.Since), true
	case missing != "":
		return condition("Wiped", false, "DiskMissing", missing, s.rec.Since), true
	case len(s.rec.Wiped) == 0:
		return metav1.Condition{}, false
	}
	done := plural(len(s.rec.Wiped), "disk") + " done"
	replaced := func(m model.MissingDisk) bool { return m.ReplacedBy != "" }
	if accepted := slices.DeleteFunc(slices.Clone(s.rec.Missing), replaced); len(accepted) > 0 {
		done += "; accepted without a wipe: " + disksText(accepted)
	}
	if gone := slices.DeleteFunc(slices.Clone(s.rec.Missing), func(m model.MissingDisk) bool { return !replaced(m) }); len(gone) > 0 {
		done += "; replaced under a ServerMaintenance and not wiped: " + disksText(gone)
	}
	return condition("Wiped", true, "WipeDone", done, s.rec.Since), true
}

// text is the message with who has to act.
func (w Why) text() string {
	if w.Actor == Nobody {
		return w.Message
	}
	return w.Message + " (to act: " + string(w.Actor) + ")"
}

func probedInterfaces(d *model.ProbeData) []model.NetworkInterface {
	neighbors := make(map[string][]model.Neighbor)
	for _, l := range d.LLDP {
		for _, n := range l.Neighbors {
			neighbors[l.Name] = append(neighbors[l.Name], model.Neighbor{
				MACAddress: n.ChassisID, PortID: n.PortID, PortDescription: n.PortDescription,
				SystemName: n.SystemName, SystemDescription: n.SystemDescription,
			})
		}
	}
	var out []model.NetworkInterface
	for _, n := range d.NetworkInterfaces {
		out = append(out, model.NetworkInterface{
			Name: n.Name, IPs: n.IPAddresses, MACAddress: n.MACAddress, CarrierStatus: n.CarrierStatus, Neighbors: neighbors[n.Name],
		})
	}
	return out
}

func (v *view) bmcDocument(b *bmcView) *document {
	d := newDocument(model.KindBMC, string(b.name))
	d.Metadata.Labels = b.spec.Labels
	d.Spec = bmcSpec{b.spec.Spec.EndpointRef, b.spec.Spec.Access, b.spec.Spec.BMCSecretRef, b.spec.Spec.Protocol}
	st := bmcStatus{State: "Pending"}
	why := v.bmcWhy(b)
	switch {
	case why.Reason == "":
		st.State = "Enabled"
		st.Conditions = append(st.Conditions, condition("Ready", true, "Connected", "", b.rec.Since))
	default:
		if why.Reason != "Pending" {
			st.State = "Error"
		}
		st.Conditions = append(st.Conditions, condition("Ready", false, why.Reason, why.text(), why.Since))
	}
	if b.facts != nil {
		st.MACAddress, st.Manufacturer, st.Model, st.SKU = b.facts.MACAddress, b.facts.Manufacturer, b.facts.Model, b.facts.SKU
		st.SerialNumber, st.FirmwareVersion, st.PowerState = b.facts.SerialNumber, b.facts.FirmwareVersion, b.facts.Power
		problems := slices.Concat(b.facts.Problems, b.problems)
		if len(problems) > 0 {
			st.Conditions = append(st.Conditions, condition("Complete", false, "PartsUnreadable", strings.Join(problems, "; "), b.rec.Since))
		}
		if twin := b.duplicate(); twin.Reason != "" {
			st.Conditions = append(st.Conditions, condition(DuplicateUUID, true, DuplicateUUID, twin.text(), twin.Since))
		}
	}
	switch {
	case b.spec.Spec.Access != nil:
		st.IP = b.spec.Spec.Access.IP
		st.MACAddress = cmp.Or(st.MACAddress, b.spec.Spec.Access.MACAddress)
	case b.endpoint != nil:
		st.IP = b.endpoint.ip
		st.MACAddress = cmp.Or(st.MACAddress, b.endpoint.mac)
	}
	for _, s := range v.behind[b.name] {
		st.Servers = append(st.Servers, s.name)
	}
	rec := *b.rec
	rec.Failures, rec.NotBefore = 0, time.Time{}
	rec.LastError = shownText(rec.LastError)
	d.Status, d.Record = st, &rec
	return d
}

// endpointDocument shows a device: where it is, and the BMC that it is or why none.
func (v *view) endpointDocument(e *endpointView) *document {
	d := newDocument(model.KindEndpoint, e.name)
	if e.spec != nil {
		d.Metadata.Labels = e.spec.Labels
	}
	d.Spec = endpointSpec{e.mac, e.ip}
	st := endpointStatus{Network: e.rec.Network, Since: e.rec.Since, BMC: e.by, Prefix: e.rec.Prefix}
	if e.entry != nil {
		st.Manufacturer = e.entry.Manufacturer
	}
	if e.bmc {
		st.BMC = model.BMCName(e.name)
	}
	switch {
	case e.why.Reason != "":
		st.Conditions = append(st.Conditions, condition("Recognised", false, e.why.Reason, e.why.text(), e.why.Since))
	default:
		st.Conditions = append(st.Conditions, condition("Recognised", true, "MACPrefix", fmt.Sprintf("BMC %s, by entry %s of the MAC prefix database", e.name, e.entry.Prefix), e.rec.Since))
	}
	if e.ip == "" {
		why := e.addressLost()
		st.Conditions = append(st.Conditions, condition("Reachable", false, why.Reason, why.text(), why.Since))
	}
	own := *e.rec
	d.Status, d.Record = st, &own
	return d
}

// bmcWhy says why a BMC is not usable: its own reading failed, or its servers' do.
func (v *view) bmcWhy(b *bmcView) Why {
	if b.why.Reason != "" {
		return b.why
	}
	for _, s := range v.behind[b.name] {
		if s.reading.Failures < 2 || s.reading.mistaken() {
			continue
		}
		w := s.unreachable()
		if w.Reason == BMCUnreachable {
			w.Reason = "ConnectionFailed"
		}
		return w
	}
	return Why{}
}

func (v *view) claimDocument(name model.ClaimName, c *model.ServerClaim) *document {
	d := newDocument(model.KindServerClaim, c.Name)
	d.Metadata.Namespace, d.Metadata.Labels = c.Namespace, c.Labels
	d.Spec = c.Spec
	rec := *v.claimRecord(name)
	d.Record = &rec
	s := v.byName[v.served[name]]
	var st claimStatus
	if s == nil {
		why := v.unbound(c)
		if why.Since.IsZero() {
			why.Since = rec.FirstSeen
		}
		st = claimStatus{Phase: "Unbound", Conditions: []metav1.Condition{
			condition("Bound", false, why.Reason, why.text(), rec.FirstSeen),
		}}
	} else {
		st = claimStatus{Phase: "Bound", Server: s.name, Conditions: v.boundConditions(s, c)}
	}
	if a, listed := v.absence(name.Identity()); listed {
		why := absentWhy("the claim", a)
		st.Conditions = append(st.Conditions, condition(AbsentWithoutCommit, true, string(a.Cause), why.text(), a.Since))
	}
	d.Status = st
	return d
}

// heldClaim reports whether the server is kept for a claim of which nothing but the name
// is known, and how that is listed.
func (v *view) heldClaim(s *server) (model.Absence, bool) {
	if s.rec.Claim == "" || v.in.Desired.Claims[s.rec.Claim] != nil || s.rec.Release != nil {
		return model.Absence{}, false
	}
	return v.absence(s.rec.Claim.Identity())
}

// heldClaimDocument shows a claim that Git lacks though no commit took it away.
func (v *view) heldClaimDocument(s *server, a model.Absence) *document {
	ns, name := model.SplitName(s.rec.Claim)
	d := newDocument(model.KindServerClaim, name)
	d.Metadata.Namespace = ns
	why := absentWhy("the claim", a)
	d.Status = claimStatus{Phase: "Bound", Server: s.name, Conditions: []metav1.Condition{
		condition("Bound", true, "Bound", "bound to server "+string(s.name), s.rec.ClaimedAt),
		condition("Ready", false, AbsentWithoutCommit, why.text(), a.Since),
		condition(AbsentWithoutCommit, true, string(a.Cause), why.text(), a.Since),
	}}
	if rec := v.in.Observed.Claims[s.rec.Claim]; rec != nil {
		own := *rec
		d.Record = &own
	}
	return d
}

// boundConditions says how far a bound claim's server is.
func (v *view) boundConditions(s *server, c *model.ServerClaim) []metav1.Condition {
	conds := []metav1.Condition{condition("Bound", true, "Bound", "bound to server "+string(s.name), s.rec.ClaimedAt)}
	why := v.whyOf(s)
	booted := s.rec.Installed != "" && !s.unconfirmed()
	switch {
	case why.Reason == "" && c.Spec.Power == model.PowerOff:
		conds = append(conds, condition("Ready", true, "PoweredOff", "", s.rec.ClaimedAt))
	case booted && why.Reason == "":
		conds = append(conds, condition("Ready", true, "Booted", "", v.bootedAt(s)))
	case booted && s.ranWhenLastRead(why):
		conds = append(conds, condition("Ready", true, "Booted", "", v.bootedAt(s)),
			condition(bmcReadable, false, why.Reason, why.text(), why.Since))
	default:
		conds = append(conds, condition("Ready", false, why.Reason, why.text(), why.Since))
	}
	if s.unconfirmed() {
		u := s.unconfirmedWhy()
		conds = append(conds, condition(Unconfirmed, true, u.Reason, u.text(), u.Since))
	}
	if e, exposed := s.exposed(); exposed {
		conds = append(conds, e)
	}
	if s.claim != nil && s.outdated() {
		p := s.pendingReprovision()
		conds = append(conds, condition(PendingReprovision, true, p.Reason, p.text(), s.rec.ClaimedAt))
	}
	return conds
}

func (v *view) whyOf(s *server) Why {
	i, _ := slices.BinarySearchFunc(v.servers, s.name, func(x *server, n model.ServerName) int {
		return strings.Compare(string(x.name), string(n))
	})
	return v.whys[i]
}

// bootedAt is when the claim's server said that it had booted, or else was bound.
func (v *view) bootedAt(s *server) time.Time {
	if b := v.in.Observed.BootStates[s.name]; b != nil && s.rec.Ticket != nil && b.Ticket == s.rec.Ticket.ID {
		return b.ReceivedAt
	}
	return s.rec.ClaimedAt
}

func (v *view) maintenanceDocument(name string, m *model.ServerMaintenance) *document {
	d := newDocument(model.KindServerMaintenance, name)
	d.Spec = m.Spec
	server := v.resolve(m.Spec.ServerRef.Name)
	s := v.byName[server]
	switch {
	case s == nil:
		d.Status = maintenanceStatus{State: "Pending", Message: fmt.Sprintf("there is no server %s", m.Spec.ServerRef.Name)}
	case s.rec.State == model.StateMaintenance && s.rec.MaintainedBy == name:
		d.Status = maintenanceStatus{State: "InMaintenance"}
	case !v.mayMaintain(m, server):
		d.Status = maintenanceStatus{State: "Pending", Message: fmt.Sprintf("refused: server %s serves no claim of those below %s, who may define no Server (git.tenants)", server, m.Tenant)}
	case s.rec.State == model.StateMaintenance:
		d.Status = maintenanceStatus{State: "Pending", Message: fmt.Sprintf("server %s is in Maintenance already, for %s", server, s.rec.MaintainedBy)}
	default:
		d.Status = maintenanceStatus{State: "Pending", Message: fmt.Sprintf("server %s is %s", server, s.rec.State)}
	}
	return d
}

// approveLine is what a commit message ends with to have something let happen.
func approveLine(token string) string { return "Ingot-Approve: " + token }

func (v *view) revisionDocument(r *model.Report) *revisionDocument {
	d, fleet := v.in.Desired, v.in.Observed.Fleet
	doc := &revisionDocument{
		Observed: d.Source.Observed, Applied: fleet.Applied.Revision(), Record: mirrorFleet(fleet), Pools: exhausted(v.in.Pools),
		Fence: r.Fence, Holder: r.Holder, MirrorFirst: v.in.Policy.MirrorFirst,
		Tenants: v.in.Policy.Tenants,
	}
	if doc.Observed == "" {
		doc.Observed = d.Revision
	}
	if d.Source.Reason != "" {
		doc.Source = &sourceDocument{d.Source.Reason, shownText(d.Source.Message), d.Source.Since}
	}
	for i, g := range fleet.Holds {
		shown := doc.Record.Holds[i].Steps
		gd := guardDocument{
			Message: guardText(&g), Approve: approveLine(g.Token), Limit: g.Limit, Since: g.Since, Until: g.Until, Steps: shown,
		}
		if more := len(g.Steps) - len(shown); more > 0 {
			gd.LeftOut = plural(more, "step")
		}
		doc.Guard = append(doc.Guard, gd)
	}
	if n := len(fleet.Absent) + fleet.AbsentMore; n > 0 {
		doc.Absent = &absenceDocument{Message: absentText(n), Approve: approveLine(fleet.AbsentToken), Count: n}
	}
	return doc
}

// guardText says what a list waits for.
func guardText(g *model.GuardHold) string {
	what := "the fleet"
	if g.Scope != "" {
		what = "namespace " + g.Scope
	}
	text := fmt.Sprintf("%s of revision %s would be more than the limit of %d within the guard's window for %s", plural(len(g.Steps), "step"), g.Revision, g.Limit, what)
	if !g.Until.IsZero() {
		text += "; there is room at " + clock(g.Until)
	}
	return text
}

func absentText(n int) string {
	return fmt.Sprintf("%s in force though Git lacks them or has them otherwise, and no commit that follows on the revision applied says so", plural(n, "object"))
}
