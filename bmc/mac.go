package bmc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"ingot/model"
)

// maxCards is how many network cards of a machine are read.
const maxCards = 32

// networkInterface is a NetworkInterface resource: a network card as its system sees it.
type networkInterface struct {
	NetworkDeviceFunctions, Ports, NetworkPorts link
}

// isHostInterface reports whether an EthernetInterface of a system leads to its BMC and
// nowhere else: those have the MAC address that somebody thought of for USB.
func isHostInterface(m member, e *schemas.EthernetInterface) bool {
	var links struct {
		Links struct{ HostInterface *link }
	}
	// What cannot be read so is an interface like others.
	_ = json.Unmarshal(m.raw, &links)
	return links.Links.HostInterface != nil || strings.EqualFold(e.ID, "ToManager")
}

// networkCards adds the MAC addresses of the functions and ports of the machine's network
// cards: some BMCs list none of them as EthernetInterfaces, or not all. A card that has
// none in its functions is read port by port.
func (r *reading) networkCards(uri string) error {
	var cards []*networkInterface
	err := each(r, uri, 1, func(_ member, card *networkInterface) {
		if len(cards) < maxCards {
			cards = append(cards, card)
		}
	})
	for _, card := range cards {
		if err != nil {
			break
		}
		if err = r.networkCard(card); err != nil && !fatal(err) && !errors.Is(err, ErrUnreachable) {
			if !errors.Is(err, ErrNotFound) {
				r.problem(fmt.Sprintf("network cards: %v", err))
			}
			err = nil // the other cards are read
		}
	}
	if errors.Is(err, ErrNotFound) { // a link that leads nowhere
		err = nil
	}
	slices.Sort(r.inv.MACAddresses)
	return err
}

func (r *reading) networkCard(card *networkInterface) error {
	found := false
	note := func(texts ...string) {
		for _, text := range texts {
			found = r.noteMAC(text) || found
		}
	}
	err := each(r, path(card.NetworkDeviceFunctions.ID), 1, func(_ member, f *schemas.NetworkDeviceFunction) {
		note(f.Ethernet.MACAddress, f.Ethernet.PermanentMACAddress)
	})
	if found || err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if uri := path(card.Ports.ID); uri != "" {
		return each(r, uri, 1, func(m member, p *schemas.Port) {
			note(p.Ethernet.AssociatedMACAddresses...)
			note(associated(m)...)
		})
	}
	return each(r, path(card.NetworkPorts.ID), 1, func(_ member, p *schemas.NetworkPort) {
		note(p.AssociatedNetworkAddresses...)
	})
}

// associated are the AssociatedNetworkAddresses that some BMCs give a Port, which has them
// by the standard in Ethernet only.
func associated(m member) []string {
	var port struct{ AssociatedNetworkAddresses []string }
	_ = json.Unmarshal(m.raw, &port) // or there are none
	return port.AssociatedNetworkAddresses
}

// notePermanent notes the MAC address that a network interface has beside its present one:
// firmware may ask with either.
func (r *reading) notePermanent(mac, permanent string) {
	if other, ok := model.StationMAC(permanent); ok && other != mac {
		r.noteMAC(other)
	}
}

// noteMAC notes a MAC address of a network card, and reports whether it is one.
func (r *reading) noteMAC(text string) bool {
	mac, ok := model.StationMAC(text)
	if ok && len(r.inv.MACAddresses) < model.MaxServerMACs && !slices.Contains(r.inv.MACAddresses, mac) {
		r.inv.MACAddresses = append(r.inv.MACAddresses, mac)
	}
	return ok
}
