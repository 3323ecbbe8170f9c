package query

import (
	"maps"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/report"
)

// shelf keeps the rows of one list from one report to the next.
type shelf[R any] struct {
	list    List[R]
	kindOf  func(R) string // of its changes
	rows    []R            // sorted by name, shared with who was given them
	entries map[string]*entry[R]

	// Of the report that is being taken in:
	round   uint64
	met     int
	changed []*entry[R] // whose rows are others, and where they were
	gone    []R
	moved   bool // rows came or went
}

// entry is one object: what its row was made of, and where the row is.
type entry[R any] struct {
	doc      *model.Document
	manifest *model.Meta // nil where it does not stand in Git
	row      R
	shown    bool // it has a row
	at       int  // of the row in the list
	round    uint64
}

func newShelf[R any](l List[R], kindOf func(R) string) shelf[R] {
	return shelf[R]{list: l, kindOf: kindOf, entries: make(map[string]*entry[R]), round: 1}
}

// take takes in one document, for whose row make adds what is the list's own.
func (s *shelf[R]) take(path string, doc *model.Document, manifest *model.Meta, make func(Common) R) {
	e := s.entries[path]
	if e == nil {
		e = &entry[R]{}
		s.entries[path] = e
	}
	e.round = s.round
	s.met++
	if e.doc == doc && e.manifest == manifest {
		return
	}
	was, before := e.shown, e.row
	c, shown := commonOf(doc.Object.(*report.Document), manifest)
	e.doc, e.manifest, e.shown = doc, manifest, shown
	if shown {
		e.row = s.list.Ready(make(c))
	}
	s.moved = s.moved || was != shown
	switch {
	case shown:
		s.changed = append(s.changed, e)
	case was:
		s.gone = append(s.gone, before)
	}
}

// finish makes the list of what was taken in, and returns what changed in it.
func (s *shelf[R]) finish() (changes []Change) {
	if s.met < len(s.entries) {
		maps.DeleteFunc(s.entries, func(_ string, e *entry[R]) bool {
			gone := e.round != s.round
			if gone && e.shown {
				s.moved, s.gone = true, append(s.gone, e.row)
			}
			return gone
		})
	}
	for _, e := range s.changed {
		c := s.list.common(e.row)
		changes = append(changes, Change{Kind: s.kindOf(e.row), Name: c.Name, State: c.State})
	}
	for _, row := range s.gone {
		changes = append(changes, Change{Kind: s.kindOf(row), Name: s.list.common(row).Name, Gone: true})
	}
	switch {
	case s.moved:
		s.arrange()
	case len(s.changed) > 0:
		s.rows = slices.Clone(s.rows)
		for _, e := range s.changed {
			s.rows[e.at] = e.row
		}
	}
	s.round++
	s.met, s.changed, s.gone, s.moved = 0, nil, nil, false
	return changes
}

// arrange sorts all rows anew.
func (s *shelf[R]) arrange() {
	shown := make([]*entry[R], 0, len(s.entries))
	for _, e := range s.entries {
		if e.shown {
			shown = append(shown, e)
		}
	}
	slices.SortFunc(shown, func(a, b *entry[R]) int {
		return text.CompareNatural(s.list.common(a.row).Name, s.list.common(b.row).Name)
	})
	s.rows = make([]R, len(shown))
	for i, e := range shown {
		s.rows[i], e.at = e.row, i
	}
}
