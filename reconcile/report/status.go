package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan"
)

// bootNamespace is where boot configurations stand that belong to no claim.
const bootNamespace = "ingot-system"

// view is a plan's result, looked up by name.
type view struct {
	*plan.Result
	in        *plan.Input
	servers   map[model.ServerName]*plan.Server
	bmcs      map[model.BMCName]*plan.BMC
	endpoints map[string]*plan.Endpoint
	// behind are the servers of each BMC, in the order of names.
	behind     map[model.BMCName][]model.ServerName
	macHolders map[string]int // how many servers have a MAC address; made when first needed
}

func newView(in *plan.Input, r *plan.Result) *view {
	v := &view{
		Result: r, in: in,
		servers:   make(map[model.ServerName]*plan.Server, len(r.Servers)),
		bmcs:      make(map[model.BMCName]*plan.BMC, len(r.BMCs)),
		endpoints: make(map[string]*plan.Endpoint, len(r.Endpoints)),
		behind:    make(map[model.BMCName][]model.ServerName, len(r.BMCs)),
	}
	for i := range r.Servers {
		s := &r.Servers[i]
		v.servers[s.Name] = s
		v.behind[s.Record.BMC] = append(v.behind[s.Record.BMC], s.Name)
	}
	for i := range r.BMCs {
		v.bmcs[r.BMCs[i].Name] = &r.BMCs[i]
	}
	for i := range r.Endpoints {
		v.endpoints[r.Endpoints[i].Name] = &r.Endpoints[i]
	}
	return v
}

// serverView is one server with what was read of it.
type serverView struct {
	*plan.Server
	in *plan.Input
}

func (v *view) server(s *plan.Server) serverView { return serverView{s, v.in} }

// facts are what was read of the server, empty before anything was.
func (s serverView) facts() *model.ServerFacts {
	if f := s.in.Observed.ServerFacts[s.Name]; f != nil {
		return f
	}
	return &model.ServerFacts{Name: s.Name}
}

func (s serverView) progress() *model.Progress { return s.in.Observed.ProgressOf(s.Record) }

func (s serverView) trace() model.BootTrace { return s.in.Observed.BootOf(s.Record) }

func (v *view) serverDocument(s serverView) *Document {
	d := newDocument(model.KindServer, string(s.Name))
	var b *model.BMC
	if of := v.bmcs[s.Record.BMC]; of != nil {
		b = of.Manifest
	}
	d.Metadata.Labels = model.ServerLabels(b, s.Manifest)
	d.Spec = s.spec()
	d.Status = v.serverStatus(s)
	d.Record = Mirrored(s.Record)
	return d
}

// Mirrored is what the status branch keeps of a record: all but the marks of
// attempts, which would make a commit of every failure. Texts are bounded.
func Mirrored(rec *model.ServerRecord) *model.ServerRecord {
	m := *rec
	m.Asked, m.Failures, m.LastError = nil, 0, ""
	m.NotBefore, m.NoShutdown = time.Time{}, time.Time{}
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

func (s serverView) spec() ServerSpec {
	spec := ServerSpec{
		SystemUUID: s.Record.UUID, SystemURI: s.Record.SystemURI,
		BMCRef: &model.LocalRef{Name: string(s.Record.BMC)}, ReclaimPolicy: model.ReclaimRecycle,
	}
	if s.Manifest != nil {
		spec.Taints, spec.Unclaimable = s.Manifest.Spec.Taints, s.Manifest.Spec.Unclaimable
		if s.Manifest.Spec.ReclaimPolicy != "" {
			spec.ReclaimPolicy = s.Manifest.Spec.ReclaimPolicy
		}
	}
	if s.Record.Claim != "" {
		ns, name := model.SplitName(s.Record.Claim)
		spec.ServerClaimRef = &model.ObjectRef{Namespace: ns, Name: name}
	}
	if s.Record.Ticket.Open() {
		ns, name := s.bootConfigurationName()
		spec.BootConfigurationRef = &model.ObjectRef{Namespace: ns, Name: name}
	}
	return spec
}

func (v *view) serverStatus(s serverView) ServerStatus {
	st := ServerStatus{
		State: s.Record.State, PowerState: s.facts().Power, Conditions: v.serverConditions(s), BootTimeline: s.trace().Steps(),
	}
	var b bounds
	var nics []model.NetworkInterface
	if inv := s.facts().Inventory; inv != nil {
		st.Manufacturer, st.Model, st.SKU = shownText(inv.Manufacturer), shownText(inv.Model), shownText(inv.SKU)
		st.SerialNumber, st.BIOSVersion, st.IndicatorLED = shownText(inv.SerialNumber), shownText(inv.BIOSVersion), shownText(inv.IndicatorLED)
		st.TotalSystemMemory = bytesText(inv.MemoryBytes)
		st.Processors, st.Storages = b.processors(inv.Processors), b.storages(storageStatuses(inv.Storages))
		nics = inv.NetworkInterfaces
	}
	if s.Record.State == model.StateCleanup {
		st.Cleanup = b.cleanup(cleanupOf(s.trace().Wiping()))
	}
	if p := v.in.Observed.Probes[s.Name]; p != nil && len(p.Data.NetworkInterfaces) > 0 {
		nics = probedInterfaces(&p.Data)
	}
	st.NetworkInterfaces, st.LeftOut = b.interfaces(nics), b.leftOut
	return st
}

// serverConditions says how the server fares, in a fixed order.
func (v *view) serverConditions(s serverView) []metav1.Condition {
	why := s.Why
	ready := condition("Ready", true, string(s.Record.State), "", s.Record.Since)
	if why.Reason != "" {
		ready = condition("Ready", false, why.Reason, why.Text(), why.Since)
	}
	conds := []metav1.Condition{ready}
	if p := v.in.Observed.Probes[s.Name]; p != nil {
		conds = append(conds, condition("Discovered", true, "ReportReceived", "the probe reported", p.ReceivedAt))
	}
	if why.Reason == model.ReasonFoundRunning {
		conds = append(conds, condition(model.ReasonFoundRunning, true, model.ReasonFoundRunning, why.Message, why.Since))
	}
	trace := s.trace()
	if steps := trace.Steps(); len(steps) > 0 {
		last := steps[len(steps)-1]
		conds = append(conds, condition("BootProgress", last.Stage == trace.Outcome(), stageReasons[last.Stage], progressText(trace, steps), last.At))
	}
	if twin := s.Duplicate; twin != nil {
		conds = append(conds, condition(model.ReasonDuplicateUUID, true, model.ReasonDuplicateUUID, twin.Text(), twin.Since))
	}
	if no := s.Record.NoDiskBoot; no != nil {
		conds = append(conds, condition("DiskBoot", false, no.Reason, noDiskText(s.Name, no), no.Since))
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
	if c, telling := v.macsCondition(s); telling {
		conds = append(conds, c)
	}
	if c, wiped := s.wipedCondition(); wiped {
		conds = append(conds, c)
	}
	return conds
}

// operationCondition says that the power operation that was asked for last was not done,
// or in another way than asked for, or that nobody knows.
func (s serverView) operationCondition() (c metav1.Condition, telling bool) {
	op := s.Record.Operation
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

// noDiskText says what it means that the BMC sets no one-time boot from disk.
func noDiskText(name model.ServerName, no *model.NoDiskBoot) string {
	return fmt.Sprintf("its BMC sets no one-time boot from disk, so a server that lost power starts from what its boot order has first, and is sent on to its disk from the network: "+
		"have its boot order begin with the disk; to have its BMC asked again, set annotation %s: %s#1 on Server %s (%s)",
		model.AnnotationOperation, model.OperationRetry, name, no.Message)
}

// wipedCondition says how the last wipe went, if there was one.
func (s serverView) wipedCondition() (c metav1.Condition, wiped bool) {
	failed, missing := plan.FailedDisksText(s.Record.Wiped), plan.MissingDisksText(plan.NotAccepted(s.Record.Missing))
	switch {
	case failed != "" && missing != "":
		return condition("Wiped", false, "WipeFailed", failed+"; "+missing, s.Record.Since), true
	case failed != "":
		return condition("Wiped", false, "WipeFailed", failed, s.Record.Since), true
	case missing != "":
		return condition("Wiped", false, "DiskMissing", missing, s.Record.Since), true
	case len(s.Record.Wiped) == 0:
		return metav1.Condition{}, false
	}
	done := text.Plural(len(s.Record.Wiped), "disk") + " done"
	replaced := func(m model.MissingDisk) bool { return m.ReplacedBy != "" }
	if accepted := slices.DeleteFunc(slices.Clone(s.Record.Missing), replaced); len(accepted) > 0 {
		done += "; accepted without a wipe: " + plan.DisksText(accepted)
	}
	if gone := slices.DeleteFunc(slices.Clone(s.Record.Missing), func(m model.MissingDisk) bool { return !replaced(m) }); len(gone) > 0 {
		done += "; replaced under a ServerMaintenance and not wiped: " + plan.DisksText(gone)
	}
	return condition("Wiped", true, "WipeDone", done, s.Record.Since), true
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

func (v *view) bmcDocument(b *plan.BMC) *Document {
	d := newDocument(model.KindBMC, string(b.Name))
	d.Metadata.Labels = b.Manifest.Labels
	d.Spec = BMCSpec{b.Manifest.Spec.EndpointRef, b.Manifest.Spec.Access, b.Manifest.Spec.BMCSecretRef, b.Manifest.Spec.Protocol}
	st := BMCStatus{State: "Pending"}
	why, facts := b.Why, v.in.Observed.BMCFacts[b.Name]
	switch {
	case why.Reason == "":
		st.State = "Enabled"
		st.Conditions = append(st.Conditions, condition("Ready", true, "Connected", "", b.Record.Since))
	default:
		if why.Reason != model.ReasonPending {
			st.State = "Error"
		}
		st.Conditions = append(st.Conditions, condition("Ready", false, why.Reason, why.Text(), why.Since))
	}
	if facts != nil {
		st.MACAddress, st.Manufacturer, st.Model, st.SKU = facts.MACAddress, facts.Manufacturer, facts.Model, facts.SKU
		st.SerialNumber, st.FirmwareVersion, st.PowerState = facts.SerialNumber, facts.FirmwareVersion, facts.Power
		problems := slices.Concat(facts.Problems, b.Problems)
		if len(problems) > 0 {
			st.Conditions = append(st.Conditions, condition("Complete", false, "PartsUnreadable", strings.Join(problems, "; "), b.Record.Since))
		}
		if twin := b.Duplicate; twin != nil {
			st.Conditions = append(st.Conditions, condition(model.ReasonDuplicateUUID, true, model.ReasonDuplicateUUID, twin.Text(), twin.Since))
		}
	}
	switch {
	case b.Manifest.Spec.Access != nil:
		st.IP = b.Manifest.Spec.Access.IP
		st.MACAddress = cmp.Or(st.MACAddress, b.Manifest.Spec.Access.MACAddress)
	case v.endpoints[b.Endpoint] != nil:
		st.IP = v.endpoints[b.Endpoint].IP
		st.MACAddress = cmp.Or(st.MACAddress, v.endpoints[b.Endpoint].MAC)
	}
	st.Servers = v.behind[b.Name]
	rec := *b.Record
	rec.Failures, rec.NotBefore = 0, time.Time{}
	rec.LastError = shownText(rec.LastError)
	d.Status, d.Record = st, &rec
	return d
}

// endpointDocument shows a device: where it is, and the BMC that it is or why none.
func (v *view) endpointDocument(e *plan.Endpoint) *Document {
	d := newDocument(model.KindEndpoint, e.Name)
	if e.Manifest != nil {
		d.Metadata.Labels = e.Manifest.Labels
	}
	d.Spec = EndpointSpec{e.MAC, e.IP}
	st := EndpointStatus{Network: e.Record.Network, Since: e.Record.Since, BMC: e.DescribedBy, Prefix: e.Record.Prefix}
	if e.Prefix != nil {
		st.Manufacturer = e.Prefix.Manufacturer
	}
	if e.IsBMC {
		st.BMC = model.BMCName(e.Name)
	}
	switch {
	case e.Why.Reason != "":
		st.Conditions = append(st.Conditions, condition("Recognised", false, e.Why.Reason, e.Why.Text(), e.Why.Since))
	default:
		st.Conditions = append(st.Conditions, condition("Recognised", true, "MACPrefix", fmt.Sprintf("BMC %s, by entry %s of the MAC prefix database", e.Name, e.Prefix.Prefix), e.Record.Since))
	}
	if why := e.Lost; why != nil {
		st.Conditions = append(st.Conditions, condition("Reachable", false, why.Reason, why.Text(), why.Since))
	}
	own := *e.Record
	d.Status, d.Record = st, &own
	return d
}

func (v *view) claimDocument(c *plan.Claim) *Document {
	d := newDocument(model.KindServerClaim, c.Manifest.Name)
	d.Metadata.Namespace, d.Metadata.Labels = c.Manifest.Namespace, c.Manifest.Labels
	d.Spec = c.Manifest.Spec
	rec := *c.Record
	d.Record = &rec
	var st ClaimStatus
	if s := v.servers[c.Server]; s == nil {
		st = ClaimStatus{Phase: "Unbound", Conditions: []metav1.Condition{
			condition("Bound", false, c.Why.Reason, c.Why.Text(), rec.FirstSeen),
		}}
	} else {
		st = ClaimStatus{Phase: "Bound", Server: s.Name, Conditions: v.server(s).boundConditions(c.Manifest)}
	}
	if a, listed := v.in.Desired.Absence(c.Name.Identity()); listed {
		why := plan.AbsentWhy("the claim", a)
		st.Conditions = append(st.Conditions, condition(model.ReasonAbsentWithoutCommit, true, string(a.Cause), why.Text(), a.Since))
	}
	d.Status = st
	return d
}

// heldClaim reports whether the server is kept for a claim of which nothing but the name
// is known, and how that is listed.
func (v *view) heldClaim(s *plan.Server) (model.Absence, bool) {
	if s.Record.Claim == "" || v.in.Desired.Claims[s.Record.Claim] != nil || s.Record.Release != nil {
		return model.Absence{}, false
	}
	return v.in.Desired.Absence(s.Record.Claim.Identity())
}

// heldClaimDocument shows a claim that Git lacks though no commit took it away.
func (v *view) heldClaimDocument(s *plan.Server, a model.Absence) *Document {
	ns, name := model.SplitName(s.Record.Claim)
	d := newDocument(model.KindServerClaim, name)
	d.Metadata.Namespace = ns
	why := plan.AbsentWhy("the claim", a)
	d.Status = ClaimStatus{Phase: "Bound", Server: s.Name, Conditions: []metav1.Condition{
		condition("Bound", true, "Bound", "bound to server "+string(s.Name), s.Record.ClaimedAt),
		condition("Ready", false, model.ReasonAbsentWithoutCommit, why.Text(), a.Since),
		condition(model.ReasonAbsentWithoutCommit, true, string(a.Cause), why.Text(), a.Since),
	}}
	if rec := v.in.Observed.Claims[s.Record.Claim]; rec != nil {
		own := *rec
		d.Record = &own
	}
	return d
}

// boundConditions says how far a bound claim's server is.
func (s serverView) boundConditions(c *model.ServerClaim) []metav1.Condition {
	conds := []metav1.Condition{condition("Bound", true, "Bound", "bound to server "+string(s.Name), s.Record.ClaimedAt)}
	why := s.Why
	booted := s.Record.Installed != "" && s.Unconfirmed == nil
	switch {
	case why.Reason == "" && c.Spec.Power == model.PowerOff:
		conds = append(conds, condition("Ready", true, "PoweredOff", "", s.Record.ClaimedAt))
	case booted && why.Reason == "":
		conds = append(conds, condition("Ready", true, "Booted", "", s.bootedAt()))
	case booted && s.RanWhenLastRead:
		conds = append(conds, condition("Ready", true, "Booted", "", s.bootedAt()),
			condition(plan.BMCReadable, false, why.Reason, why.Text(), why.Since))
	default:
		conds = append(conds, condition("Ready", false, why.Reason, why.Text(), why.Since))
	}
	if u := s.Unconfirmed; u != nil {
		conds = append(conds, condition(model.ReasonUnconfirmed, true, u.Reason, u.Text(), u.Since))
	}
	if e := s.Exposed; e != nil {
		conds = append(conds, condition("SecretExposed", true, e.Reason, e.Text(), e.Since))
	}
	if p := s.Pending; p != nil {
		conds = append(conds, condition(model.ReasonPendingReprovision, true, p.Reason, p.Text(), s.Record.ClaimedAt))
	}
	return conds
}

// bootedAt is when the claim's server said that it had booted, or else was bound.
func (s serverView) bootedAt() time.Time {
	if b := s.in.Observed.BootStates[s.Name]; b != nil && s.Record.Ticket != nil && b.Ticket == s.Record.Ticket.ID {
		return b.ReceivedAt
	}
	return s.Record.ClaimedAt
}

func (v *view) maintenanceDocument(m *plan.Maintenance) *Document {
	d := newDocument(model.KindServerMaintenance, m.Name)
	d.Spec = m.Manifest.Spec
	pending := func(format string, args ...any) {
		d.Status = MaintenanceStatus{State: "Pending", Message: fmt.Sprintf(format, args...)}
	}
	switch s := v.servers[m.Server]; {
	case s == nil:
		pending("there is no server %s", m.Manifest.Spec.ServerRef.Name)
	case s.Record.State == model.StateMaintenance && s.Record.MaintainedBy == m.Name:
		d.Status = MaintenanceStatus{State: "InMaintenance"}
	case m.Refused:
		pending("refused: server %s serves no claim of those below %s, who may define no Server (git.tenants)", m.Server, m.Manifest.Tenant)
	case s.Record.State == model.StateMaintenance:
		pending("server %s is in Maintenance already, for %s", m.Server, s.Record.MaintainedBy)
	default:
		pending("server %s is %s", m.Server, s.Record.State)
	}
	return d
}

func (v *view) revisionDocument(r *model.Report) *Revision {
	d, fleet := v.in.Desired, v.in.Observed.Fleet
	doc := &Revision{
		Observed: d.Source.Observed, Applied: fleet.Applied.Revision(), Record: mirrorFleet(fleet), Pools: ExhaustedPools(v.in.Pools),
		Fence: r.Fence, Holder: r.Holder, MirrorFirst: v.in.Policy.MirrorFirst,
		Tenants: v.in.Policy.Tenants,
	}
	if doc.Observed == "" {
		doc.Observed = d.Revision
	}
	if d.Source.Reason != "" {
		doc.Source = &Source{d.Source.Reason, shownText(d.Source.Message), d.Source.Since}
	}
	for i, g := range fleet.Holds {
		shown := doc.Record.Holds[i].Steps
		gd := Guard{
			Message: guardText(&g), Approve: plan.ApproveLine(g.Token), Limit: g.Limit, Since: g.Since, Until: g.Until, Steps: shown,
		}
		if more := len(g.Steps) - len(shown); more > 0 {
			gd.LeftOut = text.Plural(more, "step")
		}
		doc.Guard = append(doc.Guard, gd)
	}
	if n := len(fleet.Absent) + fleet.AbsentMore; n > 0 {
		doc.Absent = &Absent{Message: absentText(n), Approve: plan.ApproveLine(fleet.AbsentToken), Count: n}
	}
	return doc
}

// guardText says what a list waits for.
func guardText(g *model.GuardHold) string {
	what := "the fleet"
	if g.Scope != "" {
		what = "namespace " + g.Scope
	}
	says := fmt.Sprintf("%s of revision %s would be more than the limit of %d within the guard's window for %s", text.Plural(len(g.Steps), "step"), g.Revision, g.Limit, what)
	if !g.Until.IsZero() {
		says += "; there is room at " + text.Time(g.Until)
	}
	return says
}

func absentText(n int) string {
	return fmt.Sprintf("%s in force though Git lacks them or has them otherwise, and no commit that follows on the revision applied says so", text.Plural(n, "object"))
}
