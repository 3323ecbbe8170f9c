package merge

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/report"
)

// mergeFleet merges the fleet's record, and notes in it what was found of the others.
func (m *merger) mergeFleet() model.FleetRecord {
	rec := m.in.Store.Fleet
	if m.anyKnown() {
		merged := mergeOne(m, report.RecordName{Kind: report.RecordFleet}, knownFleet(&rec), knownFleet(&m.branch.Fleet), copies[model.FleetRecord]{
			version: func(r *model.FleetRecord) model.Version { return r.Version },
			differ:  func(s, _ *model.FleetRecord) bool { return s.Version.IsZero() },
			take:    func(r *model.FleetRecord) *model.FleetRecord { return r },
			join:    m.joinFleets,
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
