package merge

import (
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/report"
)

// copies says how copies of records of one kind are merged.
type copies[R any] struct {
	version func(*R) model.Version
	differ  func(store, branch *R) bool // of two copies of one version: they contradict each other
	alone   func(store *R) *R           // of a record that the branch lacks; nil = it is kept
	alike   func(store *R) *R           // of one that the branch has in the same version; nil = it is kept
	take    func(branch *R) *R
	join    func(store, branch *R) *R
}

// mergePlain merges records of which the newer is taken, whoever wrote it.
func mergePlain[N ~string, R any](m *merger, kind report.RecordKind, store, branch map[N]*R, version func(*R) model.Version) map[N]*R {
	return changed(store, mergeKind(m, kind, store, branch, copies[R]{
		version: version,
		differ:  func(_, _ *R) bool { return false },
		take:    func(b *R) *R { return b },
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
		return store
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
	return store
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
