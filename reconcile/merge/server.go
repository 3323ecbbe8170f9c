package merge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/report"
)

// Limits of what a merge keeps of one server.
const (
	// maxJoined is how many values that were handled before are kept of both copies.
	maxJoined = 2 * plan.MaxHandled
	// maxAlternatives is how many alternatives a Disputed server has.
	maxAlternatives = 8
)

// contradict reports whether two copies disagree on what is to be done with the server.
func (m *merger) contradict(store, branch *model.ServerRecord) bool {
	return store.Settled() != branch.Settled() || store.Claim != branch.Claim
}

// serverOfStoreAlone is a server that the branch has no copy of that can be read. If the
// store is an older one, its copy may be older than the one that is lost.
func (m *merger) serverOfStoreAlone(rec *model.ServerRecord) *model.ServerRecord {
	if !m.outdated {
		return rec
	}
	c := *rec
	says := m.alternatives(rec, fromStore)
	if claim := m.branch.Serves[rec.Name]; claim != "" {
		says = append(slices.Clip(says), m.alternative(rec, fromBranch, model.StateReserved, claim))
	}
	says = append(slices.Clip(says), m.alternative(rec, fromNobody, model.StateCleanup, ""))
	if !m.dispute(&c, says) {
		return rec
	}
	return &c
}

// serverOfBoth is a server whose copies are the same. If the store is an older one, what
// came after them may be lost.
func (m *merger) serverOfBoth(rec *model.ServerRecord) *model.ServerRecord {
	if !m.outdated || rec.Doubt != nil {
		return rec
	}
	m.tell(FromStatusBranch, report.RecordName{Kind: report.RecordServer, Name: string(rec.Name)}, "the store is an older one, so what came after version %s may be lost", rec.Version)
	return m.serverOfBranch(rec)
}

// serverOfBranch is a server that the store lacks, or has an older copy of. What the
// branch does not show may have happened: a wipe that was begun is begun anew, the answer to a
// power operation is not known, and what a maintenance switches on once may have been switched off
// since by somebody who works in it.
func (m *merger) serverOfBranch(branch *model.ServerRecord) *model.ServerRecord {
	c := *branch
	if c.Settled() == model.StateCleanup && c.Ticket.Open() {
		ended := *c.Ticket
		ended.Ended = model.TicketSpent
		c.Ticket, c.Asked = &ended, nil
	}
	if o := c.Operation; o != nil && o.Outcome == "" {
		lost := *o
		lost.Outcome, lost.Message = model.OutcomeUnknown, "the record of it was lost, so it is not known whether it was asked for"
		c.Operation = &lost
	}
	if p := c.MaintenancePower; p != nil && p.Due && p.Want == model.PowerOn {
		c.MaintenancePower = &model.MaintenancePower{Want: p.Want}
	}
	m.doubt(&c, !m.branch.MirrorFirst)
	return &c
}

// doubt has a server doubted for what the branch says. One that is Disputed stays so:
// a person may be about to choose.
func (m *merger) doubt(rec *model.ServerRecord, unannounced bool) {
	d := model.Doubt{
		Reason: model.DoubtFromStatusBranch, Since: m.in.Now,
		Message: "the store lacked its record, or had an older one, so it was read back from the status branch",
	}
	if old := rec.Doubt; old != nil {
		unannounced = unannounced || old.Unannounced
		if old.Reason == model.DoubtDisputed {
			d = *old
		}
	}
	d.Unannounced = unannounced
	rec.Doubt = &d
}

// joinServers joins two copies that were both changed since they parted: the newer, with
// what was handled in either.
func (m *merger) joinServers(store, branch *model.ServerRecord) *model.ServerRecord {
	rec, older := *store, branch
	newer := branch.Version.After(store.Version)
	if newer {
		rec, older = *m.serverOfBranch(branch), store
	}
	added := joinHandled(&rec, older)
	added = joinMissing(&rec, older) || added
	added = joinDisks(&rec, older) || added
	added = joinOperation(&rec, older) || added
	if all := plan.JoinBootstrapped(rec.BootstrapCompleted, older.BootstrapCompleted); len(all) > len(rec.BootstrapCompleted) {
		rec.BootstrapCompleted, added = all, true
	}
	added = joinShownOn(&rec, older) || added
	if strict := model.StricterCleanup(rec.ClaimCleanup, older.ClaimCleanup); strict != rec.ClaimCleanup {
		rec.ClaimCleanup, added = strict, true
	}
	if older.Serial > rec.Serial {
		rec.Serial, added = older.Serial, true
	}
	switch {
	case m.contradict(store, branch) || plan.Disputed(older):
		added = m.dispute(&rec, append(m.alternatives(store, fromStore), m.alternatives(branch, fromBranch)...)) || added
	case rec.Doubt == nil || newer:
		if rec.Doubt == nil {
			m.doubt(&rec, !m.branch.MirrorFirst)
		}
		added = true
		m.tell(FromStatusBranch, report.RecordName{Kind: report.RecordServer, Name: string(rec.Name)}, "the store has it as of version %s, the status branch as of %s: both were changed since they parted, and are joined", store.Version, branch.Version)
	}
	if !added && !newer {
		return store
	}
	return &rec
}

// joinHandled adds the values that were handled in another copy, as older ones.
func joinHandled(to *model.ServerRecord, from *model.ServerRecord) bool {
	var more []string
	add := func(asked, value string) {
		v := asked + "=" + value
		if value != "" && !plan.WasHandled(to, asked, value) && !slices.Contains(more, v) {
			more = append(more, v)
		}
	}
	for _, v := range from.HandledBefore {
		if asked, value, ok := strings.Cut(v, "="); ok && slices.Contains(plan.Asked, asked) {
			add(asked, value)
		}
	}
	for _, asked := range plan.Asked {
		add(asked, *plan.LatestHandled(from, asked))
	}
	room := max(0, maxJoined-len(to.HandledBefore))
	more = more[max(0, len(more)-room):]
	if len(more) == 0 {
		return false
	}
	to.HandledBefore = append(more, to.HandledBefore...)
	return true
}

// joinMissing adds the disks that another copy knows to be missing, unless a person said
// there that they are permanently removed.
func joinMissing(to *model.ServerRecord, from *model.ServerRecord) bool {
	all := to.Missing
	for _, d := range plan.NotAccepted(from.Missing) {
		there := slices.ContainsFunc(all, func(k model.MissingDisk) bool { return plan.SameMissing(k, d) })
		if !there && len(all) < plan.MaxMissing {
			all = append(slices.Clip(all), d)
		}
	}
	added := len(all) > len(to.Missing)
	to.Missing = all
	return added
}

// joinDisks adds the disks that another copy knows of.
func joinDisks(to *model.ServerRecord, from *model.ServerRecord) bool {
	all := plan.JoinDisks(to.Disks, from.Disks)
	added := len(all) > len(to.Disks)
	to.Disks = all
	if to.DisksAt.IsZero() && !from.DisksAt.IsZero() {
		to.DisksAt, added = from.DisksAt, true
	}
	return added
}

// joinShownOn adds what the owner of the same claim approved less of, by another copy.
func joinShownOn(to *model.ServerRecord, from *model.ServerRecord) bool {
	if to.Claim != from.Claim {
		return false
	}
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(to.ShownOn, from.ShownOn))))
	added := len(all) > len(to.ShownOn)
	if added {
		to.ShownOn = all
	}
	return added
}

// joinOperation has an operation that another copy knows more of not asked for again.
func joinOperation(to *model.ServerRecord, from *model.ServerRecord) bool {
	mine, theirs := to.Operation, from.Operation
	if mine == nil || theirs == nil || mine.Value != theirs.Value || knownOf(theirs) <= knownOf(mine) {
		return false
	}
	to.Operation = theirs
	return true
}

// knownOf is how much is known of an operation.
func knownOf(o *model.Operation) int {
	switch {
	case o.Outcome == "" && o.AskedAt.IsZero():
		return 0
	case o.Outcome == "":
		return 1
	case o.Outcome == model.OutcomeUnknown:
		return 2
	}
	return 3
}

// alternatives are what a copy offers to choose: what it says, or what was Disputed in it.
func (m *merger) alternatives(rec *model.ServerRecord, from string) []model.Alternative {
	if plan.Disputed(rec) {
		return rec.Doubt.Alternatives
	}
	return []model.Alternative{m.alternative(rec, from, rec.Settled(), rec.Claim)}
}

func (m *merger) alternative(rec *model.ServerRecord, from string, state model.ServerState, claim model.ClaimName) model.Alternative {
	return model.Alternative{
		Token: m.token("disputed", string(rec.Name), string(state), string(claim)),
		From:  from, State: state, Claim: claim,
	}
}

// dispute has a person choose among alternatives, beside those that rec has already. It
// reports whether that changed anything.
func (m *merger) dispute(rec *model.ServerRecord, alternatives []model.Alternative) bool {
	d := model.Doubt{Reason: model.DoubtDisputed, Since: m.in.Now, Unannounced: !m.branch.MirrorFirst}
	was := plan.Disputed(rec)
	if was {
		d = *rec.Doubt
	}
	all := slices.Clone(d.Alternatives)
	for _, a := range alternatives {
		there := slices.ContainsFunc(all, func(b model.Alternative) bool { return a.State == b.State && a.Claim == b.Claim })
		if !there && len(all) < maxAlternatives {
			all = append(all, a)
		}
	}
	if was && len(all) == len(d.Alternatives) {
		return false
	}
	d.Alternatives, d.Message = all, disputeText(all)
	rec.Doubt = &d
	m.tell(Disputed, report.RecordName{Kind: report.RecordServer, Name: string(rec.Name)}, "%s", d.Message)
	return true
}

// disputeText says what the copies say, and how one of them is chosen.
func disputeText(all []model.Alternative) string {
	says := make([]string, len(all))
	for i, a := range all {
		says[i] = fmt.Sprintf("%s: %s", a.From, a.State)
		if a.Claim != "" {
			says[i] += " for " + string(a.Claim)
		}
		says[i] += fmt.Sprintf(" (%s)", a.Token)
	}
	return "its records contradict each other, so nothing is done to it until a commit says which one holds, by the trailer Ingot-Approve with the token: " + strings.Join(says, "; ")
}

// settleClaims finds claims that more than one server has, and disputes those servers. One that is
// taken from its claim has it no more.
func (m *merger) settleClaims(servers map[model.ServerName]*model.ServerRecord) {
	by := make(map[model.ClaimName][]model.ServerName)
	for name, rec := range servers {
		if rec.Claim != "" && !rec.ReleaseDecided() {
			by[rec.Claim] = append(by[rec.Claim], name)
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(by)) {
		if len(by[claim]) < 2 {
			continue
		}
		slices.Sort(by[claim])
		for _, name := range by[claim] {
			servers[name] = m.contested(servers[name])
		}
	}
}

// contested is a server whose claim another one has too. If nothing else is to be chosen
// than that it keeps the claim, then it can be chosen to have it wiped.
func (m *merger) contested(rec *model.ServerRecord) *model.ServerRecord {
	c := *rec
	from := fromStore
	if b := m.branch.Servers[c.Name]; b != nil && b.Version == c.Version && m.in.Store.Servers[c.Name] != rec {
		from = fromBranch
	}
	says := m.alternatives(&c, from)
	if !slices.ContainsFunc(says, func(a model.Alternative) bool { return a.Claim != c.Claim }) {
		says = append(slices.Clip(says), m.alternative(&c, fromNobody, model.StateCleanup, ""))
	}
	if !m.dispute(&c, says) {
		return rec
	}
	return &c
}
