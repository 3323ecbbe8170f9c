package model

import (
	"slices"
	"strings"
)

// MaxServerMACs is how many MAC addresses of a server count at most.
const MaxServerMACs = 128

// MACSource says who told that a MAC address is a server's.
type MACSource string

// The sources of a server's MAC addresses. The last counts only where the first two
// know none.
const (
	MACByGit      MACSource = "Git"      // AnnotationMACAddresses
	MACByBMC      MACSource = "BMC"      // its network cards, as Redfish shows them
	MACBySighting MACSource = "sighting" // its firmware, see Sighting
)

// Certain reports whether the source tells of one server alone: what firmware and probes
// say anybody can say.
func (s MACSource) Certain() bool { return s == MACByGit || s == MACByBMC }

// ServerMAC is a MAC address of a server.
type ServerMAC struct {
	Address      string    `json:"macAddress"` // canonical
	IdentifiedBy MACSource `json:"identifiedBy"`
}

// SortMACs orders MAC addresses by address.
func SortMACs(macs []ServerMAC) {
	slices.SortFunc(macs, func(a, b ServerMAC) int { return strings.Compare(a.Address, b.Address) })
}

// MACAddresses returns the MAC addresses that Git gives a server: canonical, sorted, each
// once.
func (o *Server) MACAddresses() []string {
	if o == nil {
		return nil
	}
	list, given := o.Annotations[AnnotationMACAddresses]
	if !given {
		return nil
	}
	var macs []string
	for text := range strings.SplitSeq(list, ",") {
		if mac, ok := StationMAC(text); ok {
			macs = append(macs, mac)
		}
	}
	slices.Sort(macs)
	return slices.Compact(macs)
}

// MACs returns the MAC addresses of the network cards that a server's BMC shows, in no
// order, and some more than once.
func (i *Inventory) MACs() []string {
	if i == nil {
		return nil
	}
	macs := slices.Clone(i.MACAddresses)
	for _, n := range i.NetworkInterfaces {
		if n.MACAddress != "" {
			macs = append(macs, n.MACAddress)
		}
	}
	return macs
}

// MACs returns the MAC addresses that a probe found on its server: those of its cards'
// ports, and of its interfaces, for some probes know no cards.
func (d *ProbeData) MACs() []string {
	var macs []string
	add := func(text string) {
		if mac, ok := StationMAC(text); ok {
			macs = append(macs, mac)
		}
	}
	for _, nic := range d.NICs {
		add(nic.MAC)
	}
	for _, i := range d.NetworkInterfaces {
		add(i.MACAddress)
	}
	slices.Sort(macs)
	return slices.Compact(macs)
}
