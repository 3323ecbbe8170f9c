package merge

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/report"
)

// Input is what is known of the records at a start or a take-over.
type Input struct {
	// Store is what the store holds, joined with what this process knows by itself, and
	// Published what of it was on the status branch.
	Store     *model.Records
	Published model.Published
	// StoreUnreadable are the records that are in the store but cannot be read there.
	StoreUnreadable []report.RecordName
	// Branch is what the status branch says, nil when there is none.
	Branch *report.BranchRecords
	Now    time.Time
	// Seed is fresh for each merge, and nobody can guess it: tokens are made of it.
	Seed string
}

// Result is what the newest records are.
type Result struct {
	// Records are those that the store does not hold as they are, with their versions as
	// they stand, and the fleet's in any case. They belong into one commit.
	Records model.Records
	// Published is what the store is to hold, in the same commit.
	Published model.Published
	// Events are for people, in a stable order.
	Events []Event
}

// Reason is what a merge found.
type Reason string

// What a merge may find.
const (
	FromStatusBranch    Reason = "FromStatusBranch"    // the branch had the newer copy
	Disputed            Reason = "Disputed"            // neither copy is known to be the newer
	StatusBranchSetBack Reason = "StatusBranchSetBack" // it lacks what it showed before
	RecordUnreadable    Reason = "RecordUnreadable"    // no copy can be read
)

// Event is one thing that a merge found.
type Event struct {
	Reason  Reason
	Object  report.RecordName // zero when it is about the whole
	Message string
}

// Where a copy of a record is from, in Alternative.From.
const (
	fromStore  = "store"
	fromBranch = "status branch"
	// fromNobody is an alternative that no copy says: to have the server wiped.
	fromNobody = "neither"
)

// Records takes of each record the newest copy. A copy in the store and one on the status
// branch that were both changed since the two parted are of two Ingots that did not know
// of each other: then the higher version is taken, with all that was handled in either,
// and a server on whose state or claim they disagree is Disputed. Merging again what was
// merged changes nothing.
func Records(in Input) Result {
	m := newMerger(in)
	m.behind = m.setBack()
	m.outdated = !m.behind && m.branch.Version.After(in.Store.Newest()) && m.branch.Version.After(in.Published.Version)
	servers := mergeKind(m, report.RecordServer, in.Store.Servers, m.branch.Servers, copies[model.ServerRecord]{
		version: func(r *model.ServerRecord) model.Version { return r.Version },
		differ:  m.contradict, take: m.serverOfBranch, join: m.joinServers, keep: m.serverOfStore, alone: m.serverOfStoreAlone, alike: m.serverOfBoth,
	})
	m.settleClaims(servers)
	m.result.Records.Servers = changed(in.Store.Servers, servers)
	m.result.Records.BMCs = mergePlain(m, report.RecordBMC, in.Store.BMCs, m.branch.BMCs,
		func(r *model.BMCRecord) model.Version { return r.Version })
	m.result.Records.Claims = mergePlain(m, report.RecordClaim, in.Store.Claims, m.branch.Claims,
		func(r *model.ClaimRecord) model.Version { return r.Version })
	m.result.Records.Endpoints = mergePlain(m, report.RecordEndpoint, in.Store.Endpoints, m.branch.Endpoints,
		func(r *model.EndpointRecord) model.Version { return r.Version })
	m.result.Records.Fleet = m.mergeFleet()
	m.result.Published = in.Published
	if !m.behind && m.branch.Version.After(in.Published.Seen) {
		m.result.Published.Seen = m.branch.Version
	}
	return m.result
}

// merger is one merge under way.
type merger struct {
	in     Input
	branch *report.BranchRecords // never nil
	result Result
	// behind is set when the branch lacks what it is known to have shown.
	behind bool
	// outdated is set when the store is an older one: all of it was written before the
	// newest record of the branch.
	outdated bool
	// shown is, by fencing number, the newest write of that leader that the branch shows:
	// each publication is of the whole store, so it has all of the leader's before that.
	shown map[uint64]uint64
	// lost are the records that one of the two has and cannot read.
	lostHere, lostThere map[report.RecordName]bool
	// unread are the servers of which no copy of the record can be read.
	unread []model.ServerName
}

func newMerger(in Input) *merger {
	m := &merger{
		in: in, branch: in.Branch, shown: make(map[uint64]uint64),
		lostHere: make(map[report.RecordName]bool), lostThere: make(map[report.RecordName]bool),
	}
	if m.branch == nil {
		m.branch = &report.BranchRecords{}
	}
	for _, v := range append(m.branch.Versions(), m.branch.Version) {
		m.shown[v.Fence] = max(m.shown[v.Fence], v.Seq)
	}
	for _, name := range in.StoreUnreadable {
		if name.Kind == report.RecordFleet {
			name.Name = ""
		}
		m.lostHere[name] = true
	}
	for _, path := range m.branch.Unreadable {
		if name, ok := report.RecordAt(path); ok {
			m.lostThere[name] = true
		}
	}
	return m
}

func (m *merger) tell(reason Reason, object report.RecordName, format string, args ...any) {
	m.result.Events = append(m.result.Events, Event{reason, object, fmt.Sprintf(format, args...)})
}

// setBack reports whether the branch lacks what it is known to have shown: it was
// deleted, rewritten, or set back to an older commit. Its records are older then, and
// are taken only where the store has none.
func (m *merger) setBack() bool {
	p := m.in.Published
	if p.Commit == "" || m.in.Branch != nil && m.branch.Fence >= p.Fence && !p.Version.After(m.branch.Version) {
		return false
	}
	found := "it does not exist"
	if m.in.Branch != nil {
		found = fmt.Sprintf("its head %.12s has version %s", m.branch.Head, m.branch.Version)
	}
	m.tell(StatusBranchSetBack, report.RecordName{}, "the status branch showed version %s with commit %.12s, and now %s: what the store holds is kept, and published again",
		p.Version, p.Commit, found)
	return true
}

// verdict is what becomes of two copies of a record.
type verdict int

const (
	keepStore verdict = iota
	takeBranch
	parted // both were changed, and neither is made from the other
)

func (m *merger) judge(store, branch model.Version) verdict {
	switch {
	case m.partedAt(store, branch):
		return parted
	case branch.After(store):
		return takeBranch
	}
	return keepStore
}

// partedAt reports whether a record was changed here since the last publication, and
// elsewhere, too, since that and since the two were merged.
func (m *merger) partedAt(store, branch model.Version) bool {
	p := m.in.Published
	return store != branch && store.After(p.Version) && branch.After(p.Version) && branch.After(p.Seen) && m.foreign() && !m.sameLine(store, branch)
}

// foreign reports whether another wrote the branch than the last that published from
// this store.
func (m *merger) foreign() bool {
	p := m.in.Published
	return m.branch.Fence != p.Fence || m.branch.Holder.ID != "" && m.branch.Holder.ID != p.Holder.ID
}

// sameLine reports whether of two copies one was made from the other, although the
// branch's writer is not the one that the store knows: after an older copy of the store
// was put back, or when a leader was killed before it noted its first push. A fencing
// number is one leader's, who wrote to one store: where its writes are seen, what it
// wrote before them was seen too.
func (m *merger) sameLine(store, branch model.Version) bool {
	p := m.in.Published
	if store.Fence == m.branch.Fence && p.Fence == m.branch.Fence {
		return false // two leaders had the number
	}
	return store.Fence == branch.Fence || store.Fence == m.branch.Fence || store.Seq <= m.shown[store.Fence]
}

// copies says how copies of records of one kind are merged.
type copies[R any] struct {
	version func(*R) model.Version
	differ  func(store, branch *R) bool // of two copies of one version: they contradict each other
	keep    func(store *R) *R
	alone   func(store *R) *R // keep, of a record that the branch lacks; nil = keep
	alike   func(store *R) *R // keep, of one that the branch has in the same version; nil = keep
	take    func(branch *R) *R
	join    func(store, branch *R) *R
}

// mergePlain merges records of which the newer is taken, whoever wrote it.
func mergePlain[N ~string, R any](m *merger, kind report.RecordKind, store, branch map[N]*R, version func(*R) model.Version) map[N]*R {
	itself := func(r *R) *R { return r }
	return changed(store, mergeKind(m, kind, store, branch, copies[R]{
		version: version,
		differ:  func(_, _ *R) bool { return false },
		keep:    itself, take: itself,
		join: func(s, b *R) *R {
			if version(b).After(version(s)) {
				return b
			}
			return s
		},
	}))
}

// mergeKind merges all records of one kind. What it returns shares what did not change
// with the store.
func mergeKind[N ~string, R any](m *merger, kind report.RecordKind, store, branch map[N]*R, by copies[R]) map[N]*R {
	all := make(map[N]*R, max(len(store), len(branch)))
	names := make(map[N]bool, len(all))
	for _, of := range []map[N]*R{store, branch} {
		for name := range of {
			names[name] = true
		}
	}
	for _, lost := range []map[report.RecordName]bool{m.lostHere, m.lostThere} {
		for name := range lost {
			if name.Kind == kind && name.Name != "" {
				names[N(name.Name)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if rec := mergeOne(m, report.RecordName{Kind: kind, Name: string(name)}, store[name], branch[name], by); rec != nil {
			all[name] = rec
		}
	}
	return all
}

// mergeOne merges the copies of one record, either of which may be nil.
func mergeOne[R any](m *merger, name report.RecordName, store, branch *R, by copies[R]) *R {
	switch {
	case store == nil && branch == nil:
		m.unreadable(name)
		return nil
	case branch == nil && by.alone != nil:
		return by.alone(store)
	case branch == nil:
		return by.keep(store)
	case store == nil:
		m.tell(FromStatusBranch, name, "%s, so it is taken from the status branch as of version %s", m.lack(name), by.version(branch))
		return by.take(branch)
	}
	s, b := by.version(store), by.version(branch)
	v := m.judge(s, b)
	switch {
	case v == parted || s == b && by.differ(store, branch) && !m.behind:
		return by.join(store, branch)
	case s == b && by.alike != nil:
		return by.alike(store)
	case v == takeBranch:
		m.tell(FromStatusBranch, name, "the store has it as of version %s, the status branch as of %s, which is newer", s, b)
		return by.take(branch)
	}
	return by.keep(store)
}

// lack says why the store has no copy.
func (m *merger) lack(name report.RecordName) string {
	if m.lostHere[name] {
		return "its record in the store cannot be read"
	}
	return "the store has no record of it"
}

func (m *merger) unreadable(name report.RecordName) {
	m.tell(RecordUnreadable, name, "its record can be read neither from the store nor from the status branch")
	if name.Kind == report.RecordServer {
		m.unread = append(m.unread, model.ServerName(name.Name))
	}
}

// changed are the merged records that the store does not hold as they are.
func changed[N ~string, R any](store, merged map[N]*R) map[N]*R {
	out := make(map[N]*R)
	for name, rec := range merged {
		if store[name] != rec {
			out[name] = rec
		}
	}
	return out
}

// token is a token that nobody can know before it is published.
func (m *merger) token(of ...string) string {
	return plan.Token(m.in.Seed, strings.Join(of, "\x00"), plan.TokenLength)
}

// mergeFleet merges the fleet's record, and notes in it what was found of the others.
func (m *merger) mergeFleet() model.FleetRecord {
	rec := m.in.Store.Fleet
	if m.anyKnown() {
		itself := func(r *model.FleetRecord) *model.FleetRecord { return r }
		merged := mergeOne(m, report.RecordName{Kind: report.RecordFleet}, knownFleet(&rec), knownFleet(&m.branch.Fleet), copies[model.FleetRecord]{
			version: func(r *model.FleetRecord) model.Version { return r.Version },
			differ:  func(s, _ *model.FleetRecord) bool { return s.Version.IsZero() },
			keep:    itself, take: itself, join: m.joinFleets,
		})
		if merged != nil {
			rec = *merged
		}
	}
	// Claims that come are behind those that came before.
	for _, claims := range []map[model.ClaimName]*model.ClaimRecord{m.in.Store.Claims, m.result.Records.Claims} {
		for _, c := range claims {
			rec.Sequence = max(rec.Sequence, c.Sequence)
		}
	}
	rec.Unreadable = joinUnreadable(rec.Unreadable, unreadableRecords(m.unread, m.branch.Serves, m.in.Now, m.in.Seed))
	return rec
}

// anyKnown reports whether there is a record of anything, though perhaps no copy of it
// can be read. There is none at the very first start.
func (m *merger) anyKnown() bool {
	return knownFleet(&m.in.Store.Fleet) != nil || knownFleet(&m.branch.Fleet) != nil ||
		len(m.in.Store.Versions())+len(m.branch.Versions()) > 2 || // the fleets' are always there
		len(m.lostHere)+len(m.lostThere) > 0
}

// knownFleet is a copy of the fleet's record, nil if there is none.
func knownFleet(r *model.FleetRecord) *model.FleetRecord {
	if reflect.ValueOf(*r).IsZero() {
		return nil
	}
	return r
}

// joinFleets joins what two Ingots decided that did not know of each other: the newer's,
// with the disruptions, the absences and the unreadable records of both.
func (m *merger) joinFleets(s, b *model.FleetRecord) *model.FleetRecord {
	newer, older := *s, b
	if b.Version.After(s.Version) {
		m.tell(FromStatusBranch, report.RecordName{Kind: report.RecordFleet}, "the store has it as of version %s, the status branch as of %s: both were changed since they parted, and are joined", s.Version, b.Version)
		newer, older = *b, s
	}
	newer.Sequence = max(newer.Sequence, older.Sequence)
	newer.Done = joinDone(newer.Done, older.Done)
	m.joinAbsent(&newer, older)
	newer.Unreadable = joinUnreadable(newer.Unreadable, older.Unreadable)
	return &newer
}

func joinDone(to, from []model.Disruption) []model.Disruption {
	more := slices.DeleteFunc(slices.Clone(from), func(d model.Disruption) bool {
		return slices.ContainsFunc(to, func(e model.Disruption) bool { return d.Same(e) && d.At.Equal(e.At) })
	})
	if len(more) == 0 {
		return to
	}
	all := append(slices.Clone(to), more...)
	slices.SortStableFunc(all, func(a, b model.Disruption) int { return a.At.Compare(b.At) })
	return all[max(0, len(all)-plan.MaxDone):]
}

// joinAbsent adds the absences of another record. A list that grew is not the one that
// was shown with its token, so it has a new one.
func (m *merger) joinAbsent(to, from *model.FleetRecord) {
	have := make(map[model.Identity]bool, len(to.Absent))
	for _, a := range to.Absent {
		have[a.Identity] = true
	}
	var more []model.Absence
	for _, a := range from.Absent {
		if !have[a.Identity] {
			more = append(more, a)
		}
	}
	if len(more) == 0 {
		return
	}
	fit := max(0, min(len(more), model.MaxAbsent-len(to.Absent)))
	if fit == 0 && to.AbsentMore >= len(more) {
		return // they are counted already, as far as can be told
	}
	to.Absent = append(slices.Clone(to.Absent), more[:fit]...)
	slices.SortFunc(to.Absent, func(a, b model.Absence) int {
		return cmp.Compare(a.Identity.String(), b.Identity.String())
	})
	to.AbsentMore = max(to.AbsentMore, len(more)-fit)
	to.AbsentToken = m.token("absent")
}

// unreadableRecords lists servers of which no copy of the record can be read, each with
// the claim that it serves by claims. The tokens are made of seed, which nobody can guess.
func unreadableRecords(servers []model.ServerName, claims map[model.ServerName]model.ClaimName, now time.Time, seed string) []model.UnreadableRecord {
	all := make([]model.UnreadableRecord, len(servers))
	for i, name := range servers {
		all[i] = model.UnreadableRecord{
			Server: name, Claim: claims[name], Since: now, Token: plan.Token(seed, "unreadable\x00"+string(name), plan.TokenLength),
		}
	}
	return all
}

// joinUnreadable adds to a list the servers that another lists too. One that both list
// keeps its token: people may have read it already.
func joinUnreadable(to, from []model.UnreadableRecord) []model.UnreadableRecord {
	listed := make(map[model.ServerName]bool, len(to))
	for _, u := range to {
		listed[u.Server] = true
	}
	all := slices.Clip(to)
	for _, u := range from {
		if !listed[u.Server] {
			all = append(all, u)
		}
	}
	return all
}
