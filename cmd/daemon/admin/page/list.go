package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"ingot/model/text"
	"ingot/reconcile/report"
)

const (
	maxRows = 1000 // of a page
	maxText = 500  // bytes of a parameter
)

// list is one list of the fleet. Its template has the columns after those that all lists have.
type list struct {
	name, title string
	api         string
	states      []string
	isDocuments bool
	isDated     bool
	rows        func(v *view) []row
}

func lists() []list {
	devices := []string{report.EndpointAwaited, report.EndpointRecognised, report.EndpointUnrecognised, report.EndpointLost}
	leases := []string{report.LeaseLive, report.LeaseEnded, report.LeaseDeclined}
	return []list{
		{"servers", "Servers", "servers", serverStates(), true, true, func(v *view) []row { return documents(v.docs.List(report.Servers)) }},
		{"claims", "Claims", "serverclaims", report.ClaimStates(), true, true, func(v *view) []row { return documents(v.docs.ClaimsInGit()) }},
		{"bmcs", "BMCs", "bmcs", report.BMCStates(), true, true, func(v *view) []row { return documents(v.docs.List(report.BMCs)) }},
		{"endpoints", "Endpoints", "endpoints", devices, true, true, func(v *view) []row { return documents(v.docs.List(report.Endpoints)) }},
		{"leases", "Leases", "leases", leases, false, true, func(v *view) []row {
			return plain(v.Fleet.Leases(), func(r *report.LeaseRow) report.Row { return r.Row })
		}},
		{"pools", "Pools", "pools", []string{report.PoolHasRoom, report.PoolExhausted}, false, true, func(v *view) []row {
			return plain(v.Fleet.Pools(), func(r *report.PoolRow) report.Row { return r.Row })
		}},
		{"images", "Images", "images", []string{report.ImageComplete, report.ImageFetching}, false, false, func(v *view) []row {
			return plain(v.Fleet.Images(), func(r *report.ImageRow) report.Row { return r.Row })
		}},
		{"problems", "Problems", "fleet", severities(), false, false, func(v *view) []row {
			rows := plain(v.problems(), func(p *problem) report.Row { return report.Row{Name: p.Place.Text, State: string(p.Severity)} })
			slices.SortStableFunc(rows, func(a, b row) int { return text.CompareNatural(a.Name, b.Name) })
			return rows
		}},
	}
}

// row is one row of a list: a document, or an entry of a list without documents.
type row struct {
	report.Row
	Doc      *report.Document
	Overview report.Overview
	Entry    any
}

// documents are the rows of documents. Since is that of the state, or of the first cause of waiting.
func documents(docs []*report.Document) []row {
	rows := make([]row, len(docs))
	for i, d := range docs {
		o := d.Overview()
		since := o.Summary.Since
		if len(o.Waiting) > 0 {
			since = o.Waiting[0].Since
		}
		rows[i] = row{Row: report.Row{Name: d.Name(), State: o.Summary.State, Since: since}, Doc: d, Overview: o}
	}
	return rows
}

func plain[R any](entries []R, common func(*R) report.Row) []row {
	rows := make([]row, len(entries))
	for i := range entries {
		rows[i] = row{Row: common(&entries[i]), Entry: &entries[i]}
	}
	return rows
}

func (r *row) matches(q *query) bool {
	if r.Doc != nil {
		return (q.Q == "" || r.Doc.Matches(q.Q)) && q.selector.Matches(labels.Set(r.Doc.Metadata.Labels))
	}
	return q.Q == "" || strings.Contains(strings.ToLower(fmt.Sprint(r.Entry)), strings.ToLower(q.Q))
}

type query struct {
	Q, Label, State, Sort string
	selector              labels.Selector
}

const (
	byState = "state"
	byName  = "name"
	byAge   = "age"
)

func (l *list) parse(raw string) (*query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("invalid query: %w", err)
	}
	q := &query{selector: labels.Everything()}
	into := map[string]*string{"q": &q.Q, "state": &q.State, "sort": &q.Sort}
	if l.isDocuments {
		into["label"] = &q.Label
	}
	for name, all := range values {
		switch field := into[name]; {
		case field == nil:
			return nil, fmt.Errorf("unknown parameter %.40q: this list has %s", name, strings.Join(slices.Sorted(maps.Keys(into)), ", "))
		case len(all) > 1:
			return nil, fmt.Errorf("parameter %s has several values: only one is allowed", name)
		case len(all[0]) > maxText:
			return nil, fmt.Errorf("parameter %s is longer than %d bytes", name, maxText)
		default:
			*field = strings.TrimSpace(all[0])
		}
	}
	orders := []string{"", byState, byName, byAge}
	if !l.isDated {
		orders = orders[:3]
	}
	if !slices.Contains(orders, strings.TrimPrefix(q.Sort, "-")) {
		return nil, fmt.Errorf("unknown order %.40q: the orders are %s, and - in front reverses them", q.Sort, strings.Join(orders[1:], ", "))
	}
	if q.State != "" && !slices.Contains(l.states, q.State) {
		return nil, fmt.Errorf("unknown state %.40q: the states are %s", q.State, strings.Join(l.states, ", "))
	}
	if q.selector, err = labels.Parse(q.Label); err != nil {
		return nil, fmt.Errorf("invalid label selector: %w; expected one such as rack=r7,owner!=ops", err)
	}
	return q, nil
}

// address is a path with parameters, pairs of a name and a value. Empty values are left out.
func address(path string, parameters ...string) string {
	values := make(url.Values)
	for i := 0; i < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			values.Set(parameters[i], parameters[i+1])
		}
	}
	return strings.TrimSuffix(path+"?"+values.Encode(), "?")
}

func (l *list) address(q query) string {
	return address("/"+l.name, "q", q.Q, "label", q.Label, "state", q.State, "sort", q.Sort)
}

func (p *page) serveList(w http.ResponseWriter, r *http.Request, l *list) {
	v := p.view()
	q, err := l.parse(r.URL.RawQuery)
	if err != nil {
		p.problem(w, r, http.StatusBadRequest, err.Error(), link{"All of the list", "/" + l.name})
		return
	}
	if l.name == "servers" && q.Q != "" && q.Label+q.State+q.Sort == "" {
		if found := v.named(q.Q); found != nil {
			http.Redirect(w, r, toDocument(found).URL, http.StatusSeeOther)
			return
		}
	}
	v.show(w, r, http.StatusOK, l.name, l.title, v.listPage(l, q))
}

// named returns the object with exactly this name, nil if there is none.
func (v *view) named(name string) *report.Document {
	for _, f := range []report.Folder{report.Servers, report.Claims, report.BMCs, report.Endpoints} {
		if o, err := v.docs.Find(f, name); err == nil {
			return o
		}
	}
	return nil
}

type listPage struct {
	*query
	list        *list
	Title, Path string
	API         string
	IsDocuments bool
	States      []stateLink
	Elsewhere   []link // the same search in other lists
	Rows        []row
	Total, More int
}

// stateLink leads to the rows in a state.
type stateLink struct {
	count
	IsChosen bool
}

func (v *view) listPage(l *list, q *query) listPage {
	shown := listPage{query: q, list: l, Title: l.title, Path: "/" + l.name, API: "/api/v1/" + l.api, IsDocuments: l.isDocuments}
	if l.isDocuments {
		shown.API = address(shown.API, "q", q.Q, "labelSelector", q.Label)
	}
	rows := slices.DeleteFunc(l.rows(v), func(r row) bool { return !r.matches(q) })
	shown.States = l.stateLinks(*q, rows)
	if q.State != "" {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.State != q.State })
	}
	l.sort(rows, q.Sort)
	for _, other := range lists() {
		if other.isDocuments && other.name != l.name && q.Q != "" {
			shown.Elsewhere = append(shown.Elsewhere, link{other.title, other.address(query{Q: q.Q})})
		}
	}
	shown.Total, shown.More = len(rows), max(len(rows)-maxRows, 0)
	shown.Rows = rows[:len(rows)-shown.More]
	return shown
}

func (l *list) stateLinks(q query, rows []row) []stateLink {
	chosen := q.State
	q.State = ""
	all := []stateLink{{count{"All", len(rows), l.address(q)}, chosen == ""}}
	for _, st := range l.states {
		n := 0
		for i := range rows {
			if rows[i].State == st {
				n++
			}
		}
		if q.State = st; n > 0 || chosen == st {
			all = append(all, stateLink{count{st, n, l.address(q)}, chosen == st})
		}
	}
	return all
}

// sort sorts rows, which are in the order of their names. Rows without a time are the last by age.
func (l *list) sort(rows []row, order string) {
	order, isReverse := strings.CutPrefix(order, "-")
	if isReverse && order == byName {
		slices.Reverse(rows)
		return
	}
	slices.SortStableFunc(rows, func(a, b row) (c int) {
		switch {
		case order == byState:
			c = cmp.Compare(slices.Index(l.states, a.State), slices.Index(l.states, b.State))
		case order == byAge && a.Since.IsZero() != b.Since.IsZero():
			return b.Since.Compare(a.Since)
		case order == byAge:
			c = b.Since.Compare(a.Since)
		}
		if isReverse {
			return -c
		}
		return c
	})
}

// heading is the heading of a column by which the list can be sorted. Sorted is for aria-sort.
type heading struct{ Title, URL, Sorted string }

// Heading is called by the templates.
func (p listPage) Heading(title, order string) heading {
	q, sorted := *p.query, ""
	switch cmp.Or(q.Sort, byName) {
	case order:
		order, sorted = "-"+order, "ascending"
	case "-" + order:
		sorted = "descending"
	}
	q.Sort = order
	return heading{title, p.list.address(q), sorted}
}
