package bmcs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// holdersOf are the MAC addresses of the devices that have each IP address. If several have one, because
// a device does not know yet that it lost it, the last to get it counts.
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
	mac, _ := model.CanonicalMAC(name[max(len(name)-12, 0):])
	if e := d.byMAC[mac]; e != nil && e.ownName() == name {
		return e
	}
	return nil
}

// awaits says why the device of an Endpoint in Git is not known; the zero Why if it is.
func (d *devices) awaits(m *model.Endpoint) proposal.Why {
	if m == nil || m.Spec.MACAddress != "" || d.byName[m.Name] != nil {
		return proposal.Why{}
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
