package world

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bmcs"
)

// admission is the records of all servers, while those of systems that BMCs show for the
// first time are added.
type admission struct {
	f      *World
	recs   map[model.ServerName]*model.ServerRecord
	copied bool // recs is no longer the input's
	byUUID map[string]*model.ServerRecord
	known  map[model.BMCName][]*model.ServerRecord // see behind; made when first needed
}

// admitted returns the records of all servers: those known, and new ones for
// systems that BMCs show for the first time.
func (f *World) admitted() map[model.ServerName]*model.ServerRecord {
	known := f.In.Observed.Servers
	if len(f.BMCs.BMCs) == 0 {
		return known
	}
	a := admission{f: f, recs: known, byUUID: uuids(f, known)}
	for _, b := range f.BMCs.BMCs {
		if b.Facts == nil || b.IsAnother() {
			continue
		}
		for i, sys := range b.Facts.Systems {
			if problem := a.admit(b, i, sys); problem != "" {
				b.Problems = append(b.Problems, problem)
			}
		}
	}
	return a.recs
}

// admit adds a record for a system if it is new, or a known server that has moved. It
// says why it cannot be a server, "" if it can.
func (a *admission) admit(b *bmcs.BMC, index int, sys model.SystemFact) (problem string) {
	f := a.f
	if sys.Unread || a.knows(b, sys) {
		return ""
	}
	if sys.UUID == "" {
		if sys, problem = given(f, b, sys); problem != "" {
			return problem
		}
	}
	old := a.byUUID[sys.UUID]
	switch {
	case old != nil && !moved(f, old, b):
		noteDuplicate(f, old, b, sys)
		return ""
	case old == nil && len(f.In.Observed.Fleet.Unreadable) > 0:
		return unreadableText(sys.URI, f.In.Observed.Fleet.Unreadable)
	case old == nil && specNames(f)[sys.UUID] == "":
		if r := keeper(a.behind(b), len(b.Facts.Systems) == 1, sys.URI); r != nil {
			return inPlaceText(sys, r)
		}
	}
	rec := newRecord(f, b, index, a.defaultName(b, index), sys, old)
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

// knows reports whether a system is a server that was behind the BMC so far. Another machine may have been
// recorded in the same place before.
func (a *admission) knows(b *bmcs.BMC, sys model.SystemFact) bool {
	same := func(r *model.ServerRecord) bool {
		return r.SystemURI == sys.URI && (bmcs.IsMachine(sys, r) || sys.UUID == "" && r.Board == nil)
	}
	if r := a.byUUID[sys.UUID]; r != nil && r.BMC == b.Name && same(r) {
		return true // as nearly always
	}
	return slices.ContainsFunc(a.behind(b), same)
}

// behind are the servers that were behind a BMC so far.
func (a *admission) behind(b *bmcs.BMC) []*model.ServerRecord {
	if a.known == nil {
		a.known = make(map[model.BMCName][]*model.ServerRecord, len(a.f.BMCs.BMCs))
		for _, r := range a.f.In.Observed.Servers {
			a.known[r.BMC] = append(a.known[r.BMC], r)
		}
	}
	return a.known[b.Name]
}

// defaultName is the name of the system at a place among those of its BMC, if nothing else names it:
// that of its place, or the first that is free of as many as there are systems. A system that was added
// later may be listed before those that have theirs.
func (a *admission) defaultName(b *bmcs.BMC, index int) model.ServerName {
	name := func(i int) model.ServerName { return model.ServerName(fmt.Sprintf("%s-system-%d", b.Name, i)) }
	for i := range b.Facts.Systems {
		if n := name((index + i) % len(b.Facts.Systems)); a.recs[n] == nil {
			return n
		}
	}
	return name(index)
}

// keeper is the server at a place of a BMC so far, or any server of a BMC that shows one system alone, if
// its disks may hold data; else nil. A machine with another UUID there may be that server, with another
// board or firmware. Of several it is the one at the place, by name.
func keeper(known []*model.ServerRecord, alone bool, uri string) *model.ServerRecord {
	var keeper *model.ServerRecord
	for _, r := range known {
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

// free reports whether a server holds no tenant's data, as far as its record says.
func free(r *model.ServerRecord) bool {
	switch r.Settled() {
	case model.StateInitial, model.StateDiscovery, model.StateAvailable:
		return r.Claim.Name == "" && r.Life.FoundRunning.IsZero() && r.Doubt == nil
	case model.StateReserved, model.StateCleanup, model.StateReleased, model.StateMaintenance, model.StateError:
	}
	return false
}

// inPlaceText says why an unknown machine is not a server while it is in the place of one.
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
func moved(f *World, rec *model.ServerRecord, b *bmcs.BMC) bool {
	if len(f.duplicates[rec.Name]) > 0 {
		return false // it may be either of them
	}
	old := f.BMCs.Named(rec.BMC)
	if old == nil {
		return true
	}
	if old.Facts == nil {
		return false
	}
	return !slices.ContainsFunc(old.Facts.Systems, func(s model.SystemFact) bool {
		return bmcs.IsMachine(s, rec) && (old != b || s.URI == rec.SystemURI) || s.Unread && s.URI == rec.SystemURI
	})
}

// newRecord is the record of a system that is seen for the first time, or of a
// known server that has moved. Annotations that are in Git already count as handled, so that a
// lost record repeats no operation (law 1).
func newRecord(f *World, b *bmcs.BMC, index int, name model.ServerName, sys model.SystemFact, moved *model.ServerRecord) *model.ServerRecord {
	if moved != nil {
		rec := *moved
		rec.BMC, rec.SystemURI, rec.Boot.NoDiskBoot = b.Name, sys.URI, nil
		rec.Settings.IndicatorProblem, rec.Settings.BootOrderProblem, rec.Settings.BootOrderSet, rec.Settings.BootOrderPending = nil, nil, "", nil
		return &rec
	}
	rec := &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{Name: name, BMC: b.Name, SystemURI: sys.URI, UUID: sys.UUID},
		Life:           model.RecordLife{State: model.StateInitial, Since: f.In.Now},
	}
	if b.Facts.Systems[index].UUID == "" {
		rec.Board = &sys.Board
	}
	if name, ok := specNames(f)[sys.UUID]; ok {
		rec.Name = name
	} else if own := f.BMCs.OwnSystem(b); own != nil && own.URI == sys.URI {
		rec.Name = b.Manifest.Within
	}
	if spec := f.In.Desired.Servers[rec.Name]; spec != nil {
		_, rec.Requests.HandledOperation = spec.Operation()
		rec.Requests.HandledDiscover = spec.Annotations[model.AnnotationDiscover]
	}
	return rec
}

// specNames are the names of the manifests that give a UUID, by that UUID in each
// of its spellings.
func specNames(f *World) map[string]model.ServerName {
	if f.specByUUID != nil {
		return f.specByUUID
	}
	f.specByUUID = make(map[string]model.ServerName)
	for _, name := range slices.Sorted(maps.Keys(f.In.Desired.Servers)) {
		for _, id := range model.UUIDVariants(f.In.Desired.Servers[name].Spec.SystemUUID) {
			if model.UsableUUID(id) {
				f.specByUUID[id] = name
			}
		}
	}
	return f.specByUUID
}
