package notice

import (
	"slices"
	"time"

	"ingot/reconcile/report"
)

const (
	// keepGone is how long it is remembered that something was told that is so no more: it
	// may come back as if it had never ended, when a store is restored.
	keepGone = 7 * 24 * time.Hour
	// maxGone bounds how many of those are remembered.
	maxGone = 5000
)

// Memory is what a receiver was told. It is kept over restarts.
type Memory struct {
	// Fence is the fencing number of the Ingot that wrote it.
	Fence uint64 `json:"fence"`
	// Told is by the ID of a notice.
	Told map[string]Told `json:"told"`
}

// Told is one notice that a receiver was told of, or need not be told of.
type Told struct {
	report.Notice
	At   time.Time `json:"at,omitzero"`   // when it was told; zero = it was not
	Gone time.Time `json:"gone,omitzero"` // since when it does not stand any more
	// Ended is set when the receiver was told that it ended, or will not be.
	Ended bool `json:"ended,omitempty"`
}

// Begin is called when this Ingot begins to send. A memory that is not the last Ingot's, or
// that is empty, does not know what was told meanwhile: what has stood since before a time
// is then taken for told.
func (m *Memory) Begin(standing []report.Notice, fence uint64, before time.Time) {
	// each lead has a number of its own, one more than that before it
	complete := m.Told != nil && fence <= m.Fence+1
	if m.Told == nil {
		m.Told = make(map[string]Told)
	}
	m.Fence = fence
	if complete {
		return
	}
	for _, n := range standing {
		if _, told := m.Told[n.ID]; !told && n.Since.Before(before) {
			m.Told[n.ID] = Told{Notice: brief(n)}
		}
	}
}

// brief is a notice as it is remembered.
func brief(n report.Notice) report.Notice {
	n.Message = ""
	return n
}

// Look notes what of all that was told stands now, and forgets what ended long ago.
func (m *Memory) Look(standing []report.Notice, now time.Time) {
	stands := make(map[string]bool, len(standing))
	for _, n := range standing {
		stands[n.ID] = true
	}
	var gone []string
	for id, t := range m.Told {
		switch {
		case stands[id]:
			t.Gone = time.Time{}
		case t.Gone.IsZero():
			t.Gone = now
		case now.Sub(t.Gone) >= keepGone:
			delete(m.Told, id)
			continue
		}
		if m.Told[id] = t; !t.Gone.IsZero() {
			gone = append(gone, id)
		}
	}
	if len(gone) <= maxGone {
		return
	}
	slices.SortFunc(gone, func(a, b string) int { return m.Told[a].Gone.Compare(m.Told[b].Gone) })
	for _, id := range gone[:len(gone)-maxGone] {
		delete(m.Told, id)
	}
}

// Note notes that a receiver was told of something, or never will be. New trouble of an
// object takes the place of what it had before: it is told once that both have ended.
func (m *Memory) Note(message Message, now time.Time) {
	about := make(map[subject]bool)
	for _, n := range message.Notices {
		about[troubleOf(n)] = true
	}
	for id, t := range m.Told {
		if !t.Ended && about[troubleOf(t.Notice)] {
			t.Ended = true
			m.Told[id] = t
		}
	}
	if message.Ended {
		return
	}
	for _, n := range message.Notices {
		m.Told[n.ID] = Told{Notice: brief(n), At: now}
	}
}
