package page

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/reconcile/report/query"
)

// maxChoices is how many values of a field a menu offers.
const maxChoices = 50

// pageSizes are the numbers of rows on a page that the form offers.
var pageSizes = []int{25, query.DefaultLimit, 500}

// tablePage is what the page of one list shows.
type tablePage struct {
	Title    string
	Path     string
	Search   string
	Label    string
	Menus    []menu
	Kept     []kept // what else is asked, which the form keeps
	Sizes    []choice
	Columns  []columnView
	Rows     []rowView
	Total    int
	Page     int
	Pages    int
	First    int
	Last     int
	Filtered bool
	Links    pageLinks
	API      string
}

type menu struct {
	Field, Title string
	Choices      []choice
}

type choice struct {
	Value, Text string
	Chosen      bool
}

// kept is a parameter that the form has no field for.
type kept struct{ Name, Value, Without string }

type columnView struct {
	Title, URL string
	Sorted     string // ascending, descending or nothing: aria-sort
	Number     bool
}

type rowView struct{ Cells []cell }

// cell is one cell of a table.
type cell struct {
	link
	State  string // shown as a state
	Class  string
	Time   stamp
	IsTime bool
	Number bool
	Wide   bool // has much text
}

type pageLinks struct{ First, Previous, Next, Last string }

// column is a column of a table: its title, the field that it is sorted by, and its cells.
type column[R any] struct {
	title, field string
	cell         func(v *view, r R) cell
	number       bool
}

// table is a page of one list.
type table struct {
	name  string
	serve http.HandlerFunc
}

// listed is the table of one list.
type listed[R any] struct {
	title   string
	list    query.List[R]
	rows    func(v *view) []R
	menus   []string // fields with few values
	columns []column[R]
}

func (l listed[R]) table(p *page) table {
	return table{l.list.Name(), func(w http.ResponseWriter, r *http.Request) {
		v := p.look()
		q, err := l.list.ParseText(r.URL.RawQuery)
		if err == nil {
			err = l.list.CheckNetworks(q, l.rows(v), p.Fleet.Networks())
		}
		if err != nil {
			p.problem(w, r, http.StatusBadRequest, err.Error())
			return
		}
		v.show(w, r, http.StatusOK, "table", l.title, l.page(v, q))
	}}
}

// page answers a query by a page.
func (l listed[R]) page(v *view, q query.Query) tablePage {
	all := l.rows(v)
	found := l.list.Select(all, q)
	t := tablePage{
		Title: l.title, Path: "/" + l.list.Name(), Search: q.Search, Label: q.Labels.String(), Total: found.Total, Page: found.Page, Pages: found.Pages,
		First: (found.Page-1)*found.Limit + 1, Last: (found.Page-1)*found.Limit + len(found.Items), API: l.api(q),
		Filtered: len(q.Filters) > 0 || q.Search != "" || q.Labels.String() != "", Links: l.links(q, found.Page, found.Pages),
	}
	for _, name := range l.menus {
		t.Menus = append(t.Menus, l.menu(all, q, name))
	}
	t.Kept = l.kept(q)
	for _, n := range pageSizes {
		t.Sizes = append(t.Sizes, choice{strconv.Itoa(n), strconv.Itoa(n), n == found.Limit})
	}
	for _, c := range l.columns {
		t.Columns = append(t.Columns, l.column(c, q))
	}
	for _, row := range found.Items {
		var out rowView
		for _, c := range l.columns {
			of := c.cell(v, row)
			of.Number = c.number
			out.Cells = append(out.Cells, of)
		}
		t.Rows = append(t.Rows, out)
	}
	return t
}

func (l listed[R]) address(q query.Query) string {
	if values := q.Values(); len(values) > 0 {
		return "/" + l.list.Name() + "?" + values.Encode()
	}
	return "/" + l.list.Name()
}

func (l listed[R]) api(q query.Query) string { return "/api/v1" + l.address(q) }

func (l listed[R]) links(q query.Query, at, pages int) (to pageLinks) {
	if at > 1 {
		to.First, to.Previous = l.address(q.AtPage(1)), l.address(q.AtPage(min(at-1, pages)))
	}
	if at < pages {
		to.Next, to.Last = l.address(q.AtPage(at+1)), l.address(q.AtPage(pages))
	}
	return to
}

// menu offers the values of a field, with how many rows have each.
func (l listed[R]) menu(all []R, q query.Query, name string) menu {
	m := menu{Field: name, Title: fieldTitle(name), Choices: []choice{{"", "any", true}}}
	chosen := q.Filter(name, false)
	counts := l.list.Counts(all, name)
	for _, c := range counts[:min(len(counts), maxChoices)] {
		value, text := c.Value, c.Value
		if value == "" {
			value, text = query.None, "none"
		}
		m.add(value, fmt.Sprintf("%s (%d)", text, c.Rows), slices.Contains(chosen, value))
	}
	for _, value := range chosen {
		if !slices.ContainsFunc(m.Choices, func(c choice) bool { return c.Value == value }) {
			m.add(value, value, true)
		}
	}
	return m
}

func (m *menu) add(value, text string, chosen bool) {
	m.Choices = append(m.Choices, choice{value, text, chosen})
	if chosen {
		m.Choices[0].Chosen = false
	}
}

// kept are those parameters that the form has no field for, each with the address without it.
func (l listed[R]) kept(q query.Query) []kept {
	values := q.AtPage(1).Values()
	for _, name := range append([]string{"q", "label", "limit"}, l.menus...) {
		if len(values[name]) <= 1 { // several values are more than a menu can say
			delete(values, name)
		}
	}
	var all []kept
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			without := q.AtPage(1).Values()
			without[name] = slices.DeleteFunc(slices.Clone(without[name]), func(v string) bool { return v == value })
			all = append(all, kept{name, value, "/" + l.list.Name() + "?" + without.Encode()})
		}
	}
	return all
}

func (l listed[R]) column(c column[R], q query.Query) columnView {
	v := columnView{Title: c.title, Number: c.number}
	if c.field == "" {
		return v
	}
	v.URL = l.address(q.SortedBy(c.field))
	if len(q.Orders) > 0 && q.Orders[0].Field == c.field {
		v.Sorted = "ascending"
		if q.Orders[0].Down {
			v.Sorted = "descending"
		}
	}
	return v
}

// fieldTitle is the name of a field for people.
func fieldTitle(name string) string {
	switch name {
	case "bmc":
		return "BMC"
	case "actor":
		return "To act"
	case "installStage":
		return "Install stage"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// The tables, and what they have in common.

func textOf[R any](title, field string, of func(R) string) column[R] {
	return column[R]{title, field, func(_ *view, r R) cell { return cell{link: link{Text: of(r)}} }, false}
}

func linkOf[R any](title, field string, of func(*view, R) link) column[R] {
	return column[R]{title, field, func(v *view, r R) cell { return cell{link: of(v, r)} }, false}
}

func numberOf[R any](title, field string, of func(R) string) column[R] {
	return column[R]{title, field, func(_ *view, r R) cell { return cell{link: link{Text: of(r)}} }, true}
}

func timeOf[R any](title, field string, of func(R) time.Time) column[R] {
	return column[R]{title, field, func(v *view, r R) cell { return cell{Time: v.stamp(of(r)), IsTime: true} }, false}
}

func stateOf[R any](of func(R) *query.Common) column[R] {
	return column[R]{"State", "state", func(_ *view, r R) cell {
		return cell{State: of(r).State, Class: stateClass(of(r).State)}
	}, false}
}

// whyOf are the columns that say what a row waits for.
func whyOf[R any](of func(R) *query.Common) []column[R] {
	return []column[R]{
		{"Waits for", "why", func(_ *view, r R) cell { return cell{link: link{Text: of(r).Why}, Wide: true} }, false},
		timeOf("Since", "since", func(r R) time.Time { return shownSince(of(r)) }),
		textOf("To act", "actor", func(r R) string { return of(r).Actor }),
	}
}

// shownSince is since when a row waits, or is as it is.
func shownSince(c *query.Common) time.Time {
	if !c.WhySince.IsZero() {
		return c.WhySince
	}
	return c.Since
}

func (p *page) tables() []table {
	return []table{
		p.serversTable(), p.claimsTable(), p.bmcsTable(), p.endpointsTable(), p.leasesTable(), p.poolsTable(), p.imagesTable(), p.problemsTable(),
	}
}

func manifestOf[R any](of func(R) *query.Common) column[R] {
	return linkOf("Manifest", "manifest", func(v *view, r R) link {
		file, line := of(r).Position()
		return link{of(r).Manifest, v.Web.File(v.seen(), file, line)}
	})
}

func (p *page) serversTable() table {
	type R = *query.Server
	common := func(r R) *query.Common { return &r.Common }
	return listed[R]{
		"Servers", query.Servers, func(v *view) []R { return v.rows.Servers }, []string{"state", "power", "actor", "location", "rack"},
		slices.Concat([]column[R]{
			linkOf("Server", "name", func(_ *view, r R) link { return to("server", r.Name) }), stateOf(common),
			textOf("Power", "power", func(r R) string { return r.Power }),
			linkOf("Claim", "claim", func(_ *view, r R) link { return toClaim(r.Claim) }),
		}, whyOf(common), []column[R]{
			textOf("Location", "location", func(r R) string { return r.Location }), textOf("Rack", "rack", func(r R) string { return r.Rack }),
			linkOf("BMC", "bmc", func(_ *view, r R) link { return to("bmc", r.BMC) }),
			textOf("Hardware", "model", func(r R) string { return strings.TrimSpace(r.Manufacturer + " " + r.Model) }),
			textOf("Serial", "serial", func(r R) string { return r.Serial }), manifestOf(common),
		}),
	}.table(p)
}

func (p *page) claimsTable() table {
	type R = *query.Claim
	common := func(r R) *query.Common { return &r.Common }
	return listed[R]{
		"Claims", query.Claims, func(v *view) []R { return v.rows.Claims }, []string{"state", "namespace", "actor", "tenant"},
		slices.Concat([]column[R]{
			linkOf("Claim", "name", func(_ *view, r R) link { return toClaim(r.Name) }), stateOf(common),
			linkOf("Server", "server", func(_ *view, r R) link { return to("server", r.Server) }),
		}, whyOf(common), []column[R]{textOf("Image", "image", func(r R) string { return r.Image }), manifestOf(common)}),
	}.table(p)
}

func (p *page) bmcsTable() table {
	type R = *query.BMC
	common := func(r R) *query.Common { return &r.Common }
	return listed[R]{
		"BMCs", query.BMCs, func(v *view) []R { return v.rows.BMCs }, []string{"state", "actor", "manufacturer"},
		slices.Concat([]column[R]{
			linkOf("BMC", "name", func(_ *view, r R) link { return to("bmc", r.Name) }), stateOf(common),
			textOf("Address", "address", func(r R) string { return r.Address }),
		}, whyOf(common), []column[R]{
			linkOf("Endpoint", "endpoint", func(_ *view, r R) link { return to("endpoint", r.Endpoint) }),
			textOf("Hardware", "model", func(r R) string { return strings.TrimSpace(r.Manufacturer + " " + r.Model) }),
			textOf("Firmware", "firmware", func(r R) string { return r.Firmware }),
			numberOf("Servers", "servers", func(r R) string { return strconv.Itoa(r.Servers) }), manifestOf(common),
		}),
	}.table(p)
}

func (p *page) endpointsTable() table {
	type R = *query.Endpoint
	common := func(r R) *query.Common { return &r.Common }
	return listed[R]{
		"Endpoints", query.Endpoints, func(v *view) []R { return v.rows.Endpoints }, []string{"state", "network", "actor"},
		slices.Concat([]column[R]{
			linkOf("Endpoint", "name", func(_ *view, r R) link { return to("endpoint", r.Name) }), stateOf(common),
			textOf("MAC address", "mac", func(r R) string { return r.MAC }), textOf("Address", "address", func(r R) string { return r.Address }),
			textOf("Network", "network", func(r R) string { return r.Network }),
		}, whyOf(common), []column[R]{linkOf("BMC", "bmc", func(_ *view, r R) link { return to("bmc", r.BMC) }), manifestOf(common)}),
	}.table(p)
}

func (p *page) leasesTable() table {
	type R = *query.Lease
	common := func(r R) *query.Common { return &r.Common }
	return listed[R]{
		"Leases", query.Leases, func(v *view) []R { return v.Fleet.Leases() }, []string{"state", "network", "role"},
		[]column[R]{
			textOf("Address", "name", func(r R) string { return r.Name }), stateOf(common),
			textOf("MAC address", "mac", func(r R) string { return r.MAC }),
			linkOf("Server", "server", func(_ *view, r R) link { return to("server", r.Server) }),
			textOf("Network", "network", func(r R) string { return r.Network }), textOf("Role", "role", func(r R) string { return r.Role }),
			textOf("Relay", "relay", func(r R) string { return r.Relay }), textOf("Port", "circuitID", func(r R) string { return r.CircuitID }),
			timeOf("Renewed", "renewed", func(r R) time.Time { return r.Renewed }), timeOf("Expires", "expires", func(r R) time.Time { return r.Expires }),
		},
	}.table(p)
}

func (p *page) poolsTable() table {
	type R = *query.Pool
	common := func(r R) *query.Common { return &r.Common }
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	return listed[R]{
		"Pools", query.Pools, func(v *view) []R { return v.Fleet.Pools() }, []string{"state", "network"},
		slices.Concat([]column[R]{
			textOf("Subnet", "name", func(r R) string { return r.Name }), stateOf(common), textOf("Network", "network", func(r R) string { return r.Network }),
			numberOf("Used", "used", func(r R) string { return number(r.Used) }), numberOf("Size", "size", func(r R) string { return number(r.Size) }),
			numberOf("Refused", "refused", func(r R) string { return number(r.Refused) }),
		}, whyOf(common)),
	}.table(p)
}

func (p *page) imagesTable() table {
	type R = *query.Image
	common := func(r R) *query.Common { return &r.Common }
	return listed[R]{
		"Images", query.Images, func(v *view) []R { return v.Fleet.Images() }, []string{"state", "part", "pinned"},
		[]column[R]{
			textOf("Digest", "name", func(r R) string { return r.Name }), stateOf(common), textOf("Image", "image", func(r R) string { return r.Image }),
			textOf("Part", "part", func(r R) string { return r.Part }), numberOf("Size", "size", func(r R) string { return size(r.Size) }),
			numberOf("Fetched", "fetched", func(r R) string { return size(r.Fetched) }), timeOf("Used", "used", func(r R) time.Time { return r.Used }),
			textOf("Pinned", "pinned", func(r R) string {
				if r.Pinned {
					return "yes"
				}
				return "no"
			}),
		},
	}.table(p)
}

func (p *page) problemsTable() table {
	type R = *query.Problem
	common := func(r R) *query.Common { return &r.Common }
	return listed[R]{
		"Problems", query.Problems, func(v *view) []R { return v.rows.Problems }, []string{"state"},
		[]column[R]{
			linkOf("Where", "file", func(v *view, r R) link { return link{r.Name, v.Web.File(v.seen(), r.File, r.Line)} }), stateOf(common),
			textOf("Object", "object", func(r R) string { return r.Object }), textOf("Field", "field", func(r R) string { return r.Field }),
			{"What is wrong", "why", func(_ *view, r R) cell { return cell{link: link{Text: r.Why}, Wide: true} }, false},
		},
	}.table(p)
}
