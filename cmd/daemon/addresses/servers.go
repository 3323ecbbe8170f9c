package addresses

import (
	"slices"

	"ingot/model"
)

// ServersWithout returns the known servers none of whose MAC addresses has an IP address in
// Git.
func ServersWithout(d *model.Desired, o *model.Observed, macs func(model.ServerName) []string) (names []string) {
	hasIP := make(map[string]bool)
	for _, e := range d.Endpoints {
		hasIP[e.Spec.MACAddress] = hasIP[e.Spec.MACAddress] || e.Spec.IP != ""
	}
	for name := range o.Servers {
		if !slices.ContainsFunc(macs(name), func(mac string) bool { return hasIP[mac] }) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}
