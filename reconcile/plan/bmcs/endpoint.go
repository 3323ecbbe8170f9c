package bmcs

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Endpoint is one device, or an Endpoint in Git whose device is not known.
type Endpoint struct {
	Name string
	MAC  string // "" = the device is not known
	IP   string // "" = unknown; without a device, the reserved one
	// Record is nil without a device. It differs from old, the saved one, if that changes.
	Record, old *model.EndpointRecord
	Manifest    *model.Endpoint  // nil = it is not in Git
	Prefix      *model.MACPrefix // the entry of the MAC prefix database, if it is for BMCs
	IsBMC       bool             // by that entry
	DescribedBy model.BMCName    // the BMC in Git that it is, if any
	Why         proposal.Why     // why it does not count as a BMC by itself

	facts  *model.EndpointFacts
	holder string // the device that has its address now, if that is why IP is unknown
}

// why is a reason that holds since the device got its address.
func (e *Endpoint) why(reason, message string, actor proposal.Actor) proposal.Why {
	return proposal.Why{Reason: reason, Message: message, Since: e.Record.Since, Actor: actor}
}

// Lost says why the address of a device is unknown.
func (e *Endpoint) Lost() proposal.Why {
	if e.IP != "" || e.Record == nil {
		return proposal.Why{}
	}
	return e.why(model.ReasonAddressLost, "its address was given to "+cmp.Or(e.holder, "another device")+
		"; it is waited for until it asks for one again", proposal.RackOperator)
}

// bmcManifest is the manifest of the BMC that a device is, as a person would write it.
func (e *Endpoint) bmcManifest() *model.BMC {
	b := &model.BMC{Meta: model.Meta{Name: e.Name}, Spec: model.BMCSpec{
		EndpointRef: &model.LocalRef{Name: e.Name}, BMCSecretRef: model.LocalRef{Name: e.Name},
	}}
	if e.Prefix != nil {
		b.Spec.Protocol, b.Spec.ConsoleProtocol = e.Prefix.Protocol, e.Prefix.Console
	}
	return b
}

// devices are those that Git names, that DHCP found, or that were recognised before, by MAC address.
type devices struct {
	in      *Input
	all     []*Endpoint // in the order of names
	byName  map[string]*Endpoint
	byMAC   map[string]*Endpoint
	holders map[string]string // the MAC address of the device that has each IP address
}

func loadDevices(in *Input) *devices {
	d := &devices{in: in, holders: holdersOf(in.Observed.EndpointFacts)}
	d.find()
	d.all = slices.SortedFunc(maps.Values(d.byMAC), func(a, b *Endpoint) int { return strings.Compare(a.MAC, b.MAC) })
	d.name()
	slices.SortFunc(d.all, byName)
	byIP := d.locate()
	for _, e := range d.all {
		if entry, ok := in.Policy.MACPrefixes.Lookup(e.MAC); ok && entry.Type == model.TypeBMC {
			e.Prefix = entry
		}
	}
	for name, b := range in.Desired.BMCs {
		e := d.of(b)
		if access := b.Spec.Access; access != nil && access.MACAddress == "" {
			e = byIP[access.IP]
		}
		if e != nil && (e.DescribedBy == "" || name < e.DescribedBy) {
			e.DescribedBy = name
		}
	}
	for _, e := range d.all {
		d.recognise(e)
		e.Record = d.record(e)
	}
	return d
}

// locate finds the address of each device, and returns the devices by their addresses, with those that they have in Git.
func (d *devices) locate() map[string]*Endpoint {
	byIP := make(map[string]*Endpoint, len(d.all))
	for _, e := range d.all {
		e.IP = d.ip(e)
		if holder := d.holders[e.IP]; holder != "" && holder != e.MAC {
			e.IP, e.holder = "", holder
		}
		if e.IP != "" {
			byIP[e.IP] = e
		}
	}
	for _, m := range d.in.Desired.Endpoints {
		if e := d.byMAC[m.Spec.MACAddress]; e != nil && byIP[m.Spec.IP] == nil {
			byIP[m.Spec.IP] = e
		}
	}
	return byIP
}

func byName(a, b *Endpoint) int { return strings.Compare(a.Name, b.Name) }

// at returns the device of a MAC address, which is added if it is new.
func (d *devices) at(mac string) *Endpoint {
	if d.byMAC[mac] == nil {
		d.byMAC[mac] = &Endpoint{MAC: mac}
	}
	return d.byMAC[mac]
}

func (d *devices) find() {
	desired, o := d.in.Desired, d.in.Observed
	d.byMAC = make(map[string]*Endpoint, len(desired.Endpoints)+len(o.EndpointFacts))
	names := slices.Sorted(maps.Keys(desired.Endpoints))
	for mac, facts := range o.EndpointFacts {
		d.at(mac).facts = facts
	}
	refs := d.references()
	for _, name := range names {
		m := desired.Endpoints[name]
		if m.Spec.MACAddress == "" {
			continue
		}
		if e := d.at(m.Spec.MACAddress); e.Manifest == nil || e.rank(m, refs) > e.rank(e.Manifest, refs) {
			e.Manifest = m
		}
	}
	// DHCP gave the device of an Endpoint without a MAC address the address that is reserved for its port, or
	// for its client identifier. A device that had the address before keeps it until its lease ends.
	for _, name := range names {
		m := desired.Endpoints[name]
		mac := d.holders[m.Spec.IP]
		facts := o.EndpointFacts[mac]
		if m.Spec.MACAddress == "" && facts != nil && facts.Reserved == m.Name && d.at(mac).Manifest == nil {
			d.at(mac).Manifest = m
		}
	}
	d.addRecords(refs)
}

// references are the names of the Endpoints that BMCs in Git name.
func (d *devices) references() map[string]bool {
	refs := make(map[string]bool)
	for _, b := range d.in.Desired.BMCs {
		if ref := b.Spec.EndpointRef; ref != nil {
			refs[ref.Name] = true
		}
	}
	return refs
}

// rank orders the manifests of a device, which has one for each of its subnets: the one with its leased address first, then
// the one that a BMC names.
func (e *Endpoint) rank(m *model.Endpoint, refs map[string]bool) int {
	switch {
	case e.facts != nil && e.facts.IP == m.Spec.IP:
		return 2
	case refs[m.Name]:
		return 1
	}
	return 0
}

// addRecords adds the records, without those of devices that are gone and not remembered.
func (d *devices) addRecords(refs map[string]bool) {
	o := d.in.Observed
	for _, name := range slices.Sorted(maps.Keys(o.Endpoints)) {
		rec := o.Endpoints[name]
		if d.byMAC[rec.MACAddress] == nil && !d.remembered(rec) && !refs[name] {
			continue
		}
		if e := d.at(rec.MACAddress); e.old == nil || e.Manifest != nil && e.Manifest.Name == name {
			e.old = rec
		}
	}
}

// remembered reports whether the record of a device is kept though neither Git nor DHCP has it: its
// manifest may be unreadable, its BMC is known, or its credentials must not be tried again.
func (d *devices) remembered(rec *model.EndpointRecord) bool {
	if d.in.mayLack(model.KindEndpoint, rec.Name) {
		return true
	}
	b := d.in.Observed.BMCs[model.BMCName(rec.Name)]
	return rec.Prefix != "" && (len(rec.Tried) > 0 || b != nil && b.Address != "")
}

// of is the device that a BMC's manifest names, nil if it names no known one.
func (d *devices) of(b *model.BMC) *Endpoint {
	switch {
	case b.Spec.EndpointRef != nil:
		return d.named(b.Spec.EndpointRef.Name)
	case b.Spec.Access != nil && b.Spec.Access.MACAddress != "":
		return d.byMAC[b.Spec.Access.MACAddress]
	}
	return nil
}

// recognise decides whether a device is a BMC, by the MAC prefix database.
func (d *devices) recognise(e *Endpoint) {
	why := proposal.Why{Since: d.in.Now, Actor: proposal.RackOperator}
	known := e.old != nil && e.old.Prefix != ""
	if e.old != nil {
		why.Since = e.old.Since
	}
	switch {
	case e.DescribedBy != "":
		why.Reason, why.Actor = model.ReasonShadowedBy, proposal.ActorNone
		why.Message = fmt.Sprintf("BMC %s in Git describes this device", e.DescribedBy)
	case d.in.Desired.BMCs[model.BMCName(e.Name)] != nil:
		why.Reason = model.ReasonShadowedBy
		why.Message = fmt.Sprintf("BMC %s in Git has the name that this device would have, but describes another; name one of them otherwise", e.Name)
	case e.Prefix == nil && known:
		e.IsBMC, why.Reason = true, model.ReasonNoMACPrefix
		why.Message = fmt.Sprintf("it was recognised by entry %s, which is gone from the MAC prefix database: its "+
			"servers are left as they are; restore the entry, or write BMC and BMCSecret %s", e.old.Prefix, e.Name)
	case e.Prefix == nil:
		why.Reason = model.ReasonNoMACPrefix
		why.Message = fmt.Sprintf("no entry of the MAC prefix database is for %s; add one of type bmc, or write a "+
			"BMC with endpointRef %s", e.MAC, e.Name)
	case !known && d.in.mayLack(model.KindBMC, ""):
		why.Reason = model.ReasonManifestUnreadable
		why.Message = "a BMC in Git may describe it, in a manifest that cannot be read; see " + model.ReportFleet
	default:
		e.IsBMC = true
		return
	}
	e.Why = why
}

// record is the next record of a device, the saved one if nothing changes.
func (d *devices) record(e *Endpoint) *model.EndpointRecord {
	rec := *cmp.Or(e.old, new(model.EndpointRecord))
	rec.Name, rec.MACAddress = e.Name, e.MAC
	if e.facts != nil {
		rec.Network = e.facts.Network
	}
	if e.IsBMC && e.Prefix != nil {
		rec.Prefix = e.Prefix.Prefix
	}
	if e.IsBMC && d.in.foundSecret(e.Name) != nil {
		rec.Credential = "" // the BMCSecret in Git replaces it
	}
	if e.old == nil || rec.IP != e.IP {
		rec.IP, rec.Since = e.IP, d.in.Now
		if e.facts != nil && e.facts.IP == e.IP && e.IP != "" {
			rec.Since = e.facts.Since
		}
	}
	if reflect.DeepEqual(e.old, &rec) {
		return e.old
	}
	return &rec
}

// propose saves the changed records. The result of a reading belongs to the same record, so that waits.
func (d *devices) propose(c *proposal.Changes) {
	o, busy := d.in.Observed, d.in.Busy
	if d.in.Outdated {
		return
	}
	kept := make(map[string]bool, len(d.all))
	for _, e := range d.all {
		if busy[model.BMCName(e.Name)] || e.old != nil && busy[model.BMCName(e.old.Name)] {
			if e.old != nil {
				kept[e.old.Name] = true
			}
			continue
		}
		kept[e.Name] = true
		if e.Record == e.old {
			continue
		}
		c.Endpoints = append(c.Endpoints, e.Record)
		if e.old == nil || e.old.Name == e.Name {
			continue
		}
		// The BMC of a renamed device keeps its certificate.
		if old := o.BMCs[model.BMCName(e.old.Name)]; old != nil && o.BMCs[model.BMCName(e.Name)] == nil {
			c.BMCs = append(c.BMCs, proposal.Changed(old, func(rec *model.BMCRecord) { rec.Name = model.BMCName(e.Name) }))
		}
	}
	for name := range o.Endpoints {
		if !kept[name] && !busy[model.BMCName(name)] {
			c.DropEndpoints = append(c.DropEndpoints, name)
		}
	}
	slices.Sort(c.DropEndpoints)
}

// holdersOf are the MAC addresses of the devices that have each IP address. The last to get an address has it.
func holdersOf(all map[string]*model.EndpointFacts) map[string]string {
	holders := make(map[string]string, len(all))
	for mac, facts := range all {
		other := all[holders[facts.IP]]
		switch {
		case facts.IP == "":
		case other == nil || cmp.Or(facts.Since.Compare(other.Since), cmp.Compare(holders[facts.IP], mac)) > 0:
			holders[facts.IP] = mac
		}
	}
	return holders
}

// ip is where a device is. Where Ingot gives leases, the manifest is only a reservation (H24).
func (d *devices) ip(e *Endpoint) string {
	leases := func(network string) bool {
		return d.in.Policy.LeaseNetworks == nil || slices.Contains(d.in.Policy.LeaseNetworks, network)
	}
	leased, given := "", ""
	if e.Manifest != nil {
		given = e.Manifest.Spec.IP
	}
	switch {
	case e.facts != nil && leases(e.facts.Network):
		return cmp.Or(e.facts.IP, given)
	case e.facts != nil:
		leased = e.facts.IP
	case e.old != nil && e.old.IP != "" && e.old.Network != "" && leases(e.old.Network):
		return e.old.IP
	case e.old != nil:
		leased = e.old.IP
	}
	return cmp.Or(given, leased)
}

// name names each device: by its manifest, else by its record, else by its network and MAC address.
func (d *devices) name() {
	d.byName = make(map[string]*Endpoint, len(d.all))
	take := func(e *Endpoint, name string) { e.Name, d.byName[name] = name, e }
	for _, e := range d.all {
		if e.Manifest != nil {
			take(e, e.Manifest.Name)
		}
	}
	for _, e := range d.all {
		if e.Name == "" && e.old != nil && d.byName[e.old.Name] == nil {
			take(e, e.old.Name)
		}
	}
	for _, e := range d.all {
		if e.Name == "" {
			name := e.ownName()
			for d.byName[name] != nil {
				name += "-x"
			}
			take(e, name)
		}
	}
}

// ownName is the name of a device that has none in Git.
func (e *Endpoint) ownName() string {
	network := ""
	if e.facts != nil {
		network = e.facts.Network
	}
	if e.old != nil {
		network = cmp.Or(network, e.old.Network)
	}
	return cmp.Or(network, "endpoint") + "-" + strings.ReplaceAll(e.MAC, ":", "")
}

// named returns the device that Git calls name: by its name, or by the one that it has without a manifest.
func (d *devices) named(name string) *Endpoint {
	if e := d.byName[name]; e != nil {
		return e
	}
	if m := d.in.Desired.Endpoints[name]; m != nil && m.Spec.MACAddress != "" {
		return d.byMAC[m.Spec.MACAddress] // by another of its Endpoints
	}
	mac, _ := model.CanonicalMAC(name[max(len(name)-12, 0):])
	if e := d.byMAC[mac]; e != nil && e.ownName() == name {
		return e
	}
	return nil
}

// awaits says why the device of an Endpoint in Git is not known; the zero Why if it is.
func (d *devices) awaits(m *model.Endpoint) proposal.Why {
	if m == nil || d.byName[m.Name] != nil {
		return proposal.Why{}
	}
	if e := d.byMAC[m.Spec.MACAddress]; e != nil {
		return e.why(model.ReasonShadowedBy, "device "+e.MAC+" is shown as Endpoint "+e.Name, proposal.ActorNone)
	}
	waits := "no lease yet for " + m.Awaits()
	holder := d.in.Observed.EndpointFacts[d.holders[m.Spec.IP]]
	switch {
	case holder == nil:
		return proposal.Why{Reason: model.ReasonAwaitingDevice, Message: waits, Actor: proposal.RackOperator}
	case holder.Reserved == m.Name:
		return proposal.Why{Reason: model.ReasonDeviceInGitTwice, Message: fmt.Sprintf("device %s has its address, and another Endpoint in Git is for that device by its MAC address",
			holder.MACAddress), Since: holder.Since, Actor: proposal.RackOperator}
	}
	return proposal.Why{Reason: model.ReasonAddressStillLeased, Message: fmt.Sprintf("%s; device %s had the address %s before it was reserved, and keeps it until its lease ends",
		waits, holder.MACAddress, m.Spec.IP), Since: holder.Since, Actor: proposal.ActorNone}
}
