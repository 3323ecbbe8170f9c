package query

import (
	"slices"
	"strings"
)

// Result is one page of the rows that a query takes.
type Result[R any] struct {
	Items []R `json:"items"`
	Total int `json:"total"` // rows on all pages
	Page  int `json:"page"`  // from 1; one beyond the last has no rows
	Pages int `json:"pages"` // at least 1
	Limit int `json:"limit"` // rows of a page
}

// Select answers a query. The rows are sorted by name, and stay as they are.
func (l List[R]) Select(rows []R, q Query) Result[R] {
	taken := l.Matching(rows, q)
	l.sort(taken, q.Orders)
	r := Result[R]{Total: len(taken), Page: max(q.Page, 1), Limit: q.Limit}
	if r.Limit < 1 {
		r.Limit = DefaultLimit
	}
	r.Pages = max((r.Total+r.Limit-1)/r.Limit, 1)
	from := min((r.Page-1)*r.Limit, r.Total)
	r.Items = slices.Clip(taken[from:min(from+r.Limit, r.Total)])
	return r
}

// Matching are all rows that a query takes, on whichever page and in the order of names, in a
// list of its own.
func (l List[R]) Matching(rows []R, q Query) []R {
	taken := make([]R, 0, len(rows))
	takes := l.predicates(q)
	for _, row := range rows {
		if !slices.ContainsFunc(takes, func(take func(R) bool) bool { return !take(row) }) {
			taken = append(taken, row)
		}
	}
	return taken
}

// predicates are what a row has to meet, the cheapest first.
func (l List[R]) predicates(q Query) []func(R) bool {
	var all []func(R) bool
	for _, f := range q.Filters {
		if on := l.field(f.Field); on != nil {
			all = append(all, func(row R) bool { return f.takes(on.text(row)) })
		}
	}
	if q.Labels.String() != "" {
		all = append(all, func(row R) bool { return q.Labels.Matches(l.common(row).Labels) })
	}
	if q.Search != "" {
		part := strings.ToLower(q.Search)
		all = append(all, func(row R) bool { return strings.Contains(l.common(row).text, part) })
	}
	return all
}

// takes reports whether the filter takes a value.
func (f *Filter) takes(value string) bool {
	has := slices.ContainsFunc(f.Values, func(want string) bool {
		return strings.EqualFold(value, want) || want == None && value == ""
	})
	return has != f.Not
}

// sort sorts rows, which are in the order of names. Rows with nothing in a field are behind
// the others, whichever way round.
func (l List[R]) sort(rows []R, by []Order) {
	if len(by) == 0 {
		return
	}
	on := make([]*field[R], len(by))
	for i := range by {
		on[i] = l.field(by[i].Field)
	}
	slices.SortStableFunc(rows, func(a, b R) int {
		for i, f := range on {
			if f == nil {
				continue
			}
			if c := f.ordered(a, b, by[i].Down); c != 0 {
				return c
			}
		}
		return 0
	})
}

// ordered compares two rows as a list shows them.
func (f *field[R]) ordered(a, b R, down bool) int {
	x, y := f.none(a), f.none(b)
	switch {
	case x && y:
		return 0
	case x:
		return 1
	case y:
		return -1
	}
	c := f.compare(a, b)
	if down {
		return -c
	}
	return c
}
