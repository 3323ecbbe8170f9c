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

// maxCards is how many network cards of a collection are read, maxChassis of how many chassis.
const (
	maxCards   = 32
	maxChassis = 4
)

// networkInterface is a NetworkInterface resource, a network card as its system sees it, or
// a NetworkAdapter, the card as its chassis sees it.
type networkInterface struct {
	NetworkDeviceFunctions, Ports, NetworkPorts link
	Links                                       struct{ NetworkAdapter link }
}

// leads reports whether the card has what its MAC addresses are found in.
func (c *networkInterface) leads() bool {
	return c.NetworkDeviceFunctions.ID != "" || c.Ports.ID != "" || c.NetworkPorts.ID != ""
}

type chassis struct {
	Short                   string `json:"Id"`
	Name                    string
	NetworkAdapters, Drives link
	Links                   struct{ ComputerSystems []link }
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
// none in its functions is read port by port. Where the system has no card with one, those
// of its chassis are read.
func (r *reading) networkCards(uri string, s *system) error {
	cards := path(s.NetworkInterfaces.ID)
	err := r.eachCard(cards)
	if errors.Is(err, ErrNotFound) && r.hasMACs() { // a link that leads nowhere
		err = nil
	}
	if !r.hasMACs() && (err == nil || !final(err)) {
		if failed := r.chassisCards(uri, s); err == nil {
			err = failed
		}
	}
	slices.Sort(r.inv.MACAddresses)
	return err
}

func (r *reading) hasMACs() bool { return len(r.inv.MACs()) > 0 }

func (r *reading) eachCard(uri string) error {
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
	return err
}

// chassisCards reads the cards of the chassis that the machine has to itself: those of one
// that it shares may be another machine's.
func (r *reading) chassisCards(uri string, s *system) error {
	for _, l := range s.Links.Chassis[:min(len(s.Links.Chassis), maxChassis)] {
		at := path(l.ID)
		a, err := r.get(r.ctx, at)
		if err == nil {
			c := read[chassis](r, at, a.body)
			var cards string
			if c != nil {
				cards = path(c.NetworkAdapters.ID)
			}
			if cards == "" || !r.alone(uri, c.Links.ComputerSystems) {
				continue
			}
			err = r.eachCard(cards)
		}
		if err != nil && (final(err) || !errors.Is(err, ErrNotFound)) {
			return err
		}
	}
	return nil
}

// alone reports whether a chassis holds the machine and no other. One that does not say
// what it holds has that of the only system of its BMC.
func (r *reading) alone(uri string, systems []link) bool {
	if len(systems) > 0 {
		return !slices.ContainsFunc(systems, func(l link) bool { return !sameResource(path(l.ID), uri) })
	}
	svc, err := r.root(r.ctx)
	if err != nil {
		return false
	}
	all, err := r.page(r.ctx, svc.systems)
	if err != nil || len(all.Members) != 1 || all.Next != "" || all.Count != nil && *all.Count > 1 {
		return false
	}
	m, _ := asMember(all.Members[0])
	return sameResource(m.uri, uri)
}

// sameResource reports whether two URIs name one resource, however they end.
func sameResource(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// networkCard reads a card where it says that its parts are, or else where the chassis does.
func (r *reading) networkCard(card *networkInterface) error {
	at := path(card.Links.NetworkAdapter.ID)
	if card.leads() || at == "" {
		return r.cardParts(card)
	}
	a, err := r.get(r.ctx, at)
	if err != nil {
		return err
	}
	if card = read[networkInterface](r, at, a.body); card == nil {
		return nil
	}
	return r.cardParts(card)
}

func (r *reading) cardParts(card *networkInterface) error {
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
