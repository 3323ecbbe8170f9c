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

// admission finds out which servers there are, and which manifest is whose.
type admission struct {
	*World
	recs       map[model.ServerName]*model.ServerRecord // of all servers, also of systems that BMCs show for the first time
	copied     bool                                     // recs is no longer the input's
	byUUID     map[string]*model.ServerRecord           // recs, the first by name of each UUID
	known      map[model.BMCName][]*model.ServerRecord  // see behind; made when first needed
	specByUUID map[string]model.ServerName              // see specNames; made when first needed
	specs      map[model.ServerName]*model.Server       // the manifests by the name that Ingot knows the server by
	otherUUID  map[model.ServerName]*otherUUID          // by the name of the manifest
	duplicates map[model.ServerName][]string            // other machines that have a server's UUID
}

func (w *World) admit() *admission {
	known := w.Observed.Servers
	a := &admission{World: w, recs: known, byUUID: make(map[string]*model.ServerRecord, len(known)), duplicates: make(map[model.ServerName][]string)}
	for _, r := range known {
		a.byUUID[r.UUID] = r
	}
	if len(a.byUUID) < len(known) {
		a.pairDuplicates()
	}
	for _, b := range w.BMCs.BMCs {
		if b.Facts == nil || b.IsAnother() {
			continue
		}
		for i := range b.Facts.Systems {
			if problem := a.add(b, i); problem != "" {
				b.Problems = append(b.Problems, problem)
			}
		}
	}
	a.matchSpecs()
	return a
}

// add adds a record for a new system of a BMC, or for a server that has moved. It returns why there is none, "" if there is one.
func (a *admission) add(b *bmcs.BMC, index int) (problem string) {
	sys := b.Facts.Systems[index]
	if sys.Unread || a.knows(b, sys) {
		return ""
	}
	if sys.UUID == "" {
		if sys, problem = a.given(b, sys); problem != "" {
			return problem
		}
	}
	old, rec := a.byUUID[sys.UUID], (*model.ServerRecord)(nil)
	switch {
	case old != nil && !a.moved(old, b):
		a.noteDuplicate(old, b, sys)
		return ""
	case old != nil:
		rec = new(*old)
		rec.BMC, rec.SystemURI, rec.Boot.NoDiskBoot = b.Name, sys.URI, nil
		rec.Settings.IndicatorProblem, rec.Settings.BootOrderProblem, rec.Settings.BootOrderSet, rec.Settings.BootOrderPending = nil, nil, "", nil
	case len(a.Observed.Fleet.Unreadable) > 0:
		return unreadableText(sys.URI, a.Observed.Fleet.Unreadable)
	default:
		if r := a.keeper(b, sys); r != nil && a.specNames()[sys.UUID] == "" {
			return inPlaceText(sys, r)
		}
		rec = a.newRecord(b, index, sys)
	}
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

// knows reports whether a system is a server that was behind the BMC so far, as another may have been in its place.
func (a *admission) knows(b *bmcs.BMC, sys model.SystemFact) bool {
	same := func(r *model.ServerRecord) bool {
		return r.SystemURI == sys.URI && (bmcs.IsMachine(sys, r) || sys.UUID == "" && r.Board == nil)
	}
	if r := a.byUUID[sys.UUID]; r != nil && r.BMC == b.Name && same(r) {
		return true // as nearly always
	}
	return slices.ContainsFunc(a.behind(b), same)
}

func (a *admission) behind(b *bmcs.BMC) []*model.ServerRecord {
	if a.known == nil {
		a.known = make(map[model.BMCName][]*model.ServerRecord, len(a.BMCs.BMCs))
		for _, r := range a.Observed.Servers {
			a.known[r.BMC] = append(a.known[r.BMC], r)
		}
	}
	return a.known[b.Name]
}

// keeper is the server at the place of a system so far, or any server of a BMC that shows that system alone, if its
// disks may hold data; else nil. A machine with another UUID there may be that server, with another board or
// firmware. Of several it is the one at the place, then the first by name.
func (a *admission) keeper(b *bmcs.BMC, sys model.SystemFact) *model.ServerRecord {
	var keeper *model.ServerRecord
	for _, r := range a.behind(b) {
		there := r.SystemURI == sys.URI
		switch {
		case free(r) || !there && len(b.Facts.Systems) > 1:
		case keeper == nil, there && keeper.SystemURI != sys.URI, there == (keeper.SystemURI == sys.URI) && r.Name < keeper.Name:
			keeper = r
		}
	}
	return keeper
}

// free reports whether a server holds no tenant's data, as far as its record says.
func free(r *model.ServerRecord) bool {
	settled := slices.Contains([]model.ServerState{model.StateInitial, model.StateDiscovery, model.StateAvailable}, r.Settled())
	return settled && r.Claim.Name == "" && r.Life.FoundRunning.IsZero() && r.Doubt == nil
}

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

func unreadableText(uri string, all []model.UnreadableRecord) string {
	lines := make([]string, len(all))
	for i, u := range all {
		lines[i] = fmt.Sprintf("%s (%s)", u.Server, proposal.ApproveLine(u.Token))
	}
	return fmt.Sprintf("system %s is not taken for a new server, for it may be one whose record cannot be read: %s; approve that it is "+
		"given up", uri, text.List(lines, ", "))
}

// moved reports whether a known server is behind BMC b now: its old BMC is gone from Git or no longer shows it.
func (a *admission) moved(rec *model.ServerRecord, b *bmcs.BMC) bool {
	if len(a.duplicates[rec.Name]) > 0 {
		return false // it may be either of them
	}
	old := a.BMCs.Named(rec.BMC)
	if old == nil {
		return true
	}
	return old.Facts != nil && !slices.ContainsFunc(old.Facts.Systems, func(s model.SystemFact) bool {
		return bmcs.IsMachine(s, rec) && (old != b || s.URI == rec.SystemURI) || s.Unread && s.URI == rec.SystemURI
	})
}

// newRecord is the record of a system that is seen for the first time. Annotations that are in Git already count as
// handled, so that a lost record repeats no operation (law 1).
func (a *admission) newRecord(b *bmcs.BMC, index int, sys model.SystemFact) *model.ServerRecord {
	rec := &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{Name: a.specNames()[sys.UUID], BMC: b.Name, SystemURI: sys.URI, UUID: sys.UUID},
		Life:           model.RecordLife{State: model.StateInitial, Since: a.Now},
	}
	if b.Facts.Systems[index].UUID == "" {
		rec.Board = &sys.Board
	}
	if own := a.BMCs.OwnSystem(b); rec.Name == "" && own != nil && own.URI == sys.URI {
		rec.Name = b.Manifest.Within
	}
	if rec.Name == "" {
		rec.Name = a.defaultName(b, index)
	}
	if spec := a.Desired.Servers[rec.Name]; spec != nil {
		_, rec.Requests.HandledOperation = spec.Operation()
		rec.Requests.HandledDiscover = spec.Annotations[model.AnnotationDiscover]
	}
	return rec
}

// defaultName is the name of the system at a place among those of its BMC, if nothing else names it: that of its place,
// or the next that is free. A system that was added later may be listed before those that have theirs.
func (a *admission) defaultName(b *bmcs.BMC, index int) model.ServerName {
	name := func(i int) model.ServerName { return model.ServerName(fmt.Sprintf("%s-system-%d", b.Name, i)) }
	for i := range b.Facts.Systems {
		if n := name((index + i) % len(b.Facts.Systems)); a.recs[n] == nil {
			return n
		}
	}
	return name(index)
}

// specNames are the names of the manifests that give a UUID, by that UUID in each of its spellings.
func (a *admission) specNames() map[string]model.ServerName {
	if a.specByUUID != nil {
		return a.specByUUID
	}
	a.specByUUID = make(map[string]model.ServerName)
	for _, name := range sorted(a.Desired.Servers) {
		for _, id := range model.UUIDVariants(a.Desired.Servers[name].Spec.SystemUUID) {
			if model.UsableUUID(id) {
				a.specByUUID[id] = name
			}
		}
	}
	return a.specByUUID
}
