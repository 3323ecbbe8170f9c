package plan

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// uuids returns the known servers by UUID, and notes those that share one.
func (f *fleet) uuids(known map[model.ServerName]*model.ServerRecord) map[string]*model.ServerRecord {
	by := make(map[string]*model.ServerRecord, len(known))
	for _, r := range known {
		by[r.UUID] = r
	}
	if len(by) < len(known) {
		f.pairDuplicates(known, by)
	}
	return by
}

// pairDuplicates notes which servers share a UUID: by is left with the first by name of
// those that do.
func (f *fleet) pairDuplicates(known map[model.ServerName]*model.ServerRecord, by map[string]*model.ServerRecord) {
	clear(by)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		r := known[name]
		first := by[r.UUID]
		if first == nil {
			by[r.UUID] = r
			continue
		}
		f.addDuplicate(first.Name, fmt.Sprintf("server %s behind BMC %s", r.Name, r.BMC))
		f.addDuplicate(r.Name, fmt.Sprintf("server %s behind BMC %s", first.Name, first.BMC))
	}
}

// noteDuplicate notes that BMC b shows a machine with the UUID of a server that is known to be
// elsewhere. That it is still there is not known while its own BMC has never answered, or
// shows nothing of it.
func (f *fleet) noteDuplicate(of *model.ServerRecord, b *bmcView, sys model.SystemFact) {
	own := f.bmc(of.BMC)
	if own != nil && (own.facts == nil || shownAs(own.facts, of) == shownUnread) {
		b.problems = append(b.problems, fmt.Sprintf("system %s has the UUID %s of server %s, which is looked for behind BMC %s "+
			"first", sys.URI, sys.UUID, of.Name, of.BMC))
		return
	}
	b.duplicates = append(b.duplicates, fmt.Sprintf("system %s has the UUID %s of server %s behind "+
		"BMC %s", sys.URI, sys.UUID, of.Name, of.BMC))
	f.addDuplicate(of.Name, fmt.Sprintf("system %s behind BMC %s", sys.URI, b.name))
}

func (f *fleet) addDuplicate(name model.ServerName, other string) {
	if f.duplicates == nil {
		f.duplicates = make(map[model.ServerName][]string)
	}
	f.duplicates[name] = append(f.duplicates[name], other)
}

// duplicateAdvice says what to do about two machines of one UUID.
const duplicateAdvice = "if it is one machine behind two BMCs, take one of them out of Git; " +
	"if there are two, give the one that is newer here a UUID of its own with its vendor's tool"

// duplicate says that another machine has the server's UUID too.
func (s *server) duplicate() proposal.Why {
	others := s.fleet.duplicates[s.name]
	if len(others) == 0 {
		return proposal.Why{}
	}
	return s.whySince(model.ReasonDuplicateUUID, fmt.Sprintf("its UUID %s is that of %s too, so nothing is armed for it and no claim "+
		"is bound to it until that is gone: %s",
		s.rec.UUID, text.List(others, " and of "), duplicateAdvice), proposal.RackOperator)
}

// duplicate says that machines behind the BMC have the UUIDs of known servers.
func (b *bmcView) duplicate() proposal.Why {
	if len(b.duplicates) == 0 {
		return proposal.Why{}
	}
	return proposal.Why{Reason: model.ReasonDuplicateUUID, Message: fmt.Sprintf("%s, so it is no server of its own, and nothing is armed for either until that "+
		"is gone: %s",
		text.List(b.duplicates, "; "), duplicateAdvice), Since: b.rec.Since, Actor: proposal.RackOperator}
}

// disarm closes a ticket with which another machine could be booted.
func (s *server) disarm() (Step, bool) {
	if s.duplicate().Reason == "" || s.fleet.observeOnly.Reason != "" || !s.rec.Boot.Ticket.Open() || s.trace().Ended() {
		return Step{}, false
	}
	switch s.rec.Boot.Ticket.State(s.progress()) {
	case model.TicketArmed, model.TicketScriptServed:
		s.end(model.TicketSpent)
	case model.TicketIgnitionServed, model.TicketBooted, model.TicketSpent:
		return Step{}, false // nothing more is served with it
	}
	return s.stay(), true
}
