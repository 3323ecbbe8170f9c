package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ingot/model"
)

// fleet is one plan under way: the input, and what all servers share.
type fleet struct {
	in      *Input
	servers []*server // in the order of names
	byName  map[model.ServerName]*server
	bmcs    []*bmcView
	bmcBy   map[model.BMCName]*bmcView
	// endpoints are in the order of names.
	endpoints     []*endpointView
	endpointBy    map[string]*endpointView
	endpointByMAC map[string]*endpointView
	refs          map[string]bool // made when first needed
	// specs are the manifests of servers, by the name that Ingot knows the server by.
	specs map[model.ServerName]*model.Server
	// served says which server each claim is bound to.
	served map[model.ClaimName]model.ServerName
	// allowed are the steps that the guard lets be begun now, held those that it holds
	// back, by server.
	allowed, held map[model.ServerName][]model.Disruption
	guardNext     time.Time                               // when a list that is held may go; zero = none will by time
	renamed       map[model.ServerName]*model.ServerClaim // the claims that servers' claims became
	outrun        map[model.ClaimName]bool                // claims whose new name another server has
	disputed      map[model.ClaimName]*server             // claims that a Disputed server may have
	record        *model.FleetRecord                      // with this plan's changes
	observeOnly   Why
	powerOns      int // that may still be begun
	reprovisions  int
	maintained    map[model.ServerName]maintained
	labels        map[model.ServerName]map[string]string // cache
	specByUUID    map[string]model.ServerName            // made when first needed
	unboundOf     *unboundServers                        // made when first needed
	unknown       *Why                                   // of the very first claims; made when first needed
	noneFree      map[string]Why                         // by what claims ask for
	aliases       map[string]model.ServerName            // what Git calls a server, where Ingot knows it by another name
	twins         map[model.ServerName][]string          // other machines that have a server's UUID; nil while there is none
}

// Plan decides what to do now, and says why each object is where it is. The same input
// gives the same result.
func Plan(in *Input) *Result {
	f := newFleet(in)
	r := &Result{Moves: make(map[model.ServerName]*Move), Readings: make(map[model.BMCName]*BMCMove)}
	f.planEndpoints(r)
	f.planBMCs(r)
	f.planClaims(r)
	f.guard()
	f.decideReprovisions()
	r.wake(f.guardNext)
	f.bindClaims()
	r.ObserveOnly = f.observeOnly
	r.Claims, r.BMCs, r.Endpoints, r.Maintenances = f.judgeClaims(), f.judgeBMCs(), f.judgeEndpoints(), f.judgeMaintenances()
	f.planServers(r)
	if !sameFleet(f.record, &in.Observed.Fleet) {
		r.Decided.Fleet = f.record
	}
	return r
}

// planServers takes each server's next step.
func (f *fleet) planServers(r *Result) {
	r.Servers = make([]Server, len(f.servers))
	for i, s := range f.servers {
		j := s.judge()
		st := s.step()
		j.Why = j.stepWhy(st)
		j.RanWhenLastRead = s.ranWhenLastRead(j.Why)
		r.Servers[i] = j
		if st.Move != nil && !f.in.Busy[s.name] {
			st.Move.Target, st.Move.was = f.target(st.Move.Then), f.knownOf(s, st.Move.Then)
			r.Moves[s.name] = st.Move
		}
		r.wake(st.Wake)
	}
}

// target is how a server is reached.
func (f *fleet) target(rec *model.ServerRecord) model.SystemTarget {
	t := model.SystemTarget{URI: rec.SystemURI, UUID: rec.UUID}
	if rec.Board != nil {
		t.UUID, t.Board = "", *rec.Board
	}
	if b := f.bmcBy[rec.BMC]; b != nil {
		t.BMC = b.target
	}
	return t
}

func (r *Result) wake(at time.Time) {
	if !at.IsZero() && (r.Next.IsZero() || at.Before(r.Next)) {
		r.Next = at
	}
}

func newFleet(in *Input) *fleet {
	f := &fleet{
		in:         in,
		byName:     make(map[model.ServerName]*server, len(in.Observed.Servers)),
		served:     make(map[model.ClaimName]model.ServerName),
		allowed:    make(map[model.ServerName][]model.Disruption),
		held:       make(map[model.ServerName][]model.Disruption),
		renamed:    make(map[model.ServerName]*model.ServerClaim),
		outrun:     make(map[model.ClaimName]bool),
		disputed:   make(map[model.ClaimName]*server),
		maintained: make(map[model.ServerName]maintained),
		labels:     make(map[model.ServerName]map[string]string),
		noneFree:   make(map[string]Why),
		aliases:    make(map[string]model.ServerName),
		powerOns:   in.Policy.MaxConcurrentPowerOns,
	}
	record := in.Observed.Fleet
	f.record = &record
	f.loadEndpoints()
	f.loadBMCs()
	f.loadServers()
	f.loadMaintenances()
	f.reprovisions = in.Policy.MaxConcurrentReprovisions
	f.mistrustOld()
	for _, s := range f.servers {
		f.count(s)
	}
	f.noteUnknown()
	f.noteUnreadable()
	f.noteRevision()
	f.noteAbsences()
	f.noteRemovals()
	return f
}

// loadServers puts together what is known of each server, known or new.
func (f *fleet) loadServers() {
	recs := f.admitted()
	names := make([]model.ServerName, 0, len(recs))
	for name := range recs {
		names = append(names, name)
	}
	slices.Sort(names)
	f.specs = f.matchSpecs(recs)
	f.servers = make([]*server, len(names))
	all := make([]server, len(names)) // one allocation for the whole fleet
	for i, name := range names {
		s := &all[i]
		*s = server{
			fleet: f, name: name, rec: recs[name], spec: f.specs[name],
			facts: f.in.Observed.ServerFacts[name], reading: f.in.Readings[name],
		}
		if s.facts == nil {
			s.facts = &model.ServerFacts{Name: name}
		}
		f.loadClaim(s)
		f.noteDisputed(s)
		s.blocked = f.blocked(s)
		if b := f.bmcBy[s.rec.BMC]; b != nil && s.bmcToConfirm() {
			b.asked = true
		}
		f.servers[i] = s
		f.byName[name] = s
	}
	f.followRenames()
}

// noteDisputed notes the claims that a Disputed server may have.
func (f *fleet) noteDisputed(s *server) {
	if !Disputed(s.rec) {
		return
	}
	for _, a := range s.rec.Doubt.Alternatives {
		if a.Claim != "" {
			f.disputed[a.Claim] = s
		}
	}
}

// loadClaim finds the claim that a server is recorded to have. Of two servers of one
// claim, one that is being released had the claim that was called so before.
func (f *fleet) loadClaim(s *server) {
	name := s.rec.Claim
	if name == "" {
		return
	}
	if f.otherTenants(s.rec, f.in.Desired.Claims[name]) {
		return
	}
	other := f.byName[f.served[name]]
	if other != nil && s.rec.Release != nil && other.rec.Release == nil {
		return
	}
	if other != nil && other.rec.Release != nil {
		other.claim = nil
	}
	s.claim, f.served[name] = f.in.Desired.Claims[name], s.name
}

// admission is the records of all servers, while those of systems that BMCs show for the
// first time are added.
type admission struct {
	f        *fleet
	recs     map[model.ServerName]*model.ServerRecord
	copied   bool // recs is no longer the input's
	bySystem map[system]*model.ServerRecord
	byUUID   map[string]*model.ServerRecord
}

// system is where a machine is.
type system struct {
	bmc model.BMCName
	uri string
}

// admitted returns the records of all servers: those known, and new ones for
// systems that BMCs show for the first time.
func (f *fleet) admitted() map[model.ServerName]*model.ServerRecord {
	known := f.in.Observed.Servers
	if len(f.bmcs) == 0 {
		return known
	}
	a := admission{f: f, recs: known, bySystem: make(map[system]*model.ServerRecord, len(known)), byUUID: f.uuids(known)}
	for _, r := range known {
		a.bySystem[system{r.BMC, r.SystemURI}] = r
	}
	for _, b := range f.bmcs {
		if b.facts == nil {
			continue
		}
		for i, sys := range b.facts.Systems {
			if problem := a.admit(b, i, sys); problem != "" {
				b.problems = append(b.problems, problem)
			}
		}
	}
	return a.recs
}

// admit adds a record for a system if it is new, or a known server that has moved. It
// says why it cannot be a server, "" if it can.
func (a *admission) admit(b *bmcView, index int, sys model.SystemFact) (problem string) {
	f := a.f
	if sys.Unread {
		return ""
	}
	if r := a.bySystem[system{b.name, sys.URI}]; r != nil && (isMachine(sys, r) || sys.UUID == "" && r.Board == nil) {
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
		f.twin(old, b, sys)
		return ""
	case old == nil && len(f.in.Observed.Fleet.Unreadable) > 0:
		return unreadableText(sys.URI, f.in.Observed.Fleet.Unreadable)
	}
	rec := f.newRecord(b, index, sys, old)
	if other := a.recs[rec.Name]; other != nil && other != old {
		return fmt.Sprintf("system %s would be server %s, a name that another machine has (UUID %s)", sys.URI, rec.Name, other.UUID)
	}
	if !a.copied {
		a.recs, a.copied = maps.Clone(a.recs), true
	}
	a.recs[rec.Name], a.byUUID[sys.UUID] = rec, rec
	return ""
}

// moved reports whether a known server is to be looked for behind BMC b from
// now on: because its old BMC is gone from Git or shows it no more.
func (f *fleet) moved(rec *model.ServerRecord, b *bmcView) bool {
	if len(f.twins[rec.Name]) > 0 {
		return false // which of them it is cannot be told
	}
	old := f.bmcBy[rec.BMC]
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
func (f *fleet) newRecord(b *bmcView, index int, sys model.SystemFact, moved *model.ServerRecord) *model.ServerRecord {
	if moved != nil {
		rec := *moved
		rec.BMC, rec.SystemURI, rec.NoDiskBoot = b.name, sys.URI, nil
		return &rec
	}
	rec := &model.ServerRecord{
		Name: model.ServerName(fmt.Sprintf("%s-system-%d", b.name, index)),
		BMC:  b.name, SystemURI: sys.URI, UUID: sys.UUID,
		State: model.StateInitial, Since: f.in.Now, Identified: true,
	}
	if b.facts.Systems[index].UUID == "" {
		rec.Board = &sys.Board
	}
	if name, ok := f.specNames()[sys.UUID]; ok {
		rec.Name = name
	}
	if spec := f.in.Desired.Servers[rec.Name]; spec != nil {
		_, rec.HandledOperation = spec.Operation()
		rec.HandledDiscover = spec.Annotations[model.AnnotationDiscover]
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

// matchSpecs finds each server's manifest: by name, else by UUID.
func (f *fleet) matchSpecs(recs map[model.ServerName]*model.ServerRecord) map[model.ServerName]*model.Server {
	specs := make(map[model.ServerName]*model.Server, len(f.in.Desired.Servers))
	var byUUID map[string]model.ServerName
	for name, spec := range f.in.Desired.Servers {
		if r := recs[name]; r != nil && (spec.Spec.SystemUUID == "" || model.SameUUID(spec.Spec.SystemUUID, r.UUID)) {
			specs[name] = spec
			continue
		}
		if spec.Spec.SystemUUID == "" {
			continue
		}
		if byUUID == nil {
			byUUID = make(map[string]model.ServerName, len(recs))
			for n, r := range recs {
				byUUID[r.UUID] = n
			}
		}
		for _, id := range model.UUIDVariants(spec.Spec.SystemUUID) {
			if n, ok := byUUID[id]; ok && f.in.Desired.Servers[n] == nil {
				specs[n] = spec
				f.aliases[string(name)] = n
				break
			}
		}
	}
	return specs
}

// blocked says why a server cannot be acted upon at all.
func (f *fleet) blocked(s *server) Why {
	since := s.rec.Since
	b := f.bmcBy[s.rec.BMC]
	if name, _ := s.requested(); name == model.OperationIgnore {
		return Why{model.ReasonIgnored, "suspended by annotation " + model.AnnotationOperation + ": ignore", since, RackOperator}
	}
	switch {
	case b == nil:
		return f.orphaned(s)
	case b.why.Reason != "":
		return b.why
	}
	as := shownAs(b.facts, s.rec)
	b.lacks = b.lacks || as != shownItself || s.reading.mistaken()
	if s.reading.mistaken() && s.reading.Since.After(f.in.BMCRead[b.name]) {
		b.swapped = true
	}
	switch as {
	case shownNothing:
		return Why{model.ReasonSystemMissing, fmt.Sprintf("its BMC no longer shows system %s", s.rec.SystemURI), since, RackOperator}
	case shownUnread:
		return Why{model.ReasonSystemUnreadable, fmt.Sprintf("its BMC lists system %s, and shows nothing of it that can be read", s.rec.SystemURI), since, RackOperator}
	case shownUnnamed:
		return Why{model.ReasonIdentityUnknown, fmt.Sprintf("its BMC now shows a machine without a UUID, which may be another one than %s", s.rec.UUID), since, RackOperator}
	case shownOther:
		return Why{model.ReasonIdentityMismatch, fmt.Sprintf("its BMC now shows another machine than that with UUID %s", s.rec.UUID), since, RackOperator}
	case shownItself:
	}
	return Why{}
}

// orphaned says why a server is left as it is whose BMC is described no more.
func (f *fleet) orphaned(s *server) Why {
	why := Why{model.ReasonOrphaned, "its BMC " + string(s.rec.BMC) + " is not in Git, so it is left as it is", s.rec.Since, RackOperator}
	if v := f.endpointBy[string(s.rec.BMC)]; v != nil && v.by != "" {
		why.Message = fmt.Sprintf("BMC %s in Git describes the device that was BMC %s by itself: the server is taken over once that BMC shows it", v.by, s.rec.BMC)
	}
	return why
}

// count notes what a server takes of what the fleet shares.
func (f *fleet) count(s *server) {
	if a := s.rec.Asked; s.settling() || f.in.Busy[s.name] && a != nil && a.Want == model.PowerOn && a.At.After(s.reading.At) {
		f.powerOns--
	}
	if s.rec.Reprovision != "" && (s.rec.Installed == "" || f.in.Busy[s.name]) && s.rec.State == model.StateReserved {
		f.reprovisions--
	}
}

// mistrustOld has nothing done while the revision in force is one kept over a
// restart that is not the one last acted upon: it may lack claims that are bound.
func (f *fleet) mistrustOld() {
	if why := cmp.Or(f.in.ObserveOnly, f.in.HealOnly); why != "" {
		f.observeOnly = Why{model.ReasonObserveOnly, why, f.in.Started, RackOperator}
	}
	if f.outdated() {
		f.observeOnly = Why{
			model.ReasonRevisionOutdated, fmt.Sprintf("Git has not been read since the restart, and revision %s was acted upon after the one that was kept", f.record.Applied.Revision().Short()),
			f.record.At, RackOperator,
		}
	}
}

// noteRevision counts revisions: claims are served in the order of the count.
func (f *fleet) noteRevision() {
	if f.record.Applied == f.in.Desired.Applied() || f.observeOnly.Reason != "" || f.renameWaits() {
		return
	}
	f.record.Applied, f.record.At = f.in.Desired.Applied(), f.in.Now
	f.record.Sequence++
}

// planClaims notes claims seen for the first time and drops records of claims gone.
func (f *fleet) planClaims(r *Result) {
	if f.observeOnly.Reason != "" {
		return
	}
	known := f.in.Observed.Claims
	for name := range f.in.Desired.Claims {
		if known[name] == nil {
			r.Decided.Claims = append(r.Decided.Claims, f.claimRecord(name))
		}
	}
	slices.SortFunc(r.Decided.Claims, func(a, b *model.ClaimRecord) int { return cmp.Compare(a.Name, b.Name) })
	for name := range known {
		if f.in.Desired.Claims[name] == nil && f.served[name] == "" && !f.untrusted(name) {
			r.Decided.DropClaims = append(r.Decided.DropClaims, name)
		}
	}
	slices.Sort(r.Decided.DropClaims)
}

// claimRecord is the claim's record, made now for one that is new.
func (f *fleet) claimRecord(name model.ClaimName) *model.ClaimRecord {
	if rec := f.in.Observed.Claims[name]; rec != nil {
		return rec
	}
	if old := f.in.Observed.Claims[f.formerName(name)]; old != nil {
		rec := *old // its turn is that of the claim that it was
		rec.Name, rec.Version = name, model.Version{}
		return &rec
	}
	return &model.ClaimRecord{Name: name, Sequence: f.record.Sequence, FirstRevision: f.in.Desired.Revision, FirstSeen: f.in.Now}
}

// untrusted reports whether a claim's absence from Desired is no deletion.
func (f *fleet) untrusted(name model.ClaimName) bool {
	return f.in.Desired.Quarantined[name.Identity()]
}

// mayHide reports whether an object of this kind may stand in Git though Desired
// has none: an object of that name, or any if name is "", is quarantined.
func (f *fleet) mayHide(kind model.Kind, name string) bool {
	for id := range f.in.Desired.Quarantined {
		if id.Kind == kind && (name == "" || id.Name == name) {
			return true
		}
	}
	return false
}

func (f *fleet) loadMaintenances() {
	for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Maintenances)) {
		m := f.in.Desired.Maintenances[name]
		why := "under ServerMaintenance " + name
		if m.Spec.Reason != "" {
			why += ": " + m.Spec.Reason
		}
		if server := f.resolve(m.Spec.ServerRef.Name); f.mayMaintain(m, server) {
			f.maintained[server] = maintained{name, why}
		}
	}
}

// maintained is what takes a server out of service.
type maintained struct {
	by  string // the ServerMaintenance, or OperationPark
	why string
}

// maintenance is what Git takes a server out of service by; by is "" when nothing does.
func (f *fleet) maintenance(s *server) maintained {
	if m, ok := f.maintained[s.name]; ok {
		return m
	}
	if name, _ := s.requested(); name == model.OperationPark {
		return maintained{model.OperationPark, "parked by annotation " + model.AnnotationOperation + ": park"}
	}
	return maintained{}
}

// resolve is the name by which Ingot knows the server that Git calls name.
func (f *fleet) resolve(name string) model.ServerName {
	if known, ok := f.aliases[name]; ok {
		return known
	}
	return model.ServerName(name)
}

// sameFleet reports whether two records of the fleet say the same.
func sameFleet(a, b *model.FleetRecord) bool {
	return a.Applied == b.Applied && a.Sequence == b.Sequence &&
		slices.EqualFunc(a.Holds, b.Holds, sameHold) && slices.Equal(a.ApprovedSteps, b.ApprovedSteps) && slices.Equal(a.Done, b.Done) &&
		slices.Equal(a.Absent, b.Absent) && a.AbsentMore == b.AbsentMore && a.AbsentToken == b.AbsentToken &&
		slices.Equal(a.Removed, b.Removed) && slices.Equal(a.Unreadable, b.Unreadable) &&
		a.Unknown.Equal(b.Unknown) && a.UnknownToken == b.UnknownToken
}
