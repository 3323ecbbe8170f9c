package plan

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
)

// admission is the records of all servers, while those of systems that BMCs show for the
// first time are added.
type admission struct {
	f      *fleet
	recs   map[model.ServerName]*model.ServerRecord
	copied bool // recs is no longer the input's
	byUUID map[string]*model.ServerRecord
}

// admitted returns the records of all servers: those known, and new ones for
// systems that BMCs show for the first time.
func (f *fleet) admitted() map[model.ServerName]*model.ServerRecord {
	known := f.in.Observed.Servers
	if len(f.bmcs) == 0 {
		return known
	}
	settled := f.memory.settled.of(known, f.memory.bmcPlaces.names)
	if settled.distinct && settled.all(f.bmcs) {
		return known // as good as always
	}
	a := admission{f: f, recs: known, byUUID: f.uuids(known)}
	settled.distinct = len(a.byUUID) == len(known)
	for _, r := range known {
		if at, inGit := f.bmcAt[r.BMC]; inGit && !settled.is(at, f.bmcs[at]) {
			f.bmcs[at].known = append(f.bmcs[at].known, r)
		}
	}
	for at, b := range f.bmcs {
		if settled.is(at, b) {
			continue
		}
		for i, sys := range b.facts.Systems {
			if problem := a.admit(b, i, sys); problem != "" {
				b.problems = append(b.problems, problem)
			}
		}
		settled.note(at, b)
	}
	return a.recs
}

// settledBMCs are those that showed nothing, with the same records of servers, but servers that
// were there so far.
type settledBMCs struct {
	recs  map[model.ServerName]*model.ServerRecord
	names []model.BMCName
	// distinct is set if no two of the servers have one UUID.
	distinct bool
	facts    []*model.BMCFacts // that each BMC showed, in the order of names; nil = it is none of them
}

// of returns those for some records and BMCs, which begin anew with others.
func (s *settledBMCs) of(recs map[model.ServerName]*model.ServerRecord, names []model.BMCName) *settledBMCs {
	if !sameMap(s.recs, recs) || !sameList(s.names, names) {
		*s = settledBMCs{recs: recs, names: names, facts: make([]*model.BMCFacts, len(names))}
	}
	return s
}

// is reports whether nothing is admitted of the BMC at a place.
func (s *settledBMCs) is(at int, b *bmcView) bool {
	return b.facts == nil || b.isAnother() || s.facts[at] == b.facts
}

// all reports whether nothing is admitted of any BMC.
func (s *settledBMCs) all(bmcs []*bmcView) bool {
	for at, b := range bmcs {
		if !s.is(at, b) {
			return false
		}
	}
	return true
}

// note notes whether the BMC at a place shows nothing but servers that were there so far.
func (s *settledBMCs) note(at int, b *bmcView) {
	s.facts[at] = nil
	if !slices.ContainsFunc(b.facts.Systems, func(sys model.SystemFact) bool { return !sys.Unread && !b.knows(sys) }) {
		s.facts[at] = b.facts
	}
}

// admit adds a record for a system if it is new, or a known server that has moved. It
// says why it cannot be a server, "" if it can.
func (a *admission) admit(b *bmcView, index int, sys model.SystemFact) (problem string) {
	f := a.f
	if sys.Unread {
		return ""
	}
	if b.knows(sys) {
		return ""
	}
	if sys.UUID == "" {
		if sys, problem = f.given(b, sys); problem != "" {
			return problem
		}
	}
	old := a.byUUID[sys.UUID]
	switch {
	case old != nil && !f.moved(old, b):
		f.noteDuplicate(old, b, sys)
		return ""
	case old == nil && len(f.in.Observed.Fleet.Unreadable) > 0:
		return unreadableText(sys.URI, f.in.Observed.Fleet.Unreadable)
	case old == nil && f.specNames()[sys.UUID] == "":
		if r := b.keeper(sys.URI); r != nil {
			return inPlaceText(sys, r)
		}
	}
	rec := f.newRecord(b, index, a.defaultName(b, index), sys, old)
	if other := a.recs[rec.Name]; other != nil && other != old {
		return fmt.Sprintf("system %s would be server %s, a name that another machine has (UUID %s): write a Server of another name with "+
			"spec.systemUUID %s", sys.URI, rec.Name, other.UUID, sys.UUID)
	}
	if !a.copied {
		a.recs, a.copied = maps.Clone(a.recs), true
	}
	a.recs[rec.Name], a.byUUID[sys.UUID] = rec, rec
	return ""
}

// knows reports whether a system of the BMC is a server that was there so far. Another
// machine may have been recorded in the same place before.
func (b *bmcView) knows(sys model.SystemFact) bool {
	return slices.ContainsFunc(b.known, func(r *model.ServerRecord) bool {
		return r.SystemURI == sys.URI && (isMachine(sys, r) || sys.UUID == "" && r.Board == nil)
	})
}

// defaultName is the name of the system at a place among those of its BMC, if nothing else names it:
// that of its place, or the first that is free of as many as there are systems. One that was put in
// later may stand before those that have theirs.
func (a *admission) defaultName(b *bmcView, index int) model.ServerName {
	name := func(i int) model.ServerName { return model.ServerName(fmt.Sprintf("%s-system-%d", b.name, i)) }
	for i := range b.facts.Systems {
		if n := name((index + i) % len(b.facts.Systems)); a.recs[n] == nil {
			return n
		}
	}
	return name(index)
}

// keeper is the server that was at a place of the BMC so far, or anywhere behind one that shows one
// system alone, if its disks may hold what is somebody's; else nil. A machine with another UUID
// there may be that one, with another board or firmware. Of several it is the one at the place, by
// name.
func (b *bmcView) keeper(uri string) *model.ServerRecord {
	alone := len(b.facts.Systems) == 1
	var keeper *model.ServerRecord
	for _, r := range b.known {
		if !free(r) && (alone || r.SystemURI == uri) && (keeper == nil || isNearer(uri, r, keeper)) {
			keeper = r
		}
	}
	return keeper
}

// isNearer reports whether server r is rather the one at a place of its BMC than other is.
func isNearer(uri string, r, other *model.ServerRecord) bool {
	if at := r.SystemURI == uri; at != (other.SystemURI == uri) {
		return at
	}
	return r.Name < other.Name
}

// free reports whether nothing of anybody's is on a server, as far as its record says.
func free(r *model.ServerRecord) bool {
	switch r.Settled() {
	case model.StateInitial, model.StateDiscovery, model.StateAvailable:
		return r.Claim.Name == "" && r.Life.FoundRunning.IsZero() && r.Doubt == nil
	case model.StateReserved, model.StateCleanup, model.StateReleased, model.StateMaintenance, model.StateError:
	}
	return false
}

// inPlaceText says why a machine that nobody knows is no server while it is in the place of one.
func inPlaceText(sys model.SystemFact, r *model.ServerRecord) string {
	whose := "which may hold data of its last user"
	switch {
	case r.Claim.Name != "":
		whose = "which claim " + string(r.Claim.Name) + " has"
	case !r.Life.FoundRunning.IsZero():
		whose = "which was found running"
	}
	return fmt.Sprintf("system %s has UUID %s, and in its place was server %s, %s (UUID %s): it may be the same machine with another board or "+
		"firmware, so it is no server of its own; have its UUID set back with its vendor's tool, or, if it is another machine, write a "+
		"Server with spec.systemUUID %s", sys.URI, sys.UUID, r.Name, whose, r.UUID, sys.UUID)
}

// moved reports whether a known server is behind BMC b from now on, because its old
// BMC is gone from Git or no longer shows it.
func (f *fleet) moved(rec *model.ServerRecord, b *bmcView) bool {
	if len(f.duplicates[rec.Name]) > 0 {
		return false // it may be either of them
	}
	old := f.bmc(rec.BMC)
	if old == nil {
		return true
	}
	if old.facts == nil {
		return false
	}
	return !slices.ContainsFunc(old.facts.Systems, func(s model.SystemFact) bool {
		return isMachine(s, rec) && (old != b || s.URI == rec.SystemURI) || s.Unread && s.URI == rec.SystemURI
	})
}

// newRecord is the record of a system that is seen for the first time, or of a
// known server that has moved. Annotations that stand in Git already count as
// handled, so that a lost record repeats no operation (law 1).
func (f *fleet) newRecord(b *bmcView, index int, name model.ServerName, sys model.SystemFact, moved *model.ServerRecord) *model.ServerRecord {
	if moved != nil {
		rec := *moved
		rec.BMC, rec.SystemURI, rec.Boot.NoDiskBoot = b.name, sys.URI, nil
		rec.Settings.IndicatorProblem, rec.Settings.BootOrderProblem, rec.Settings.BootOrderSet, rec.Settings.BootOrderPending = nil, nil, "", nil
		return &rec
	}
	rec := &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{Name: name, BMC: b.name, SystemURI: sys.URI, UUID: sys.UUID},
		Life:           model.RecordLife{State: model.StateInitial, Since: f.in.Now},
	}
	if b.facts.Systems[index].UUID == "" {
		rec.Board = &sys.Board
	}
	if name, ok := f.specNames()[sys.UUID]; ok {
		rec.Name = name
	} else if own := f.ownSystem(b); own != nil && own.URI == sys.URI {
		rec.Name = b.spec.Within
	}
	if spec := f.in.Desired.Servers[rec.Name]; spec != nil {
		_, rec.Requests.HandledOperation = spec.Operation()
		rec.Requests.HandledDiscover = spec.Annotations[model.AnnotationDiscover]
	}
	return rec
}

// specNames are the names of the manifests that give a UUID, by that UUID in each
// of its spellings.
func (f *fleet) specNames() map[string]model.ServerName {
	if f.specByUUID != nil {
		return f.specByUUID
	}
	f.specByUUID = make(map[string]model.ServerName)
	for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Servers)) {
		for _, id := range model.UUIDVariants(f.in.Desired.Servers[name].Spec.SystemUUID) {
			if model.UsableUUID(id) {
				f.specByUUID[id] = name
			}
		}
	}
	return f.specByUUID
}
