package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
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
	why proposal.Why
}

// loadEndpoints puts together what is known of each device that Git names, that
// DHCP found, or that was recognised before, one view a MAC address.
func (f *fleet) loadEndpoints() {
	d, o := f.in.Desired, f.in.Observed
	if len(d.Endpoints)+len(o.Endpoints)+len(o.EndpointFacts) == 0 {
		return
	}
	f.holders = holdersOf(o.EndpointFacts)
	byMAC := f.devices()
	f.endpointByMAC = byMAC
	f.endpoints = slices.SortedFunc(maps.Values(byMAC), func(a, b *endpointView) int { return strings.Compare(a.mac, b.mac) })
	f.nameEndpoints()
	slices.SortFunc(f.endpoints, func(a, b *endpointView) int { return strings.Compare(a.name, b.name) })
	for _, v := range f.endpoints {
		v.ip = f.endpointIP(v)
		if holder := f.holders[v.ip]; holder != "" && holder != v.mac {
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

// devices returns a view of each device by its MAC address. Of devices that neither Git
// nor DHCP knows any more, those stay that were recognised and dealt with.
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
		if mac := d.Endpoints[name].Spec.MACAddress; mac != "" && view(mac).spec == nil {
			view(mac).spec = d.Endpoints[name]
		}
	}
	for mac, facts := range o.EndpointFacts {
		view(mac).facts = facts
	}
	f.findReserved(view)
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

// findReserved finds the devices of those Endpoints in Git that name no MAC address: DHCP gave each
// the address that is reserved for its port, or its client identifier.
func (f *fleet) findReserved(view func(mac string) *endpointView) {
	for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Endpoints)) {
		e := f.in.Desired.Endpoints[name]
		if e.Spec.MACAddress != "" {
			continue
		}
		mac := f.holders[e.Spec.IP]
		// Whoever had the address before it was reserved keeps it until its lease ends.
		if facts := f.in.Observed.EndpointFacts[mac]; facts != nil && facts.Reserved == e.Name && view(mac).spec == nil {
			view(mac).spec = e
		}
	}
}

// keptEndpoint reports whether the record of a device is kept though neither Git
// nor DHCP says anything of it: it may be in a file that cannot be read, or its BMC
// is known, or its credentials must not be tried again.
func (f *fleet) keptEndpoint(rec *model.EndpointRecord) bool {
	if f.maybeUnreadable(model.KindEndpoint, rec.Name) || f.outdated() {
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

// recognise decides whether a device is a BMC, by the MAC prefix database.
func (f *fleet) recognise(v *endpointView) {
	known := v.old != nil && v.old.Prefix != ""
	since := f.in.Now
	if v.old != nil {
		since = v.old.Since
	}
	switch {
	case v.by != "":
		v.why = proposal.Why{Reason: model.ReasonShadowedBy, Message: fmt.Sprintf("BMC %s in Git describes this device", v.by), Since: since, Actor: proposal.ActorNone}
	case f.in.Desired.BMCs[model.BMCName(v.name)] != nil:
		v.why = proposal.Why{Reason: model.ReasonShadowedBy, Message: fmt.Sprintf("BMC %s in Git has the name that this device would have, but describes another; "+
			"name one of them otherwise", v.name), Since: since, Actor: proposal.RackOperator}
	case v.entry == nil && known:
		v.bmc = true
		v.why = proposal.Why{Reason: model.ReasonNoMACPrefix, Message: fmt.Sprintf("it was recognised by entry %s, which is gone from the MAC prefix database: its "+
			"servers are left as they are; restore the entry, or write BMC and BMCSecret %s", v.old.Prefix, v.name), Since: since, Actor: proposal.RackOperator}
	case v.entry == nil:
		v.why = proposal.Why{Reason: model.ReasonNoMACPrefix, Message: fmt.Sprintf("no entry of the MAC prefix database is for %s; add one of type bmc, or write a "+
			"BMC with endpointRef %s", v.mac, v.name), Since: since, Actor: proposal.RackOperator}
	case !known && (f.outdated() || f.maybeUnreadable(model.KindBMC, "")):
		v.why = proposal.Why{Reason: model.ReasonManifestUnreadable, Message: "a BMC in Git may describe it, in a manifest that cannot be read; " +
			"see " + model.ReportProblems, Since: since, Actor: proposal.RackOperator}
	default:
		v.bmc = true
	}
}
