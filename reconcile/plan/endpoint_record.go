package plan

import (
	"slices"

	"ingot/model"
)

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
