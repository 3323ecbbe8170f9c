package life

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// readCardsEvery is the shortest pause between readings because of an unknown network card.
const readCardsEvery = 20 * time.Second

// MACs are the server's addresses by Git and its BMC; if there are none, those that were proven before.
func MACs(s *server) []model.ServerMAC {
	all := addMACs(nil, model.MACByGit, s.Manifest.MACAddresses())
	all = addMACs(all, model.MACByBMC, bmcMACs(s))
	if len(all) == 0 {
		return slices.DeleteFunc(slices.Clone(s.Record.MACs), func(m model.ServerMAC) bool { return m.IdentifiedBy.Certain() })
	}
	model.SortMACs(all)
	return all
}

func addMACs(all []model.ServerMAC, by model.MACSource, macs []string) []model.ServerMAC {
	for _, mac := range macs {
		known := slices.ContainsFunc(all, func(m model.ServerMAC) bool { return m.Address == mac })
		if !known && len(all) < model.MaxServerMACs {
			all = append(all, model.ServerMAC{Address: mac, IdentifiedBy: by})
		}
	}
	return all
}

// asBMCShows saves the memory of MACs where the record has what the BMC shows and nothing else, as nearly all have.
func asBMCShows(s *server) bool {
	shown, macs := s.Facts.Inventory.MACs(), s.Record.MACs
	unknown := func(mac string) bool {
		return !slices.ContainsFunc(macs, func(m model.ServerMAC) bool { return m.Address == mac })
	}
	if len(macs) == 0 || s.Annotation(model.AnnotationMACAddresses) != "" || slices.ContainsFunc(shown, unknown) {
		return false
	}
	return !slices.ContainsFunc(macs, func(m model.ServerMAC) bool {
		return m.IdentifiedBy != model.MACByBMC || !slices.Contains(shown, m.Address)
	})
}

// bmcMACs are the addresses that the BMC shows, or showed: it may show none while its host is off.
func bmcMACs(s *server) []string {
	var macs []string
	for _, text := range s.Facts.Inventory.MACs() {
		if mac, ok := model.StationMAC(text); ok {
			macs = append(macs, mac)
		}
	}
	if len(macs) > 0 {
		return macs
	}
	for _, m := range s.Record.MACs {
		if m.IdentifiedBy == model.MACByBMC {
			macs = append(macs, m.Address)
		}
	}
	return macs
}

// NoteMACs records the server's MAC addresses.
func NoteMACs(s *server) (p proposal.Proposal, ok bool) {
	if asBMCShows(s) {
		return p, false
	}
	macs := MACs(s)
	if slices.Equal(macs, s.Record.MACs) {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) { rec.MACs = macs }).Stay(proposal.Note), true
}

// identified reports whether Git or the BMC tells the server's MAC addresses.
func identified(s *server) bool {
	return slices.ContainsFunc(MACs(s), func(m model.ServerMAC) bool { return m.IdentifiedBy.Certain() })
}

// sighted are the network cards that asked under the server's UUID during its discovery.
func sighted(s *server) (macs []string) {
	p, from := s.Progress(), s.Record.SoughtFrom()
	if p == nil || from.IsZero() {
		return nil
	}
	for _, seen := range p.Sightings {
		if seen.Within(from, from.Add(s.Policy.DiscoveryTimeout)) {
			macs = append(macs, seen.MAC)
		}
	}
	return macs
}

// ambiguous says why the machine that was discovered may not be the server, "" if no reason is known. Where
// neither Git nor the BMC has its MAC addresses, all cards that asked under its UUID have to be the reporter's.
func ambiguous(s *server, report *model.ProbeData) string {
	cards := sighted(s)
	if len(cards) == 0 || identified(s) {
		return ""
	}
	advice := fmt.Sprintf("its BMC shows no MAC address: write those of its network cards in annotation %s of "+
		"Server %s", model.AnnotationMACAddresses, s.Name)
	if s.Progress().SightedMore {
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
	for _, u := range s.Progress().Uses {
		unknown := u.Refusal == model.RefusedUnknown || u.Refusal == model.RefusedContested
		if u.Refusal == model.RefusedAddress || unknown && !slices.Contains(named, u.MAC) {
			return fmt.Sprintf("%s asked to boot under its UUID, and so did a client at %s, which was refused; %s", text.List(cards,
				", "), u.Client, advice)
		}
	}
	return ""
}

// ReadCards reads the server's parts if an unknown network card asked under its UUID since they were read, while a
// power-on of ours is under way: some BMCs show cards only once the system has started.
func ReadCards(s *server) (p proposal.Proposal, ok bool) {
	seen, read := s.Progress(), s.Reading.InventoryAt
	if seen == nil || !s.Begun() || s.Now.Before(read.Add(readCardsEvery)) {
		return p, false
	}
	from := s.Record.Power.Asked.At
	to := from.Add(s.Policy.BootTimeout)
	return s.Inspect(), s.Now.Before(to) && slices.ContainsFunc(seen.Sightings, func(seen model.Sighting) bool {
		known := slices.ContainsFunc(s.Record.MACs, func(m model.ServerMAC) bool { return m.Address == seen.MAC })
		return !known && seen.Within(from, to) && seen.Last.After(read)
	})
}
