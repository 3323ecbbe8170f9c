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
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/report"
)

// Fleet is the fleet as the status branch shows it.
type Fleet struct {
	Document report.Fleet
	// Observed are the records, and what else a plan needs of what was read from machines.
	Observed *model.Observed
	// Problems are the files that cannot be read: their objects are not known.
	Problems []error

	status map[model.ServerName]report.ServerStatus
	bmcs   map[model.BMCName]report.BMCSpec
}

// unreadReasons are those of a server whose BMC gives no useful answer, or shows something else in its place.
var unreadReasons = append(slices.Clone(laws.SpecificReasons), model.ReasonBMCUnreachable, model.ReasonSystemMissing, model.ReasonSystemUnreadable)

// ReadFleet reads the files of the status branch. It fails if they are not of one.
func ReadFleet(files map[string][]byte) (*Fleet, error) {
	records, problems := report.ReadBranch(files)
	f := &Fleet{
		Observed: model.NewObserved(), Problems: problems,
		status: make(map[model.ServerName]report.ServerStatus), bmcs: make(map[model.BMCName]report.BMCSpec),
	}
	f.Observed.Records, f.Document = records.Records, records.FleetDocument
	if _, there := files[model.ReportFleet]; !there {
		return nil, fmt.Errorf("it has no %s: is it the branch that Ingot writes?", model.ReportFleet)
	}
	for _, d := range records.Documents {
		f.document(d)
	}
	f.showBMCs()
	return f, nil
}

// document takes over what a file shows in addition to the record.
func (f *Fleet) document(d *report.Document) {
	switch spec := d.Spec.(type) {
	case report.BMCSpec:
		f.bmcs[model.BMCName(d.Metadata.Name)] = spec
	case report.EndpointSpec:
		st, _ := d.Status.(report.EndpointStatus)
		if f.Observed.Endpoints[d.Metadata.Name] != nil && spec.IP != "" { // or it is another Endpoint of the device
			f.Observed.EndpointFacts[spec.MACAddress] = &model.EndpointFacts{MACAddress: spec.MACAddress, IP: spec.IP, Network: st.Network}
		}
	case report.ServerSpec:
		st, _ := d.Status.(report.ServerStatus)
		name := model.ServerName(d.Metadata.Name)
		f.status[name] = st
		f.Observed.ServerFacts[name] = &model.ServerFacts{Name: name, Power: st.PowerState, Inventory: &model.Inventory{
			Processors: st.Processors, NetworkInterfaces: st.NetworkInterfaces, IndicatorLED: st.IndicatorLED, BootOrder: st.BootOrder,
		}}
		for _, c := range st.Conditions {
			if c.Type == model.ConditionDiscovered && c.Status == metav1.ConditionTrue {
				f.Observed.Probes[name] = &model.ProbeReport{ReceivedAt: c.LastTransitionTime.Time}
			}
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
		if facts == nil {
			continue
		}
		sys := model.SystemFact{URI: rec.SystemURI, UUID: rec.UUID}
		if rec.Board != nil {
			sys.UUID, sys.Board = "", *rec.Board
		}
		facts.Systems = append(facts.Systems, sys)
	}
}

// withKnown adds to what Git has what Ingot knows in addition, as it is: BMCs that were recognised on the
// network, and the credentials of those that were read, if they are not in Git.
func (f *Fleet) withKnown(d, base *model.Desired) *model.Desired {
	d = d.Clone()
	described := make(map[string]bool)
	for _, b := range d.BMCs {
		if b.Spec.EndpointRef != nil {
			described[b.Spec.EndpointRef.Name] = true
		}
	}
	for name, spec := range f.bmcs {
		recognised := spec.EndpointRef != nil && spec.EndpointRef.Name == string(name) && base.BMCs[name] == nil && d.BMCs[name] == nil
		if at, ok := f.address(name); ok && recognised && !described[string(name)] {
			b := &model.BMC{Meta: model.Meta{Name: string(name)}, Spec: model.BMCSpec{
				Access: &model.InlineEndpoint{IP: at.Addr().String()}, BMCSecretRef: model.LocalRef{Name: string(name)}, Protocol: spec.Protocol,
			}}
			b.Spec.Protocol.Port = int32(at.Port())
			d.Add(b)
		}
	}
	for name, b := range d.BMCs {
		secret := b.Spec.BMCSecretRef.Name
		if _, ok := f.address(name); ok && d.BMCSecrets[secret] == nil && base.BMCSecrets[secret] == nil {
			known := model.NewSensitive("known to Ingot")
			d.BMCSecrets[secret] = &model.BMCSecret{
				Meta: model.Meta{Name: secret, Tenant: b.Tenant}, Values: map[string]model.Sensitive{"username": known, "password": known},
			}
		}
	}
	return d
}

// address is where a BMC was read last, false if it was not.
func (f *Fleet) address(name model.BMCName) (netip.AddrPort, bool) {
	rec := f.Observed.BMCs[name]
	if rec == nil {
		return netip.AddrPort{}, false
	}
	at, err := netip.ParseAddrPort(rec.Address)
	return at, err == nil
}

// Policy is the policy that the status branch shows, or the defaults with a note of the reason.
func (f *Fleet) Policy() (p policy.Options, notes []string) {
	p = policy.Default()
	p.Tenants, p.BMCNetworks, p.PlaintextSecrets = f.Document.Tenants, anywhere, true
	if err := f.Document.Policy.Apply(&p); err != nil {
		return p, []string{err.Error() + ": the defaults are assumed"}
	}
	return p, nil
}

// anywhere are the networks in which BMCs may be if the configuration is not known.
var anywhere = model.BMCNetworks{
	{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Plain: true}, {Prefix: netip.MustParsePrefix("127.0.0.0/8"), Plain: true},
	{Prefix: netip.MustParsePrefix("::/0"), Plain: true}, {Prefix: netip.MustParsePrefix("::1/128"), Plain: true},
}

// input is what is planned with if Git has a revision, under a policy whose limits on what goes on in
// machines delay no decision.
func (f *Fleet) input(desired *model.Desired, p policy.Options, now time.Time) *world.Input {
	p.ShowFirst, p.LoaderArchitectures, p.LeaseNetworks = false, nil, nil
	p.MaxConcurrentPowerOns, p.MaxConcurrentReprovisions, p.MaxConcurrentInstalls = 1<<20, 1<<20, 1<<20
	p.DiscoveryImage = cmp.Or(p.DiscoveryImage, "discovery.image")
	in := &world.Input{
		Desired: desired, Observed: f.Observed, Policy: p, Now: now,
		Readings: make(map[model.ServerName]reading.State, len(f.Observed.Servers)), BMCRead: make(map[model.BMCName]time.Time, len(f.Observed.BMCFacts)),
		Process: world.Process{Serving: time.Unix(1, 0)}, Nonce: "preview",
	}
	for name := range f.Observed.BMCFacts {
		in.BMCRead[name] = now
	}
	for name := range f.Observed.Servers {
		in.Readings[name] = f.reading(name, now)
	}
	return in
}

// reading is how a server's power would be read now. One that cannot be reached is not read.
func (f *Fleet) reading(name model.ServerName, now time.Time) reading.State {
	facts := f.Observed.ServerFacts[name]
	if facts == nil || !facts.Power.Settled() {
		return reading.State{}
	}
	for _, c := range f.status[name].Conditions {
		if c.Type == "Ready" && c.Status == metav1.ConditionFalse && slices.Contains(unreadReasons, c.Reason) {
			says, _, _ := strings.Cut(c.Message, " (to act: ")
			return reading.State{At: now, Failed: reading.Failed{Failures: 1, Err: says, Reason: c.Reason, Since: c.LastTransitionTime.Time, NotBefore: now.Add(time.Hour)}}
		}
	}
	r := reading.State{At: now, Parts: reading.Parts{InventoryAt: now}, Reached: true}
	const often = 1000
	if facts.Power == model.PowerOff {
		r.Offs = often
	} else {
		r.Ons = often
	}
	return r
}
