package fleettest

import (
	"fmt"

	"ingot/model"
)

// CardOf is the MAC address of a network card.
func CardOf(n int) string { return fmt.Sprintf("02:00:00:00:00:%02x", n) }

// MACs are network cards in a server's record, and who told of them.
func MACs(by model.MACSource, numbers ...int) []model.ServerMAC {
	var all []model.ServerMAC
	for _, n := range numbers {
		all = append(all, model.ServerMAC{Address: CardOf(n), IdentifiedBy: by})
	}
	return all
}

// Probed are the network interfaces that a probe finds.
func Probed(macs []string) []model.ProbeNetworkInterface {
	all := []model.ProbeNetworkInterface{{Name: "lo0"}}
	for _, mac := range macs {
		all = append(all, model.ProbeNetworkInterface{Name: "eth", MACAddress: mac})
	}
	return all
}
