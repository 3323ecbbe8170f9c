package query

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/model/text"
)

// at is a time that tells n apart.
func at(n int) time.Time { return time.Date(2026, 11, 21, 8, n, 0, 0, time.UTC) }

// someServers are four servers, sorted by name.
func someServers() []*Server {
	rows := []*Server{
		{Common: Common{Name: "s1", State: "Reserved", Since: at(3), Labels: map[string]string{"zone": "a"}}, Power: "On", Claim: "default/web", Rack: "r2", Unit: 7},
		{Common: Common{Name: "s2", State: "Available", Since: at(1), Labels: map[string]string{"zone": "b", "gpu": ""}}, Power: "Off", Rack: "r10"},
		{Common: Common{Name: "s3", State: "Error", Why: "the wipe of NVMe-7 failed", Actor: "rack operator", WhySince: at(2)}, Power: "On", Rack: "r2", Unit: 11},
		{Common: Common{Name: "s10", State: "Available", Since: at(2), Labels: map[string]string{"zone": "a"}}, Power: "Off"},
	}
	for _, r := range rows {
		Servers.Ready(r)
	}
	return rows
}

func names(rows []*Server) (all []string) {
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return all
}

func TestAQueryTakesRows(t *testing.T) {
	for name, tc := range map[string]struct {
		asked string
		want  string
	}{
		"without a wish all rows are there, in the order of names":   {"", "s1 s2 s3 s10"},
		"a filter takes the rows with its value":                     {"state=Available", "s2 s10"},
		"upper and lower case are the same to a filter":              {"state=available", "s2 s10"},
		"a filter takes no part of a value":                          {"state=Avail", ""},
		"several values of one field are alternatives":               {"state=Error&state=Reserved", "s1 s3"},
		"filters of several fields all have to take a row":           {"power=On&rack=r2", "s1 s3"},
		"an exclamation mark takes the other rows":                   {"state!=Available", "s1 s3"},
		"none of several values is one":                              {"state!=Available&state!=Error", "s1"},
		"a dash takes what has nothing":                              {"claim=-", "s2 s3 s10"},
		"an exclamation mark and a dash take what has something":     {"actor!=-", "s3"},
		"numbers are filtered as they are shown":                     {"unit=7", "s1"},
		"an unknown number is nothing":                               {"unit=-", "s2 s10"},
		"a time is filtered as it is shown":                          {"since=2026-11-21T08:01:00Z", "s2"},
		"what has no value asks for nothing, as forms send it":       {"state=&q=&label=&sort=&page=&limit=&rack=", "s1 s2 s3 s10"},
		"a search looks into all fields, whatever the case":          {"q=nvme", "s3"},
		"a search looks into labels":                                 {"q=zone%3DB", "s2"},
		"labels are selected as kubectl does":                        {"label=zone+in+(a,b),!gpu", "s1 s10"},
		"several selectors all have to take a row":                   {"label=zone&label=gpu", "s2"},
		"rows are sorted by a field":                                 {"sort=since", "s2 s10 s1 s3"},
		"rows are sorted the other way round, what has nothing last": {"sort=-since", "s1 s10 s2 s3"},
		"digits in texts count as numbers":                           {"sort=rack", "s1 s3 s2 s10"},
		"numbers are sorted as such":                                 {"sort=-unit", "s3 s1 s2 s10"},
		"where the first field tells nothing the next counts":        {"sort=state,-since", "s10 s2 s3 s1"},
		"rows that no field tells apart stay in the order of names":  {"sort=-power", "s1 s3 s2 s10"},
		"a page has as many rows as asked for":                       {"limit=3", "s1 s2 s3"},
		"the next page goes on":                                      {"limit=3&page=2", "s10"},
		"a page beyond the end has no rows":                          {"limit=3&page=1000000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := url.ParseQuery(tc.asked)
			if err != nil {
				t.Fatal(err)
			}
			q, err := Servers.Parse(values)
			if err != nil {
				t.Fatal(err)
			}
			rows := someServers()
			if got := strings.Join(names(Servers.Select(rows, q).Items), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := strings.Join(names(rows), " "); got != "s1 s2 s3 s10" {
				t.Errorf("the rows that were asked are %q now", got)
			}
			again, err := Servers.Parse(q.Values())
			if diff := cmp.Diff(q, again, cmp.AllowUnexported(model.LabelSelector{})); err != nil || diff != "" {
				t.Errorf("read back from %q (-want +got):\n%s%v", q.Values().Encode(), diff, err)
			}
		})
	}
}

func TestRowsThatNoFieldTellsApartStayInTheOrderOfNames(t *testing.T) {
	rows := make([]*Server, 100)
	for i := range rows {
		rows[i] = &Server{Common: Common{Name: fmt.Sprint("s", i)}, Power: []string{"On", "Off"}[i%2]}
	}
	taken := Servers.Select(rows, Query{Orders: []Order{{"power", true}}, Limit: 100}).Items
	if !slices.IsSortedFunc(taken[:50], byName) || !slices.IsSortedFunc(taken[50:], byName) || taken[0].Power != "On" {
		t.Errorf("order: %v", names(taken))
	}
}

func byName(a, b *Server) int { return text.CompareNatural(a.Name, b.Name) }

func TestAResultSaysWhichPageItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		rows, page, limit int
		want              Result[*Server]
	}{
		"the last page":         {10, 4, 3, Result[*Server]{Total: 10, Page: 4, Pages: 4, Limit: 3}},
		"a page beyond the end": {10, 5, 3, Result[*Server]{Total: 10, Page: 5, Pages: 4, Limit: 3}},
		"no rows at all":        {0, 1, 3, Result[*Server]{Total: 0, Page: 1, Pages: 1, Limit: 3}},
		"a full page":           {3, 1, 3, Result[*Server]{Total: 3, Page: 1, Pages: 1, Limit: 3}},
		"the zero query":        {3, 0, 0, Result[*Server]{Total: 3, Page: 1, Pages: 1, Limit: DefaultLimit}},
	} {
		rows := make([]*Server, tc.rows)
		for i := range rows {
			rows[i] = &Server{}
		}
		got := Servers.Select(rows, Query{Page: tc.page, Limit: tc.limit})
		if got.Items == nil {
			t.Errorf("%s: its items are null in JSON", name)
		}
		if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Result[*Server]{}, "Items")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAQueryThatCannotBeAnsweredIsRefused(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	fields := " They have actor, bmc, claim, height, installStage, location, manifest, manufacturer, model, name, power, rack, serial, since, state, unit, uuid, why, whySince; beside these there are q, label, sort, page, limit"
	for name, tc := range map[string]struct{ asked, want string }{
		"an unknown field":            {"colour=red", `servers have no field "colour".` + fields},
		"a field that is misspelled":  {"stat=Error", `servers have no field "stat", did you mean state?` + fields},
		"an unknown field to sort by": {"sort=name,-colour", `sort: servers have no field "colour".` + fields},
		"a filter of 10 kB":           {"name=" + long, "the query has 10246 bytes, and at most 4096 are read: ask for less"},
		"a field of 10 kB":            {long + "=1", "the query has 10243 bytes, and at most 4096 are read: ask for less"},
		"a search of 10 kB":           {"q=" + long, "the query has 10243 bytes, and at most 4096 are read: ask for less"},
		"too many values":             {strings.Repeat("state=A&", 600), "the query has 4800 bytes, and at most 4096 are read: ask for less"},
		"page 0":                      {"page=0", `page="0": must be a number from 1 to 1000000`},
		"no number of a page":         {"page=two", `page="two": must be a number from 1 to 1000000`},
		"a page beyond all bounds":    {"page=9223372036854775808", `page="9223372036854775808": must be a number from 1 to 1000000`},
		"too many rows":               {"limit=1001", `limit="1001": must be a number from 1 to 1000`},
		"two pages":                   {"page=1&page=2", "page is given 2 times: give it once"},
		"too many fields to sort by":  {"sort=name,state,bmc,rack,unit", "sort names 5 fields: at most 4 count"},
		"a long name of a field":      {strings.Repeat("é", 100) + "=1", `servers have no field "` + strings.Repeat("é", 32) + `…".`},
	} {
		values, err := url.ParseQuery(tc.asked)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Servers.Parse(values)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) && err.Error() != tc.want {
			t.Errorf("%s: got %v\nwant %s", name, err, tc.want)
		}
		if diff := cmp.Diff(Query{Page: 1, Limit: DefaultLimit}, q, cmp.AllowUnexported(model.LabelSelector{})); diff != "" {
			t.Errorf("%s: something of it is answered (-want +got):\n%s", name, diff)
		}
	}
	if _, err := Servers.Parse(url.Values{"label": {"zone>("}}); err == nil || !strings.Contains(err.Error(), `"zone>(" selects by no labels`) {
		t.Errorf("got %v", err)
	}
}

func TestAFieldIsSortedTheOtherWayRoundWhenItIsAskedForAgain(t *testing.T) {
	q := Query{Page: 7, Limit: 10}.SortedBy("state")
	if got := q.Values().Encode(); got != "limit=10&sort=state" {
		t.Errorf("first: %s", got)
	}
	if got := q.SortedBy("state").Values().Encode(); got != "limit=10&sort=-state" {
		t.Errorf("again: %s", got)
	}
	if got := q.SortedBy("state").SortedBy("state").Values().Encode(); got != "limit=10&sort=state" {
		t.Errorf("once more: %s", got)
	}
}

func TestAMenuSaysHowManyRowsEachValueHas(t *testing.T) {
	want := []Count{{"", 1}, {"r2", 2}, {"r10", 1}}
	if diff := cmp.Diff(want, Servers.Counts(someServers(), "rack")); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	rows := make([]*Server, 3*maxCounts)
	for i := range rows {
		rows[i] = &Server{Common: Common{Name: fmt.Sprint(i)}}
	}
	if n := len(Servers.Counts(rows, "name")); n != maxCounts {
		t.Errorf("a field with very many values has a menu of %d", n)
	}
}

// The fields of all lists are what their rows have in JSON, so that what is shown can be
// asked for.
func TestEachFieldOfARowIsAFieldOfItsList(t *testing.T) {
	check(t, Servers, &Server{})
	check(t, Claims, &Claim{})
	check(t, BMCs, &BMC{})
	check(t, Endpoints, &Endpoint{})
	check(t, Leases, &Lease{})
	check(t, Pools, &Pool{})
	check(t, Images, &Image{})
	check(t, Problems, &Problem{})
}
