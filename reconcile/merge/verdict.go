package merge

import (
	"ingot/model"
)

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
