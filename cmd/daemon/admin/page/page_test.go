package page

import (
	"errors"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/report"
)

func TestTheFleetIsShown(t *testing.T) {
	says(t, shown(t, handlerOf(shownFleet()), "/", 200),
		"<h2>4 servers</h2>",
		`<a href="/servers?state=Reserved" class="tile"><span class="n">1</span>`,
		`<a href="/claims?state=Unbound" class="tile"><span class="n">1</span>`,
		"Waiting for approval: 1 step held by the guard",
		"<code>Ingot-Approve: X4YRGUC5KSZPNQ2M</code>",
		"Somebody has to act on 3 objects.",
		`claim <a href="/claims/default/db">default/db</a></th> <td><span class="state s-unbound">Unbound</span></td>`,
		`<a href="https://github.com/infra/metal/commit/8c1f0a2b3c4d5e6f">main@sha1:8c1f0a2b3c4d5e6f</a>`,
		`<a href="https://github.com/infra/metal/commit/9999999999999999">main@sha1:9999999999999999</a>`,
		"in force for <time", ">2 h 0 min</time>", "20 s ago",
		`<a href="https://github.com/infra/metal/blob/9999999999999999/claims/web.yaml#L7">claims/web.yaml:7:3</a>`,
		`aria-label="rack r1: 3 servers, 1 Available, 1 Reserved, 1 Error, somebody has to act on 1"`,
		`<a href="/servers/rack1-03"><g class="E a">`,
		`<a href="/servers?rack=-">1 server has</a>`)
}

func TestAFleetOfWhichNothingIsKnown(t *testing.T) {
	f := &aFleet{git: Git{Source: model.SourceState{Reason: model.SourceFetchFailed, Message: "connection refused", Since: now.Add(-time.Minute)}}}
	says(t, shown(t, handlerOf(f), "/", 200), "<h2>0 servers</h2>", "none read yet", "FetchFailed</strong> for <time", "connection refused", "Nothing waits.", "No server is known yet.")
}

func TestAStatusBranchThatCannotBePushedIsTold(t *testing.T) {
	f := shownFleet()
	f.git.Failing, f.git.FailingSince = errors.New("protected branch "+hostile), now.Add(-90*time.Second)
	says(t, shown(t, handlerOf(f), "/", 200), "could not be pushed for <time", "1 min 30 s</time>: protected branch &lt;script&gt;")
}

func TestWhatManyWaitForIsOneLine(t *testing.T) {
	f := shownFleet()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		doc := *f.report.Documents["serverclaims/default/db.yaml"]
		f.report.Documents["serverclaims/default/"+name+".yaml"] = named(doc, name)
	}
	says(t, shown(t, handlerOf(f), "/", 200),
		`<a href="/claims/default/a">default/a</a>, <a href="/claims/default/b">default/b</a>, <a href="/claims/default/c">default/c</a> and <a href="/claims?state=Unbound&amp;why=`,
		">3 more</a>", "!/claims/default/d")
}

func TestThoseOfWhichSomebodyHasToActComeFirst(t *testing.T) {
	page := shown(t, handlerOf(shownFleet()), "/", 200)
	last := 0
	for _, object := range []string{"claim <a href=\"/claims/default/db", "endpoint <a", "server <a href=\"/servers/rack1-03", "claim <a href=\"/claims/default/web", "server <a href=\"/servers/rack1-02"} {
		at := strings.Index(page, `<th scope="row">`+object)
		if at < last {
			t.Errorf("%s is at %d, after %d", object, at, last)
		}
		last = at
	}
}

func TestTheFleetIsAnotherWithTheNextReport(t *testing.T) {
	f := shownFleet()
	h := handlerOf(f)
	says(t, shown(t, h, "/", 200), "<h2>4 servers</h2>", "Somebody has to act on 3 objects.")
	docs := maps.Clone(f.report.Documents)
	delete(docs, "servers/rack1-03.yaml")
	f.report = &model.Report{Documents: docs}
	says(t, shown(t, h, "/", 200), "<h2>3 servers</h2>", "Somebody has to act on 2 objects.", "!/servers/rack1-03")
}

func TestAServerIsShown(t *testing.T) {
	says(t, shown(t, handlerOf(shownFleet()), "/servers/rack1-02", 200),
		"<h1>rack1-02</h1>", "Boot for Claim",
		`aria-label="armed at 11:57:00, DHCP after 40 s, iPXE script after 2 s, not seen yet after 2 min 18 s: kernel"`,
		"it did not fetch its kernel",
		`<a href="/claims/default/web">default/web</a>`,
		`<tr><th scope="row">BootProgress</th><td>False</td><td>IPXEScript</td>`,
		"02:00:00:00:00:01", "U3",
		`<a href="/bmcs/rack1-02-bmc">rack1-02-bmc</a>`, "<dt>requests of this process</dt><dd>12</dd>", "<td>894.3 GiB</td>", ">More</h3>",
		"iPXE script for 10.1.0.7",
		`<a href="https://github.com/infra/metal/tree/status/servers/rack1-02.yaml">`,
		`<a href="https://github.com/infra/metal/commits/status/servers/rack1-02.yaml">`,
		`<a href="https://github.com/infra/metal/commit/5ca1ab1e00">5ca1ab1e00</a>`, "rack1-02: Available → Reserved for default/web",
		`<a href="/api/v1/explain/server/rack1-02">`)
}

func TestAWipeIsShownByDisk(t *testing.T) {
	says(t, shown(t, handlerOf(shownFleet()), "/servers/rack1-04", 200),
		"Wipe (secure)", `<th scope="row">sda <span class="quiet">1.0 TiB</span></th><td>S-9</td><td>overwrite</td>`, `<progress max="100" value="40"`)
}

func TestAConditionSaysWhoHasToAct(t *testing.T) {
	says(t, shown(t, handlerOf(shownFleet()), "/servers/rack1-03", 200),
		"Waits for the rack operator", `<td class="text">disk S-77 was not wiped</td><td>rack operator</td>`)
}

func TestAClaimSaysWhyItHasNoServer(t *testing.T) {
	says(t, shown(t, handlerOf(shownFleet()), "/claims/default/db", 200),
		"Why no server serves it", `<td class="number">2</td><td>Reserved</td>`, `<td class="number">1</td><td>lack label rack=r9</td>`)
}

func TestAClaimShowsHowFarItsBootIs(t *testing.T) {
	says(t, shown(t, handlerOf(shownFleet()), "/claims/default/web", 200), `<svg class="timeline"`, ">Depends on</h2>", `<a href="/servers/rack1-02">rack1-02</a>`)
}

func TestWhyIsTakenApartWhereItCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		why  string
		want []predicate
	}{
		"counts":                    {"12 servers: 5 Reserved, 4 lack label rack=b, 3 cordoned", []predicate{{5, "Reserved"}, {4, "lack label rack=b"}, {3, "cordoned"}}},
		"no server at all":          {"no server has label rack=9 (2 servers)", nil},
		"something else":            {"the image cannot be read", nil},
		"a part that is no count":   {"2 servers: 1 Reserved, and another", nil},
		"numbers that are too long": {"2 servers: 99999999999999999999 Reserved", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, predicates(tc.why)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestATableIsFilteredSortedAndPagedByItsAddress(t *testing.T) {
	h := handlerOf(shownFleet())
	says(t, shown(t, h, "/servers", 200), "Rows 1 to 4 of 4", `<option value="Reserved">Reserved (1)</option>`, `aria-current="page">Servers <span class="tally">4</span>`)
	says(t, shown(t, h, "/servers?state=Error", 200), "Rows 1 to 1 of 1", `<option value="Error" selected>`, `<a href="/servers/rack1-03">`, `!<a href="/servers/rack1-01">`)
	says(t, shown(t, h, "/servers?sort=-name&limit=2", 200), "Rows 1 to 2 of 4", `aria-sort="descending"`,
		`<a href="/servers?limit=2&amp;sort=name">Server`, `<a href="/servers?limit=2&amp;page=2&amp;sort=-name" rel="next">Next</a>`,
		`<input type="hidden" name="sort" value="-name">`, `!<a href="/servers/rack1-02">`)
	says(t, shown(t, h, "/servers?page=2&limit=2", 200), "Rows 3 to 4 of 4", `<a href="/servers?limit=2" rel="prev">`)
	says(t, shown(t, h, "/servers?state=Released", 200), "Nothing matches.", `<option value="Released" selected>Released</option>`)
	says(t, shown(t, h, "/servers?rack=-&q=RACK1", 200), "Rows 1 to 1 of 1", `value="RACK1"`)
	says(t, shown(t, h, "/servers?why=it+boots", 200), "Rows 1 to 1 of 1", `<input type="hidden" name="why" value="it boots">`, "<code>why=it boots</code>")
	says(t, shown(t, h, "/claims", 200), `<a href="/claims/default/db">default/db</a>`)
	says(t, shown(t, h, "/bmcs", 200), "10.0.0.2", "1.2")
	says(t, shown(t, h, "/endpoints", 200), "02:00:00:00:00:09", "Unrecognised")
	says(t, shown(t, h, "/pools", 200), "10.0.0.0/24", "HasRoom", ">13<")
	says(t, shown(t, h, "/leases", 200), "There are none.")
	says(t, shown(t, h, "/images", 200), "There are none.")
	says(t, shown(t, h, "/problems?state=error", 200), "claims/web.yaml#L7", "Rows 1 to 1 of 1")
}

func TestAnObjectLeadsToItsManifest(t *testing.T) {
	f := shownFleet()
	f.report.Documents["serverbootconfigurations/default/web.yaml"] = document(model.KindServerBootConfiguration, "default", "web", nil,
		report.BootConfigurationSpec{}, report.BootConfigurationStatus{Server: "rack1-04"}, &model.ClaimRecord{Name: model.BootConfigurationName("default", "web")})
	f.desired = &model.Desired{
		Servers: map[model.ServerName]*model.Server{"rack1-02": {Meta: model.Meta{Source: "servers.yaml:3"}}},
		Claims: map[model.ClaimName]*model.ServerClaim{
			"default/web": {Meta: model.Meta{Source: "claims.yaml:5"}}, model.BootConfigurationName("default", "web"): {Meta: model.Meta{Source: "boot.yaml:7"}},
		},
		BMCs:      map[model.BMCName]*model.BMC{"rack1-02-bmc": {Meta: model.Meta{Source: "bmcs.yaml:9"}}},
		Endpoints: map[string]*model.Endpoint{"e1": {Meta: model.Meta{Source: "endpoints.yaml:11"}}},
	}
	h := handlerOf(f)
	for target, want := range map[string]string{
		"/servers/rack1-02": "servers.yaml#L3", "/claims/default/web": "claims.yaml#L5", "/boot-configurations/default/web": "boot.yaml#L7",
		"/bmcs/rack1-02-bmc": "bmcs.yaml#L9", "/endpoints/e1": "endpoints.yaml#L11",
	} {
		says(t, shown(t, h, target, 200), `<a href="https://github.com/infra/metal/blob/9999999999999999/`+want+`">`)
	}
	says(t, shown(t, h, "/servers/rack1-03", 200), "Manifest: not in any manifest")
}

func TestAnEndpointShowsWhatItsNetworkCardAsked(t *testing.T) {
	f := shownFleet()
	h := handlerOf(f)
	says(t, shown(t, h, "/endpoints/e1", 200),
		"Network card log", "1 h 0 min ago", `<a href="/api/v1/cards/02:00:00:00:00:09">`, "over rateLimit.client",
		"10 min ago</time></td><td>DHCPv4</td><th scope=\"row\">DISCOVER by pxe</th><td>answered</td>"+
			`<td class="text">OFFER 10.0.0.9, boots undionly.kpxe; from rack1, relay 10.0.0.1 port Eth1/7</td>`,
		"<td>TFTP</td><th scope=\"row\">undionly.kpxe</th><td>served</td><td class=\"text\">70.0 KiB in 400ms; from 10.0.0.9</td>",
		"&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;; 12 times until 11:59:00Z", "!<script>alert")
	says(t, shown(t, h, "/servers/rack1-02", 200), "!Network card log")
	f.cards["e1"] = report.Card{MAC: "02:00:00:00:00:09", Since: now.Add(-time.Minute)}
	says(t, shown(t, h, "/endpoints/e1", 200), "No DHCP, TFTP or HTTP requests since this process started, <time", "1 min ago", "!conversation-table")
	f.cards["02:00:00:00:00:08"] = report.Card{MAC: "02:00:00:00:00:08", Since: now.Add(-time.Minute), Events: []model.CardEvent{{At: now, Protocol: model.CardDHCPv6, Asked: "SOLICIT"}}}
	says(t, shown(t, h, "/endpoints/02:00:00:00:00:08", 200), "<h1>02:00:00:00:00:08</h1>", "SOLICIT", "Manifest: not in any manifest")
}

func TestEveryColumnThatLeadsToAnOrderIsAField(t *testing.T) {
	h := handlerOf(shownFleet())
	sort := regexp.MustCompile(`href="(/\w+\?sort=[^"]*)"`)
	for _, s := range sections[1:] {
		for _, m := range sort.FindAllStringSubmatch(shown(t, h, s.path, 200), -1) {
			shown(t, h, m[1], 200)
		}
	}
}

func TestWhatCannotBeAnsweredIsSaid(t *testing.T) {
	h := handlerOf(shownFleet())
	for target, tc := range map[string]struct {
		code int
		want string
	}{
		"/servers?sate=Error":                          {400, "did you mean state?"},
		"/servers?page=x":                              {400, "must be a number"},
		"/leases?network=nope":                         {400, "no network has that name; there are hosts, mgmt"},
		"/servers?state=%zz":                           {400, "the query cannot be read"},
		"/servers?state=Error;rack=r1":                 {400, "the query cannot be read"},
		"/servers?q=" + strings.Repeat("x", 10_000):    {400, "at most"},
		"/servers/rack1-99":                            {404, "did you mean"},
		"/claims/default/none":                         {404, "not known"},
		"/nothing":                                     {404, "There is no such page."},
		"/static/page.go":                              {404, "There is no such file."},
		"/racks/nowhere":                               {404, "No rack is there."},
		"/servers/" + "%3Cscript%3Ealert%28%221%22%29": {404, "&lt;script&gt;"},
	} {
		says(t, shown(t, h, target, tc.code), tc.want, "!<script>alert", "!page.js")
	}
	says(t, shown(t, h, "/pools?network=bmc", 200), "10.0.0.0/24") // not configured any more, and in a row
	says(t, shown(t, h, "/leases?network=hosts", 200), "Nothing matches.")
}

func TestTheRacksOfOneLocation(t *testing.T) {
	says(t, shown(t, handlerOf(shownFleet()), "/racks/berlin", 200), "Racks of berlin", `<a href="/servers/rack1-01">`)
}

func TestWhatComesFromOutsideIsText(t *testing.T) {
	h := handlerOf(shownFleet())
	for _, target := range []string{"/", "/servers", "/servers/rack1-02", "/servers/rack1-03", "/problems", "/claims/default/web", "/servers?q=" + "%3Cscript%3Ealert%28%221%22%29%3C/script%3E"} {
		page := shown(t, h, target, 200)
		says(t, page, "!<script>", "!alert(\"1\")")
		if n := strings.Count(page, "<script"); n != 1 {
			t.Errorf("%s has %d scripts", target, n)
		}
		if found := regexp.MustCompile(`<[a-z][^>]* (?:style|on[a-z]+)=`).FindString(page); found != "" {
			t.Errorf("%s has a style or a script within: %s", target, found)
		}
	}
	says(t, shown(t, h, "/servers/rack1-03", 200), "owner=&lt;script&gt;")
}

func TestFilesAreServedOnce(t *testing.T) {
	h := handlerOf(shownFleet())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/static/page.css", nil))
	tag := w.Header().Get("ETag")
	if w.Code != 200 || tag == "" || !strings.Contains(w.Body.String(), ".s-reserved{background:#1d4ed8}") || !strings.Contains(w.Body.String(), ".rack{") {
		t.Fatalf("%d %q %s", w.Code, tag, w.Body)
	}
	again := httptest.NewRequest(http.MethodGet, "/static/page.css", nil)
	again.Header.Set("If-None-Match", tag)
	w = httptest.NewRecorder()
	h.ServeHTTP(w, again)
	if w.Code != http.StatusNotModified {
		t.Errorf("asked for again it is answered with %d", w.Code)
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	h := handlerOf(shownFleet())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/servers", nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s is answered with %d", method, w.Code)
		}
	}
}

func TestDurationsAndSizes(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{lasting(0), "0 s"}, {lasting(59 * time.Second), "59 s"}, {lasting(90 * time.Second), "1 min 30 s"}, {lasting(2 * time.Minute), "2 min"},
		{lasting(59*time.Minute + 59*time.Second), "59 min"}, {lasting(25 * time.Hour), "1 d 1 h"}, {lasting(-time.Minute), "in 1 min"},
		{size[int64](512), "512 B"}, {size[int64](1 << 20), "1.0 MiB"}, {size[int64](1000 << 10), "1.0 MiB"}, {size[int64](1 << 40), "1.0 TiB"},
		{size(uint64(math.MaxUint64)), "16.0 EiB"},
		{quantity("937692504Ki"), "894.3 GiB"}, {quantity("512Gi"), "512.0 GiB"}, {quantity("0"), "0 B"}, {quantity(""), ""}, {quantity("large"), "large"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func named(d model.Document, name string) *model.Document {
	of := *d.Object.(*report.Document)
	of.Metadata.Name = name
	of.Decided = &model.ClaimRecord{Name: model.ClaimName("default/" + name)}
	return &model.Document{Object: &of}
}
