package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
)

// macsCondition says what is not certain about the server's MAC addresses.
func (v *view) macsCondition(s serverView) (c metav1.Condition, telling bool) {
	macs := s.Record.MACs
	write := fmt.Sprintf("annotation %s of Server %s", model.AnnotationMACAddresses, s.Name)
	identified := func(holds bool, reason, text string) (metav1.Condition, bool) {
		return condition(typeIdentified, holds, reason, text, s.Record.Life.Since), true
	}
	shared := v.sharedMACs(macs)
	switch {
	case len(shared) > 0:
		return identified(false, reasonMACAddressShared, fmt.Sprintf("%s: several systems show it, so it identifies none of them: write it in annotation %s of the Server that has it",
			text.List(shared, ", "), model.AnnotationMACAddresses))
	case len(macs) > 0 && macs[0].IdentifiedBy.Certain(), s.facts().Inventory == nil, s.Record.Life.State == model.StateInitial, s.Record.Life.State == model.StateDiscovery:
		return metav1.Condition{}, false
	case len(macs) == 0:
		return identified(false, reasonNoMACAddress, "neither Git nor its BMC gives a MAC address of it, so it may be refused what it asks for: write those of its network cards in "+write)
	}
	return identified(true, reasonBySighting, MACsText(macs)+": its BMC shows none, and these were seen to boot when it was discovered: to be certain, write them in "+write)
}

// sharedMACs are those of a server's MAC addresses that another system shows, too, and
// that Git gives to neither.
func (v *view) sharedMACs(macs []model.ServerMAC) (shared []string) {
	if v.macHolders == nil {
		v.macHolders = make(map[string]int)
		for _, s := range v.Servers {
			for _, m := range s.Record.MACs {
				v.macHolders[m.Address] += weight(m.IdentifiedBy)
			}
		}
	}
	for _, m := range macs {
		n := v.macHolders[m.Address]
		for n >= weight(model.MACByBMC) {
			n /= weight(model.MACByBMC) // sources of less weight do not count
		}
		if n > 1 {
			shared = append(shared, m.Address)
		}
	}
	return shared
}

// weight is how much one server that has a MAC address adds to the count of its holders:
// each kind of source has digits of its own.
func weight(by model.MACSource) int {
	switch by {
	case model.MACByGit:
		return 1 << 40
	case model.MACByBMC:
		return 1 << 20
	case model.MACBySighting:
	}
	return 1
}

// MACsText says which MAC addresses count as a server's, and by which source.
func MACsText(macs []model.ServerMAC) string {
	var texts []string
	for _, by := range []model.MACSource{model.MACByGit, model.MACByBMC, model.MACBySighting} {
		var of []string
		for _, m := range macs {
			if m.IdentifiedBy == by {
				of = append(of, m.Address)
			}
		}
		if len(of) > 0 {
			texts = append(texts, fmt.Sprintf("%s (%s)", strings.Join(of, ", "), by))
		}
	}
	return strings.Join(texts, ", ")
}
