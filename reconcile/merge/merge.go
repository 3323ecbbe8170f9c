package merge

import (
	"fmt"
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
		differ:  m.contradict, take: m.serverOfBranch, join: m.joinServers, alone: m.serverOfStoreAlone, alike: m.serverOfBoth,
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

// token is a token that nobody can know before it is published.
func (m *merger) token(of ...string) string {
	return plan.Token(m.in.Seed, strings.Join(of, "\x00"), plan.TokenLength)
}
