package page_test

import (
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/cmd/daemon/admin/page"
	"ingot/model"
	"ingot/reconcile/report"
)

func TestFleet(t *testing.T) {
	f := small()
	h := handler(f)
	contains(t, shown(t, h, "/", 200),
		"<title>(4) Ingot</title>", "<h2>4 servers</h2>", `data-generation="7"`,
		`<a href="/servers?state=Error" class="tile"><span class="n">1</span>`, `<a href="/claims?state=Unbound" class="tile"><span class="n">1</span>`,
		"Waiting for approval: 1 step held by the guard", "<code>Ingot-Approve: X4YRGUC5KSZPNQ2M</code>", "<code>git revert 8c1f0a2b3c4d</code>",
		`data-copy="git commit --allow-empty -m &#34;Approve&#34; -m &#34;Ingot-Approve: X4YRGUC5KSZPNQ2M&#34;"`, `data-copy="git revert 8c1f0a2b3c4d"`,
		"server rack1-02 is wiped", "<code data-copy=", "Ingot-Approve: ALONE</code>", "<li>2 more</li>",
		"Action needed: 4 objects.",
		`Claim <a href="/claims/default/db">default/db</a></th> <td data-label="State"><span class="state s-unbound">Unbound</span></td>`,
		`<abbr title="free or add a server">NoServerFree</abbr>: 4 servers: 2 Reserved`,
		`<a href="https://github.com/infra/metal/commit/8c1f0a2b3c4d5e6f">main@sha1:8c1f0a2b3c4d5e6f</a>`,
		`<a href="https://github.com/infra/metal/commit/9999999999999999">main@sha1:9999999999999999</a>`,
		"in force for <time", ">2 h 0 min</time>", "20 s</time> ago",
		`<a href="https://github.com/infra/metal/blob/9999999999999999/claims/web.yaml#L7">claims/web.yaml:7:3</a>`,
		`aria-label="rack r1: 3 servers, 1 Available, 1 Reserved, 1 Error, action needed on 2"`, `<a href="/servers/rack1-03"><g class="E a">`,
		`<a href="/servers?label=!rack,!metadata.metal.ironcore.dev/rack">`)
	want := []string{"e1", "rack1-02", "rack1-03", "default/db", "rack1-02", "default/web"}
	if diff := cmp.Diff(want, names(shown(t, h, "/", 200))); diff != "" {
		t.Errorf("action needed first (-want +got):\n%s", diff)
	}
	f.docs = report.NewDocuments(f.docs.Fleet, f.docs.List(report.Servers)[:1])
	contains(t, shown(t, h, "/", 200), "<title>Ingot</title>", "<h2>1 server</h2>", "!/servers/rack1-03")
}

func TestEmptyFleet(t *testing.T) {
	f := &fleet{docs: report.NewDocuments(&report.Fleet{}, nil)}
	f.git = page.Git{
		Source:  model.SourceState{Reason: model.SourceFetchFailed, Message: "connection refused", Since: ago(time.Minute)},
		Failing: errors.New("protected branch " + hostile), FailingSince: ago(90 * time.Second),
	}
	contains(t, shown(t, handler(f), "/", 200), "<title>Ingot</title>", "<h2>0 servers</h2>", "none read yet", "FetchFailed</strong> for <time", "connection refused",
		"No object waits.", "No servers yet.", "has failed for <time", "1 min 30 s</time>: protected branch &lt;script&gt;")
}

// TestWaitingGroups has six claims that wait for the same.
func TestWaitingGroups(t *testing.T) {
	f := small()
	docs := f.docs.List(report.Claims)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		d := *f.docs.Get(report.Claims, "default/db")
		d.Metadata.Name = name
		docs = append(docs, &d)
	}
	f.docs = report.NewDocuments(f.docs.Fleet, docs)
	h := handler(f)
	fleetPage := shown(t, h, "/", 200)
	contains(t, fleetPage, `<a href="/claims/default/a">default/a</a>, <a href="/claims/default/b">default/b</a>, <a href="/claims/default/c">default/c</a> and <a href="/claims?q=`,
		">3 more</a>", "!/claims/default/d\"", "Action needed: 6 objects.")
	more := regexp.MustCompile(`and <a href="([^"]*)">`).FindStringSubmatch(fleetPage)[1]
	want := []string{"default/a", "default/b", "default/c", "default/d", "default/db", "default/e"}
	if diff := cmp.Diff(want, names(shown(t, h, html.UnescapeString(more), 200))); diff != "" {
		t.Errorf("list of all (-want +got):\n%s", diff)
	}
}

func TestServer(t *testing.T) {
	h := handler(small())
	contains(t, shown(t, h, "/servers/rack1-02", 200),
		"<title>(4) Server rack1-02 · Ingot</title>", "Action needed by the rack operator", "<h2 id=\"waiting-title-0\">Waiting</h2>", "<code>git revert 8c1f0a2b3c4d</code>",
		"Boot for Claim", `aria-label="armed at 11:57:00, DHCP after 40 s, iPXE script after 2 s, waiting for kernel since 2 min 18 s"`, "it did not fetch its kernel",
		`<a href="/claims/default/web">default/web</a>`, "192.0.2.7, 2001:db8::7", `<tr><th scope="row">BootProgress</th><td data-label="Status">False</td>`,
		`<a href="/bmcs/rack1-02-bmc">rack1-02-bmc</a>`, `<a href="https://192.0.2.130/" rel="noreferrer noopener">`, "<dt>requests of this process</dt><dd>12</dd>", ">960 GB</td>",
		"iPXE script for 192.0.2.7", `Endpoint <a href="/endpoints/e1">e1</a>`,
		`<a href="https://github.com/infra/metal/blob/9999999999999999/servers.yaml#L3">servers.yaml:3</a>`,
		`<a href="https://github.com/infra/metal/tree/status/servers/rack1-02.yaml">`, `<a href="https://github.com/infra/metal/commits/status/servers/rack1-02.yaml">`,
		`<a href="https://github.com/infra/metal/commit/5ca1ab1e00">5ca1ab1e00</a>`, "rack1-02: Available → Reserved for default/web", `<a href="/api/v1/servers/rack1-02">`)
	contains(t, shown(t, h, "/servers/rack1-03", 200), "disk S-77 was not wiped", "<strong>Next:</strong> check the disks", "Manifest: none", "!NIC log")
	contains(t, shown(t, h, "/servers/rack1-04", 200), "Wipe (secure)", `sda <span class="quiet">1.0 TB</span>`, `<progress max="100" value="40"`)
}

func TestOtherObjects(t *testing.T) {
	h := handler(small())
	contains(t, shown(t, h, "/claims/default/web", 200), "192.0.2.7, 2001:db8::7", `<svg class="timeline"`, ">Depends on</h2>", `Server <a href="/servers/rack1-02">`,
		`BMC <a href="/bmcs/rack1-02-bmc">`, "claims.yaml#L5")
	contains(t, shown(t, h, "/claims/default/db", 200), "<h1>default/db</h1>", "1 lack label rack=r9")
	contains(t, shown(t, h, "/boot-configurations/default/tool", 200), "<h1>default/tool</h1>", `<a href="/servers/rack1-04">`)
	contains(t, shown(t, h, "/bmcs/rack1-02-bmc", 200), "https://192.0.2.130/", `<dt>server</dt><dd><a href="/servers/rack1-02">`, "bmcs.yaml#L9")
	contains(t, shown(t, h, "/racks/berlin", 200), "Racks of berlin", `<a href="/servers/rack1-01">`)
}

func TestEndpointWithNICLog(t *testing.T) {
	f := small()
	h := handler(f)
	contains(t, shown(t, h, "/endpoints/e1", 200), "NIC log", "1 h 0 min</time> ago", `<a href="/api/v1/cards/02:00:00:00:00:09">`, "Rate limit: DHCPv4 over rateLimit.client",
		`<th scope="row">DISCOVER by pxe</th>`, `class="text">OFFER 192.0.2.130</td><td data-label="From">relay 192.0.2.1 port Eth1/7</td>`, "72 kB in 0.400 s", "12 times, last <time")
	f.cards["02:00:00:00:00:08"] = report.Card{MAC: "02:00:00:00:00:08", Since: ago(time.Minute)}
	contains(t, shown(t, h, "/endpoints/02:00:00:00:00:08", 200), "<h1>02:00:00:00:00:08</h1>", "No DHCP, TFTP or HTTP requests since this process started, <time", "!nic-table")
}

func TestBMCPageLink(t *testing.T) {
	for _, tc := range []struct{ address, reason, want string }{
		{"192.0.2.1:443", "", "https://192.0.2.1/"},
		{"[2001:db8::1]:8443", "", "https://[2001:db8::1]:8443/"},
		{"evil.example/:443", "", ""},
		{"192.0.2.1:443", model.ReasonAddressNotAllowed, ""},
	} {
		o := overview("Error", report.Summary{Addresses: []string{tc.address}}, report.Waiting{Reason: tc.reason})
		f := &fleet{docs: report.NewDocuments(&report.Fleet{}, []*report.Document{document(model.KindBMC, "b", nil, report.BMCSpec{}, report.BMCStatus{Overview: o}, nil)})}
		got := ""
		if m := regexp.MustCompile(`<a href="([^"]*)" rel=`).FindStringSubmatch(shown(t, handler(f), "/bmcs/b", 200)); m != nil {
			got = m[1]
		}
		if got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.address, tc.reason, got, tc.want)
		}
	}
}

func TestLists(t *testing.T) {
	h := handler(small())
	for target, want := range map[string][]string{
		"/servers":                    {"rack1-01", "rack1-02", "rack1-03", "rack1-04"},
		"/servers?sort=name":          {"rack1-01", "rack1-02", "rack1-03", "rack1-04"},
		"/servers?sort=-name":         {"rack1-04", "rack1-03", "rack1-02", "rack1-01"},
		"/servers?sort=state":         {"rack1-01", "rack1-02", "rack1-04", "rack1-03"},
		"/servers?sort=age":           {"rack1-02", "rack1-03", "rack1-01", "rack1-04"},
		"/servers?sort=-age":          {"rack1-01", "rack1-04", "rack1-03", "rack1-02"},
		"/servers?state=Error":        {"rack1-03"},
		"/servers?state=Released":     nil,
		"/servers?label=shelf+in+(1)": {"rack1-01"},
		"/servers?label=!rack&q=RACK": {"rack1-04"},
		"/servers?q=2001:DB8::7":      {"rack1-02"},
		"/claims":                     {"default/db", "default/web", "default/tool"},
		"/claims?state=Bound&q=tool":  {"default/tool"},
		"/bmcs":                       {"rack1-02-bmc"},
		"/endpoints?q=prefix":         {"e1"},
		"/leases?q=eth1/7":            {"192.0.2.7"},
		"/leases?state=Ended":         nil,
		"/pools?sort=-age":            {"192.0.2.128/25"},
		"/images?q=flatcar":           {"sha256:8c1f"},
		"/problems":                   {"bmcs/a.yaml:3", "claims/web.yaml:7:3"},
		"/problems?state=error":       {"claims/web.yaml:7:3"},
		"/problems?sort=state":        {"claims/web.yaml:7:3", "bmcs/a.yaml:3"},
	} {
		if diff := cmp.Diff(want, names(shown(t, h, target, 200))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

func TestListPage(t *testing.T) {
	h := handler(small())
	contains(t, shown(t, h, "/servers?q=rack&label=rack&sort=-age", 200), "<title>(4) Servers · Ingot</title>", `aria-current="page">Servers <span class="tally">4</span>`,
		`name="q" value="rack"`, `name="label" value="rack"`, `<input type="hidden" name="sort" value="-age">`, `aria-sort="descending"`,
		`<a href="/servers?label=rack&amp;q=rack&amp;sort=age">Since`, `<a href="/servers?label=rack&amp;q=rack&amp;sort=-age&amp;state=Error">Error <span class="tally">1</span></a>`,
		`<td data-label="Addresses">192.0.2.7, 2001:db8::7</td>`, `<td data-label="Action by">rack operator</td>`, "and more</span>", "3 rows.",
		`<a class="quiet" href="/api/v1/servers?labelSelector=rack&amp;q=rack">`, `<a href="/claims?q=rack">Claims</a>`)
	contains(t, shown(t, h, "/claims", 200), `<td data-label="Addresses">192.0.2.7, 2001:db8::7</td>`, `<a href="/boot-configurations/default/tool">`)
	contains(t, shown(t, h, "/images", 200), ">2.0 MB</td>", ">yes</td>", `!id="label"`)
}

func TestLongList(t *testing.T) {
	got := shown(t, handler(large(1005)), "/servers?sort=name", 200)
	contains(t, got, "1005 rows, of which the last 5 are not shown.")
	if n := len(names(got)); n != 1000 {
		t.Errorf("%d rows", n)
	}
}

func TestSearchRedirects(t *testing.T) {
	h := handler(small())
	for q, want := range map[string]string{
		"rack1-02": "/servers/rack1-02", "default/web": "/claims/default/web", "web": "/claims/default/web", "rack1-02-bmc": "/bmcs/rack1-02-bmc",
		"e1": "/endpoints/e1", "02-00-00-00-00-09": "/endpoints/e1",
	} {
		if w := get(h, http.MethodGet, "/servers?q="+url.QueryEscape(q)); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%s: %d %q, want %q", q, w.Code, w.Header().Get("Location"), want)
		}
	}
	shown(t, h, "/claims?q=default/web", 200)
	shown(t, h, "/servers?q=rack1-02&state=Reserved", 200)
}

func TestRefusals(t *testing.T) {
	h := handler(small())
	for target, tc := range map[string]struct {
		code int
		want string
	}{
		"/servers?sate=Error":                          {400, "unknown parameter &#34;sate&#34;: this list has label, q, sort, state"},
		"/leases?label=a":                              {400, "this list has q, sort, state"},
		"/servers?page=2":                              {400, "unknown parameter"},
		"/servers?state=error":                         {400, "the states are Initial, Discovery, Available, Reserved, Cleanup, Released, Maintenance, Error"},
		"/servers?state=Error&state=Cleanup":           {400, "only one is allowed"},
		"/servers?sort=rack":                           {400, "the orders are state, name, age,"},
		"/problems?sort=age":                           {400, "the orders are state, name,"},
		"/servers?label=a%3D%3D%3Db":                   {400, "invalid label selector"},
		"/servers?state=%zz":                           {400, "invalid query"},
		"/servers?q=" + strings.Repeat("x", 10_000):    {400, "longer than 500 bytes"},
		"/servers?" + strings.Repeat("x", 10_000):      {400, "unknown parameter"},
		"/servers/rack1-99":                            {404, "did you mean"},
		"/claims/default/none":                         {404, "not known"},
		"/nothing":                                     {404, "There is no such page."},
		"/static/page.go":                              {404, "There is no such file."},
		"/racks/nowhere":                               {404, "There is no such location."},
		"/servers/" + "%3Cscript%3Ealert%28%221%22%29": {404, "&lt;script&gt;"},
	} {
		page := shown(t, h, target, tc.code)
		contains(t, page, tc.want, "!<script>alert", "!page.js")
		if len(page) > 3000 {
			t.Errorf("GET %.100s: %d bytes", target, len(page))
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if w := get(h, method, "/servers"); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

func TestClaimRemovedFromGit(t *testing.T) {
	f := small()
	f.docs = report.NewDocuments(f.docs.Fleet, f.docs.List(report.Servers))
	contains(t, shown(t, handler(f), "/claims/default/web", 404), "claim default/web is not in Git, but a server still has it", `<a href="/servers/rack1-02">rack1-02</a>`)
}

// all are the paths of all pages of the small fleet that a page leads to.
func all(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	pages := map[string]string{}
	link := regexp.MustCompile(`href="(/[^"]*)"`)
	for next := []string{"/"}; len(next) > 0; next = next[1:] {
		path := html.UnescapeString(next[0])
		if pages[path] != "" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/static/") || path == "/readyz" || path == "/metrics" {
			continue
		}
		pages[path] = shown(t, h, path, 200)
		for _, m := range link.FindAllStringSubmatch(pages[path], -1) {
			next = append(next, m[1])
		}
	}
	return pages
}

func TestLinksAndExternalData(t *testing.T) {
	pages := all(t, handler(small()))
	for _, path := range []string{"/servers/rack1-02", "/claims/default/db", "/boot-configurations/default/tool", "/bmcs/rack1-02-bmc", "/endpoints/e1", "/problems?sort=state"} {
		if pages[path] == "" {
			t.Errorf("no link leads to %s, only to %v", path, slices.Sorted(maps.Keys(pages)))
		}
	}
	pages["search"] = shown(t, handler(small()), "/servers?q=%3Cscript%3Ealert%28%221%22%29%3C/script%3E", 200)
	inline := regexp.MustCompile(`<[a-z][^>]* (?:style|on[a-z]+)=|<style`)
	for path, page := range pages {
		contains(t, page, "!<script>", "!alert(\"1\")", `<form class="find" action="/servers"`, "!<button type=\"button\"")
		if n := strings.Count(page, "<script"); n != 1 || inline.MatchString(page) {
			t.Errorf("%s: %d scripts, inline %q", path, n, inline.FindString(page))
		}
	}
	contains(t, pages["/servers/rack1-03"], "owner=&lt;script&gt;")
}

func TestStaticFiles(t *testing.T) {
	h := handler(small())
	w := get(h, http.MethodGet, "/static/page.css")
	if w.Code != 200 || !strings.Contains(w.Body.String(), ".s-reserved{background:#1d4ed8}") || !strings.Contains(w.Body.String(), ".rack{") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	again, second := httptest.NewRequest(http.MethodGet, "/static/page.css", nil), httptest.NewRecorder()
	again.Header.Set("If-None-Match", w.Header().Get("ETag"))
	if h.ServeHTTP(second, again); second.Code != http.StatusNotModified {
		t.Errorf("got %d, want %d", second.Code, http.StatusNotModified)
	}
}

func TestAges(t *testing.T) {
	for age, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", 90 * time.Second: "1 min 30 s", 2 * time.Minute: "2 min", 59*time.Minute + 59*time.Second: "59 min", 25 * time.Hour: "1 d 1 h",
		-time.Minute: "in 1 min",
	} {
		f := &fleet{docs: report.NewDocuments(&report.Fleet{}, nil), git: page.Git{InForce: ago(age)}}
		contains(t, shown(t, handler(f), "/", 200), fmt.Sprintf(">%s</time></dd>", want))
	}
}
