package plan

import (
	"cmp"
	"slices"

	"ingot/model"
)

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
