package world

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/proposal"
)

// uuids returns the known servers by UUID, and notes those that share one.
func uuids(f *World, known map[model.ServerName]*model.ServerRecord) map[string]*model.ServerRecord {
	by := make(map[string]*model.ServerRecord, len(known))
	for _, r := range known {
		by[r.UUID] = r
	}
	if len(by) < len(known) {
		pairDuplicates(f, known, by)
	}
	return by
}

// pairDuplicates notes which servers share a UUID: by is left with the first by name of
// those that do.
func pairDuplicates(f *World, known map[model.ServerName]*model.ServerRecord, by map[string]*model.ServerRecord) {
	clear(by)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		r := known[name]
		first := by[r.UUID]
		if first == nil {
			by[r.UUID] = r
			continue
		}
		addDuplicate(f, first.Name, fmt.Sprintf("server %s behind BMC %s", r.Name, r.BMC))
		addDuplicate(f, r.Name, fmt.Sprintf("server %s behind BMC %s", first.Name, first.BMC))
	}
}

// noteDuplicate notes that BMC b shows a machine with the UUID of a server that is known to be
// elsewhere. That it is still there is not known while its own BMC has never answered, or
// shows nothing of it.
func noteDuplicate(f *World, of *model.ServerRecord, b *bmcs.BMC, sys model.SystemFact) {
	own := f.BMCs.Named(of.BMC)
	if own != nil && (own.Facts == nil || bmcs.ShownAs(own.Facts, of) == bmcs.ShownUnread) {
		b.Problems = append(b.Problems, fmt.Sprintf("system %s has the UUID %s of server %s, which is looked for behind BMC %s "+
			"first", sys.URI, sys.UUID, of.Name, of.BMC))
		return
	}
	b.Duplicates = append(b.Duplicates, fmt.Sprintf("system %s has the UUID %s of server %s behind "+
		"BMC %s", sys.URI, sys.UUID, of.Name, of.BMC))
	addDuplicate(f, of.Name, fmt.Sprintf("system %s behind BMC %s", sys.URI, b.Name))
}

func addDuplicate(f *World, name model.ServerName, other string) {
	if f.duplicates == nil {
		f.duplicates = make(map[model.ServerName][]string)
	}
	f.duplicates[name] = append(f.duplicates[name], other)
}

// duplicate says that another machine has the server's UUID too.
func (s *Server) duplicate() proposal.Why {
	others := s.World.duplicates[s.Name]
	if len(others) == 0 {
		return proposal.Why{}
	}
	return s.WhyBy(model.ReasonDuplicateUUID, fmt.Sprintf("its UUID %s is that of %s too, so nothing is armed for it and no claim "+
		"is bound to it until that is gone: %s",
		s.Record.UUID, text.List(others, " and of "), bmcs.DuplicateAdvice), proposal.RackOperator)
}
