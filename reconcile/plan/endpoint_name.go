package plan

import (
	"strings"

	"ingot/model"
)

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
