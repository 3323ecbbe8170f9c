package plan

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// readCardsEvery is how often at most a server's parts are read because a network card
// asked under its UUID that is not known to be its own.
const readCardsEvery = 20 * time.Second

// macs are the MAC addresses that count as the server's: those that Git gives it and those
// that its BMC shows; only where neither has any, those that were proven before.
func (s *server) macs() []model.ServerMAC {
	var all []model.ServerMAC
	add := func(mac string, by model.MACSource) {
		known := slices.ContainsFunc(all, func(m model.ServerMAC) bool { return m.Address == mac })
		if !known && len(all) < model.MaxServerMACs {
			all = append(all, model.ServerMAC{Address: mac, IdentifiedBy: by})
		}
	}
	for _, mac := range s.spec.MACAddresses() {
		add(mac, model.MACByGit)
	}
	for _, mac := range s.bmcMACs() {
		add(mac, model.MACByBMC)
	}
	if len(all) == 0 {
		return s.uncertainMACs()
	}
	model.SortMACs(all)
	return all
}

// asBMCShows reports whether the record has what macs would return, as it is of nearly all
// servers: what their BMC shows and nothing else. It takes no memory, for each plan asks.
func (s *server) asBMCShows() bool {
	inv, macs := s.facts.Inventory, s.rec.MACs
	if inv == nil || len(macs) == 0 || s.annotation(model.AnnotationMACAddresses) != "" {
		return false
	}
	known := func(mac string) bool {
		return slices.ContainsFunc(macs, func(m model.ServerMAC) bool { return m.Address == mac })
	}
	for _, n := range inv.NetworkInterfaces {
		if n.MACAddress != "" && !known(n.MACAddress) {
			return false
		}
	}
	for _, mac := range inv.MACAddresses {
		if !known(mac) {
			return false
		}
	}
	return !slices.ContainsFunc(macs, func(m model.ServerMAC) bool {
		shown := slices.Contains(inv.MACAddresses, m.Address) ||
			slices.ContainsFunc(inv.NetworkInterfaces, func(n model.NetworkInterface) bool { return n.MACAddress == m.Address })
		return !shown || m.IdentifiedBy != model.MACByBMC
	})
}

// bmcMACs are the MAC addresses that the server's BMC shows, or showed when it last showed
// any: one whose host is off may show none.
func (s *server) bmcMACs() []string {
	var macs []string
	for _, text := range s.facts.Inventory.MACs() {
		if mac, ok := model.StationMAC(text); ok {
			macs = append(macs, mac)
		}
	}
	if len(macs) > 0 {
		return macs
	}
	for _, m := range s.rec.MACs {
		if m.IdentifiedBy == model.MACByBMC {
			macs = append(macs, m.Address)
		}
	}
	return macs
}

// uncertainMACs are those of the record that neither Git nor the BMC shows.
func (s *server) uncertainMACs() []model.ServerMAC {
	var all []model.ServerMAC
	for _, m := range s.rec.MACs {
		if !m.IdentifiedBy.Certain() {
			all = append(all, m)
		}
	}
	return all
}

// macsBy are MAC addresses that one source tells.
func macsBy(by model.MACSource, macs []string) []model.ServerMAC {
	var all []model.ServerMAC
	for _, mac := range macs[:min(len(macs), model.MaxServerMACs)] {
		all = append(all, model.ServerMAC{Address: mac, IdentifiedBy: by})
	}
	return all
}

// noteMACs has the record know the server's MAC addresses.
func (s *server) noteMACs() (Step, bool) {
	if s.fleet.observeOnly.Reason != "" || s.kept.asBMCShows(s) {
		return Step{}, false
	}
	macs := s.macs()
	if slices.Equal(macs, s.rec.MACs) {
		return Step{}, false
	}
	s.edit().MACs = macs
	return s.stay(), true
}

// identified reports whether Git or the BMC tells the server's MAC addresses.
func (s *server) identified() bool {
	return slices.ContainsFunc(s.macs(), func(m model.ServerMAC) bool { return m.IdentifiedBy.Certain() })
}

// sighted are the network cards that asked under the server's UUID while its discovery
// lasts.
func (s *server) sighted() (macs []string) {
	p, from := s.progress(), s.rec.SoughtFrom()
	if p == nil || from.IsZero() {
		return nil
	}
	for _, seen := range p.Sightings {
		if seen.Within(from, from.Add(s.fleet.in.Policy.DiscoveryTimeout)) {
			macs = append(macs, seen.MAC)
		}
	}
	return macs
}

// ambiguous says why the machine that was discovered may not be the server, "" if it is,
// or nothing speaks against it. Where neither Git nor the BMC tells
// its MAC addresses, all cards that asked under its UUID have to be the reporter's, and
// nobody else may have asked for what is the server's.
func (s *server) ambiguous(report *model.ProbeData) string {
	if s.identified() {
		return ""
	}
	cards := s.sighted()
	if len(cards) == 0 {
		return ""
	}
	advice := fmt.Sprintf("its BMC shows no MAC address: write those of its network cards in annotation %s of "+
		"Server %s", model.AnnotationMACAddresses, s.name)
	if s.progress().SightedMore {
		return fmt.Sprintf("more than %d network cards asked to boot under its UUID; %s", model.MaxSightings, advice)
	}
	var named []string
	if report != nil {
		named = report.MACs()
		others := slices.DeleteFunc(slices.Clone(cards), func(mac string) bool { return slices.Contains(named, mac) })
		if len(others) > 0 {
			return fmt.Sprintf("%s asked to boot under its UUID, and the machine that reported has %s; %s",
				text.List(others, ", "), text.List(named, ", "), advice)
		}
	}
	for _, u := range s.progress().Uses {
		unknown := u.Refusal == model.RefusedUnknown || u.Refusal == model.RefusedContested
		if u.Refusal == model.RefusedAddress || unknown && !slices.Contains(named, u.MAC) {
			return fmt.Sprintf("%s asked to boot under its UUID, and so did a client at %s, which was refused; %s", text.List(cards,
				", "), u.Client, advice)
		}
	}
	return ""
}

// failAmbiguous ends a discovery of a machine that may not be the server.
func (s *server) failAmbiguous(why string) Step {
	st := s.fail(model.ReasonMachineAmbiguous, why)
	s.rec.Life.Back = model.StateInitial
	return st
}

// proven are the server's MAC addresses once the machine that it is reported: with those
// that were sighted, if neither Git nor the BMC tells any.
func (s *server) proven(report *model.ProbeData) []model.ServerMAC {
	if cards := s.sighted(); !s.identified() && len(cards) > 0 {
		return macsBy(model.MACBySighting, report.MACs())
	}
	return s.macs()
}

// readCards reads the server's parts while its network cards may not have been shown.
func (s *server) readCards() (Step, bool) {
	if !s.cardsUnread() {
		return Step{}, false
	}
	return s.stay(proposal.Inspect{Inventory: true}), true
}

// cardsUnread reports whether a network card that is not known to be the server's asked
// under its UUID since its parts were read: some BMCs show cards only once the system
// has started. That is looked at while a power-on of ours is under way.
func (s *server) cardsUnread() bool {
	p, read := s.progress(), s.reading.InventoryAt
	if p == nil || !s.begun() || s.now().Before(read.Add(readCardsEvery)) {
		return false
	}
	from := s.rec.Power.Asked.At
	to := from.Add(s.fleet.in.Policy.BootTimeout)
	return s.now().Before(to) && slices.ContainsFunc(p.Sightings, func(seen model.Sighting) bool {
		known := slices.ContainsFunc(s.rec.MACs, func(m model.ServerMAC) bool { return m.Address == seen.MAC })
		return !known && seen.Within(from, to) && seen.Last.After(read)
	})
}
