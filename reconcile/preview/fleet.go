package preview

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/report"
)

// Fleet is the fleet as the status branch shows it.
type Fleet struct {
	// Revision is revision.yaml.
	Revision report.Revision
	// Observed are the records, and what else a plan needs of what was read from machines.
	Observed *model.Observed
	// Problems are the files that cannot be read: their objects are not known.
	Problems []error

	unreachable map[model.ServerName]metav1.Condition
	misplaced   map[model.ServerName]bool // their BMC shows something else in their place
	stages      map[model.ServerName]install.Stage
	bmcs        map[model.BMCName]report.BMCSpec
}

// unreachableReasons are why a server's BMC gives no answer that is of use; misplacedReasons
// why it shows something else in the server's place.
var (
	unreachableReasons = []string{
		model.ReasonBMCUnreachable, model.ReasonAuthenticationFailed, model.ReasonCertificateChanged, model.ReasonHalfAnswer,
	}
	misplacedReasons = []string{
		model.ReasonSystemMissing, model.ReasonSystemUnreadable, model.ReasonIdentityMismatch, model.ReasonIdentityUnknown,
	}
)

// ReadFleet reads the files of the status branch. It fails if they are none of it.
func ReadFleet(files map[string][]byte) (*Fleet, error) {
	records, problems := report.ReadBranch(files)
	f := &Fleet{
		Observed: model.NewObserved(), Problems: problems,
		unreachable: make(map[model.ServerName]metav1.Condition), misplaced: make(map[model.ServerName]bool),
		stages: make(map[model.ServerName]install.Stage), bmcs: make(map[model.BMCName]report.BMCSpec),
	}
	f.Observed.Records = records.Records
	if _, there := files[model.ReportRevision]; !there {
		return nil, fmt.Errorf("it has no %s: is it the branch that Ingot writes?", model.ReportRevision)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		doc, err := report.ReadDocument(path, files[path])
		if err != nil {
			continue // one that matters is among the problems
		}
		switch d := doc.(type) {
		case *report.Revision:
			f.Revision = *d
		case *report.Document:
			f.document(d)
		}
	}
	f.showBMCs()
	return f, nil
}

// document takes in what a file shows beside the record.
func (f *Fleet) document(d *report.Document) {
	switch spec := d.Spec.(type) {
	case report.BMCSpec:
		f.bmcs[model.BMCName(d.Metadata.Name)] = spec
	case report.EndpointSpec:
		st, _ := d.Status.(report.EndpointStatus)
		if spec.IP != "" && spec.MACAddress != "" {
			f.Observed.EndpointFacts[spec.MACAddress] = &model.EndpointFacts{MACAddress: spec.MACAddress, IP: spec.IP, Network: st.Network}
		}
	case report.ServerSpec:
		st, _ := d.Status.(report.ServerStatus)
		f.server(model.ServerName(d.Metadata.Name), st)
	}
}

func (f *Fleet) server(name model.ServerName, st report.ServerStatus) {
	f.stages[name] = st.InstallStage
	f.Observed.ServerFacts[name] = &model.ServerFacts{Name: name, Power: st.PowerState, Inventory: &model.Inventory{
		Processors: st.Processors, NetworkInterfaces: st.NetworkInterfaces, IndicatorLED: st.IndicatorLED, BootOrder: st.BootOrder,
	}}
	for _, c := range st.Conditions {
		switch {
		case c.Type == model.ConditionDiscovered && c.Status == metav1.ConditionTrue:
			f.Observed.Probes[name] = &model.ProbeReport{ReceivedAt: c.LastTransitionTime.Time}
		case c.Type != "Ready" || c.Status != metav1.ConditionFalse:
		case slices.Contains(unreachableReasons, c.Reason):
			f.unreachable[name] = c
		case slices.Contains(misplacedReasons, c.Reason):
			f.misplaced[name] = true
		}
	}
}

// showBMCs has each BMC that was read show the servers that are recorded behind it.
func (f *Fleet) showBMCs() {
	for name, rec := range f.Observed.BMCs {
		if rec.Address != "" {
			f.Observed.BMCFacts[name] = &model.BMCFacts{Name: name, Fingerprint: rec.Fingerprint}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Observed.Servers)) {
		rec := f.Observed.Servers[name]
		facts := f.Observed.BMCFacts[rec.BMC]
		if facts == nil || f.misplaced[name] {
			continue
		}
		sys := model.SystemFact{URI: rec.SystemURI, UUID: rec.UUID}
		if rec.Board != nil {
			sys.UUID, sys.Board = "", *rec.Board
		}
		facts.Systems = append(facts.Systems, sys)
	}
}

// standIns adds to what Git says what Ingot knows beside it: BMCs that it recognised on the
// network, and the credentials of those that it speaks with, if they are not in Git. They are
// taken to be as they are.
func (f *Fleet) standIns(d *model.Desired, base *model.Desired) *model.Desired {
	d = d.Clone()
	described := make(map[string]bool)
	for _, b := range d.BMCs {
		if b.Spec.EndpointRef != nil {
			described[b.Spec.EndpointRef.Name] = true
		}
	}
	for name, spec := range f.bmcs {
		rec := f.Observed.BMCs[name]
		found := base.BMCs[name] == nil && spec.EndpointRef != nil && spec.EndpointRef.Name == string(name)
		if rec == nil || rec.Address == "" || !found || d.BMCs[name] != nil || described[string(name)] {
			continue
		}
		if b := standIn(name, spec, rec.Address); b != nil {
			d.Add(b)
		}
	}
	for name, b := range d.BMCs {
		secret, rec := b.Spec.BMCSecretRef.Name, f.Observed.BMCs[name]
		if rec != nil && rec.Address != "" && d.BMCSecrets[secret] == nil && base.BMCSecrets[secret] == nil {
			known := model.NewSensitive("known to Ingot")
			d.BMCSecrets[secret] = &model.BMCSecret{
				Meta: model.Meta{Name: secret, Tenant: b.Tenant}, Values: map[string]model.Sensitive{"username": known, "password": known},
			}
		}
	}
	return d
}

// standIn is a BMC that was recognised on the network, as a manifest would have it.
func standIn(name model.BMCName, spec report.BMCSpec, address string) *model.BMC {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil
	}
	b := &model.BMC{Meta: model.Meta{Name: string(name)}, Spec: model.BMCSpec{
		Access: &model.InlineEndpoint{IP: at.Addr().String()}, BMCSecretRef: model.LocalRef{Name: string(name)}, Protocol: spec.Protocol,
	}}
	b.Spec.Protocol.Port = int32(at.Port())
	return b
}

// Policy is the policy that the status branch shows, or the defaults with a note why.
func (f *Fleet) Policy() (p policy.Options, notes []string) {
	p = policy.Default()
	p.Tenants, p.BMCNetworks, p.PlaintextSecrets = f.Revision.Tenants, f.networks(), true
	if err := f.Revision.Policy.Apply(&p); err != nil {
		return p, []string{err.Error() + ": the defaults are assumed"}
	}
	return p, nil
}

// following is the fleet once all is decided that Git says.
func (f *Fleet) following(d *model.Desired, p policy.Options, now time.Time) *Fleet {
	next := *f
	next.Observed = follow(f.input(f.standIns(d, d), p, now)).in.Observed
	return &next
}

// input is what is planned with for a desired state.
func (f *Fleet) input(desired *model.Desired, p policy.Options, now time.Time) *world.Input {
	o := *f.Observed
	o.Servers, o.Claims, o.Endpoints = maps.Clone(o.Servers), maps.Clone(o.Claims), maps.Clone(o.Endpoints)
	o.ServerFacts = maps.Clone(o.ServerFacts)
	in := &world.Input{
		Desired: desired, Observed: &o, Policy: f.unhurried(p), Now: now,
		Readings: make(map[model.ServerName]reading.State, len(o.Servers)), BMCRead: make(map[model.BMCName]time.Time, len(o.BMCFacts)),
		Busy: make(map[model.ServerName]bool), BusyBMCs: make(map[model.BMCName]bool),
		// Machines could boot for as long as anybody can remember.
		Serving: time.Unix(1, 0), Nonce: "preview",
	}
	for name := range o.BMCFacts {
		in.BMCRead[name] = now
	}
	for name := range o.Servers {
		in.Readings[name] = f.reading(name, now)
	}
	return in
}

// unhurried is a policy under which decisions are not kept waiting by what goes on in machines.
func (f *Fleet) unhurried(p policy.Options) policy.Options {
	p.ShowFirst = false
	p.MaxConcurrentPowerOns, p.MaxConcurrentReprovisions, p.MaxConcurrentInstalls = 1<<20, 1<<20, 1<<20
	p.DiscoveryImage = cmp.Or(p.DiscoveryImage, "discovery.image")
	p.LoaderArchitectures, p.LeaseNetworks = nil, nil
	return p
}

// networks are those in which BMCs may be where the configuration is not known: anywhere, and
// where they are.
func (f *Fleet) networks() model.BMCNetworks {
	all := model.BMCNetworks{{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Plain: true}, {Prefix: netip.MustParsePrefix("::/0"), Plain: true}}
	for _, rec := range f.Observed.BMCs {
		if at, err := netip.ParseAddrPort(rec.Address); err == nil {
			addr := at.Addr().Unmap().WithZone("")
			all = append(all, model.BMCNetwork{Prefix: netip.PrefixFrom(addr, addr.BitLen()), Plain: true})
		}
	}
	return all
}

// reading is how a server's power would be read now.
func (f *Fleet) reading(name model.ServerName, now time.Time) reading.State {
	facts := f.Observed.ServerFacts[name]
	if facts == nil || !facts.Power.Settled() {
		return reading.State{}
	}
	const often = 1000
	r := reading.State{At: now, InventoryAt: now, Reached: true}
	switch c, gone := f.unreachable[name]; {
	case gone:
		says, _, _ := strings.Cut(c.Message, " (to act: ")
		return reading.State{At: now, Failures: 1, Err: says, Reason: c.Reason, Since: c.LastTransitionTime.Time}
	case facts.Power == model.PowerOff:
		r.Offs = often
	default:
		r.Ons = often
	}
	return r
}
