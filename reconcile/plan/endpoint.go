package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
)

// endpointView is all that is known of one device at one moment.
type endpointView struct {
	name string
	mac  string
	ip   string // where it is now; "" = nobody knows
	lost string // who has its address instead, if that is why
	// old is the record as it is kept, nil for a device that is new; rec is what it is
	// to be, old itself when nothing changes.
	old, rec *model.EndpointRecord
	spec     *model.Endpoint // in Git, if it is there
	facts    *model.EndpointFacts
	entry    *model.MACPrefix // of the MAC prefix database, if it is a BMC's
	by       model.BMCName    // the BMC in Git that describes the device
	// bmc is set once the device counts as a BMC by its entry, why says why it does not.
	bmc bool
	why Why
}

// loadEndpoints puts together what is known of each device that Git names, that
// DHCP found, or that was recognised before, one view a MAC address.
func (f *fleet) loadEndpoints() {
	d, o := f.in.Desired, f.in.Observed
	if len(d.Endpoints)+len(o.Endpoints)+len(o.EndpointFacts) == 0 {
		return
	}
	byMAC := f.devices()
	f.endpointByMAC = byMAC
	f.endpoints = slices.SortedFunc(maps.Values(byMAC), func(a, b *endpointView) int { return strings.Compare(a.mac, b.mac) })
	f.nameEndpoints()
	slices.SortFunc(f.endpoints, func(a, b *endpointView) int { return strings.Compare(a.name, b.name) })
	holders := holdersOf(o.EndpointFacts)
	for _, v := range f.endpoints {
		v.ip = f.endpointIP(v)
		if holder := holders[v.ip]; holder != "" && holder != v.mac {
			v.ip, v.lost = "", holder
		}
		if e, ok := f.in.Policy.MACPrefixes.Lookup(v.mac); ok && e.Type == model.TypeBMC {
			v.entry = e
		}
	}
	f.findDescribed()
	for _, v := range f.endpoints {
		f.recognise(v)
		v.rec = f.endpointRecord(v)
	}
}

// holdersOf are the MAC addresses of the devices that have each IP address: of
// several, for one may not have been told yet that it lost it, the one that got it last.
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

// devices returns a view of each device by its MAC address. Of devices that nobody
// knows any more, those stay that were recognised and dealt with.
func (f *fleet) devices() map[string]*endpointView {
	d, o := f.in.Desired, f.in.Observed
	byMAC := make(map[string]*endpointView, len(d.Endpoints)+len(o.EndpointFacts))
	view := func(mac string) *endpointView {
		if byMAC[mac] == nil {
			byMAC[mac] = &endpointView{mac: mac}
		}
		return byMAC[mac]
	}
	for _, name := range slices.Sorted(maps.Keys(d.Endpoints)) {
		if v := view(d.Endpoints[name].Spec.MACAddress); v.spec == nil {
			v.spec = d.Endpoints[name]
		}
	}
	for mac, facts := range o.EndpointFacts {
		view(mac).facts = facts
	}
	for _, name := range slices.Sorted(maps.Keys(o.Endpoints)) {
		rec := o.Endpoints[name]
		if byMAC[rec.MACAddress] == nil && !f.keptEndpoint(rec) && !f.endpointRefs()[name] {
			continue
		}
		if v := view(rec.MACAddress); v.old == nil || v.spec != nil && v.spec.Name == name {
			v.old = rec
		}
	}
	return byMAC
}

// keptEndpoint reports whether the record of a device is kept though neither Git
// nor DHCP says anything of it: it may be in a file that cannot be read, or its BMC
// is known, or its credentials must not be tried again.
func (f *fleet) keptEndpoint(rec *model.EndpointRecord) bool {
	if f.mayHide(model.KindEndpoint, rec.Name) || f.outdated() {
		return true
	}
	b := f.in.Observed.BMCs[model.BMCName(rec.Name)]
	return rec.Prefix != "" && (len(rec.Tried) > 0 || b != nil && b.Address != "")
}

// endpointRefs are the names of Endpoints that BMCs in Git give.
func (f *fleet) endpointRefs() map[string]bool {
	if f.refs == nil {
		f.refs = make(map[string]bool)
		for _, b := range f.in.Desired.BMCs {
			if ref := b.Spec.EndpointRef; ref != nil {
				f.refs[ref.Name] = true
			}
		}
	}
	return f.refs
}

// nameEndpoints names each device: as Git does, else as it was named before, else
// by its network and MAC address.
func (f *fleet) nameEndpoints() {
	f.endpointBy = make(map[string]*endpointView, len(f.endpoints))
	for _, v := range f.endpoints {
		if v.spec != nil {
			v.name = v.spec.Name
			f.endpointBy[v.name] = v
		}
	}
	for _, v := range f.endpoints {
		if v.name == "" && v.old != nil && f.endpointBy[v.old.Name] == nil {
			v.name = v.old.Name
			f.endpointBy[v.name] = v
		}
	}
	for _, v := range f.endpoints {
		if v.name != "" {
			continue
		}
		for v.name = v.ownName(); f.endpointBy[v.name] != nil; v.name += "-x" {
		}
		f.endpointBy[v.name] = v
	}
}

// ownName is the name of a device that nobody gave one.
func (v *endpointView) ownName() string {
	network := "endpoint"
	switch {
	case v.facts != nil && v.facts.Network != "":
		network = v.facts.Network
	case v.old != nil && v.old.Network != "":
		network = v.old.Network
	}
	return network + "-" + strings.ReplaceAll(v.mac, ":", "")
}

// endpointIP is where a device is. Its lease is right where Ingot gives leases, for
// a manifest is but a reservation there (H24).
func (f *fleet) endpointIP(v *endpointView) string {
	leased, kept := "", ""
	if v.facts != nil {
		leased = v.facts.IP
	}
	if v.old != nil && v.facts == nil {
		kept = v.old.IP
	}
	given := ""
	if v.spec != nil {
		given = v.spec.Spec.IP
	}
	switch {
	case v.facts != nil && f.leases(v.facts.Network):
		return cmp.Or(leased, given)
	case kept != "" && v.old.Network != "" && f.leases(v.old.Network):
		return kept
	}
	return cmp.Or(given, leased, kept)
}

// leases reports whether Ingot gives the leases on a network.
func (f *fleet) leases(network string) bool {
	return f.in.Policy.LeaseNetworks == nil || slices.Contains(f.in.Policy.LeaseNetworks, network)
}

// findDescribed finds the devices that BMCs in Git describe: by endpointRef, by
// MAC address, or, when they give none, by IP address.
func (f *fleet) findDescribed() {
	byIP := make(map[string]*endpointView, len(f.endpoints))
	for _, v := range f.endpoints {
		if v.ip != "" {
			byIP[v.ip] = v
		}
	}
	for name, b := range f.in.Desired.BMCs {
		var v *endpointView
		switch access := b.Spec.Access; {
		case b.Spec.EndpointRef != nil:
			v = f.endpoint(b.Spec.EndpointRef.Name)
		case access == nil:
		case access.MACAddress != "":
			v = f.endpointByMAC[access.MACAddress]
		default:
			v = byIP[access.IP]
		}
		if v != nil && (v.by == "" || name < v.by) {
			v.by = name
		}
	}
}

// endpoint returns the device that Git calls name: by its name, or by the one that
// it would have if Git had given it none.
func (f *fleet) endpoint(name string) *endpointView {
	if v := f.endpointBy[name]; v != nil {
		return v
	}
	mac, err := model.CanonicalMAC(name[max(len(name)-12, 0):])
	if err != nil {
		return nil
	}
	if v := f.endpointByMAC[mac]; v != nil && v.ownName() == name {
		return v
	}
	return nil
}

// recognise decides whether a device is a BMC, by the MAC prefix database.
func (f *fleet) recognise(v *endpointView) {
	known := v.old != nil && v.old.Prefix != ""
	since := f.in.Now
	if v.old != nil {
		since = v.old.Since
	}
	switch {
	case v.by != "":
		v.why = Why{model.ReasonShadowedBy, fmt.Sprintf("BMC %s in Git describes this device", v.by), since, ActorNone}
	case f.in.Desired.BMCs[model.BMCName(v.name)] != nil:
		v.why = Why{model.ReasonShadowedBy, fmt.Sprintf("BMC %s in Git has the name that this device would have, but describes another; name one of them otherwise", v.name), since, RackOperator}
	case v.entry == nil && known:
		v.bmc = true
		v.why = Why{model.ReasonNoMACPrefix, fmt.Sprintf("it was recognised by entry %s, which is gone from the MAC prefix database: its servers are left as they are; restore the entry, or write BMC and BMCSecret %s", v.old.Prefix, v.name), since, RackOperator}
	case v.entry == nil:
		v.why = Why{model.ReasonNoMACPrefix, fmt.Sprintf("no entry of the MAC prefix database is for %s; add one of type bmc, or write a BMC with endpointRef %s", v.mac, v.name), since, RackOperator}
	case !known && (f.outdated() || f.mayHide(model.KindBMC, "")):
		v.why = Why{model.ReasonManifestUnreadable, "a BMC in Git may describe it, in a manifest that cannot be read; see " + model.ReportProblems, since, RackOperator}
	default:
		v.bmc = true
	}
}

// endpointRecord is the device's record as it is to be.
func (f *fleet) endpointRecord(v *endpointView) *model.EndpointRecord {
	rec := model.EndpointRecord{}
	if v.old != nil {
		rec = *v.old
	}
	rec.Name, rec.MACAddress = v.name, v.mac
	if v.facts != nil {
		rec.Network = v.facts.Network
	}
	if v.bmc && v.entry != nil {
		rec.Prefix = v.entry.Prefix
	}
	if v.bmc && f.foundSecret(v.name) != nil {
		rec.Credential = "" // what Git says is used from now on
	}
	if v.old == nil || rec.IP != v.ip {
		rec.IP, rec.Since = v.ip, f.in.Now
		if v.facts != nil && v.facts.IP == v.ip && v.ip != "" {
			rec.Since = v.facts.Since
		}
	}
	if v.old != nil && sameEndpoint(v.old, &rec) {
		return v.old
	}
	return &rec
}

func sameEndpoint(a, b *model.EndpointRecord) bool {
	return a.Name == b.Name && a.MACAddress == b.MACAddress && a.IP == b.IP && a.Network == b.Network &&
		a.Since.Equal(b.Since) && a.Prefix == b.Prefix && a.Credential == b.Credential
}

// planEndpoints notes what is new of devices. That of a BMC which is being read is
// noted after the reading, whose outcome belongs into the same record.
func (f *fleet) planEndpoints(r *Result) {
	if f.outdated() {
		return
	}
	kept := make(map[string]bool, len(f.endpoints))
	for _, v := range f.endpoints {
		busy := f.in.BusyBMCs[model.BMCName(v.name)] || v.old != nil && f.in.BusyBMCs[model.BMCName(v.old.Name)]
		if busy && v.old != nil {
			kept[v.old.Name] = true
		}
		if busy {
			continue
		}
		kept[v.name] = true
		if v.rec == v.old {
			continue
		}
		r.Decided.Endpoints = append(r.Decided.Endpoints, v.rec)
		if v.old != nil && v.old.Name != v.name {
			f.renameBMC(r, v)
		}
	}
	for name := range f.in.Observed.Endpoints {
		if !kept[name] && !f.in.BusyBMCs[model.BMCName(name)] {
			r.Decided.DropEndpoints = append(r.Decided.DropEndpoints, name)
		}
	}
	slices.Sort(r.Decided.DropEndpoints)
}

// renameBMC lets the BMC of a device that got another name be known by the same
// certificate.
func (f *fleet) renameBMC(r *Result, v *endpointView) {
	old := f.in.Observed.BMCs[model.BMCName(v.old.Name)]
	if name := model.BMCName(v.name); old != nil && f.in.Observed.BMCs[name] == nil {
		rec := *old
		rec.Name = name
		r.Decided.BMCs = append(r.Decided.BMCs, &rec)
	}
}

// outdated reports whether the revision in force is one kept over a restart that is
// not the one last acted upon.
func (f *fleet) outdated() bool {
	applied := f.in.Observed.Fleet.Applied.Revision()
	return f.in.Desired.KeptOverRestart && applied != "" && applied != f.in.Desired.Revision
}
