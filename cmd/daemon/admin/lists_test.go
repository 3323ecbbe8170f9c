package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

// page is what of a list's answer these tests look at.
type page struct {
	Items []struct {
		Name  string `json:"name"`
		State string `json:"state"`
	} `json:"items"`
	Total, Page, Pages, Limit int
}

func (p page) names() string {
	var names []string
	for _, i := range p.Items {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

func decoded[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	must.Do(t, json.Unmarshal(w.Body.Bytes(), &v))
	return v
}

func TestListsAreAskedByTheirAddress(t *testing.T) {
	fleet := newLive(12)
	fleet.set(3, model.StateError)
	o := Options{Fleet: fleet}
	for path, want := range map[string]string{
		"/api/v1/servers?limit=3":                       "s0 s1 s2",
		"/api/v1/servers?state=Error":                   "s3",
		"/api/v1/servers?label=rack+in+(r1)&sort=-name": "s11 s1",
		"/api/v1/servers?actor!=-":                      "s3",
		"/api/v1/claims?server=s7":                      "default/c7",
		"/api/v1/bmcs?q=B11":                            "b11",
		"/api/v1/endpoints?state=Unrecognised":          "e",
		"/api/v1/problems?file=a.yaml":                  "a.yaml:3:5",
		"/api/v1/leases?network=bmcs":                   "192.0.2.9",
		"/api/v1/leases?network=Hosts":                  "", // is configured, and has none
		"/api/v1/leases?network=-":                      "",
		"/api/v1/leases?mac=02-00-00-00-00-01":          "192.0.2.9",
		"/api/v1/leases?mac!=-":                         "192.0.2.9",
		"/api/v1/endpoints?mac=020000000001":            "e",
		"/api/v1/pools?state=Exhausted":                 "192.0.2.0/24",
		"/api/v1/images?pinned=true":                    "sha256:a",
		"/api/v1/servers?page=99":                       "",
	} {
		got := decoded[page](t, ask(o, http.MethodGet, path))
		if got.names() != want {
			t.Errorf("%s: got %q, want %q", path, got.names(), want)
		}
	}
	beyond := decoded[page](t, ask(o, http.MethodGet, "/api/v1/servers?page=99&limit=5"))
	if beyond.Items == nil || beyond.Total != 12 || beyond.Page != 99 || beyond.Pages != 3 || beyond.Limit != 5 {
		t.Errorf("a page beyond the end: %+v", beyond)
	}
}

func TestAQuestionThatCannotBeAnsweredSaysWhatCan(t *testing.T) {
	o := Options{Fleet: newLive(1)}
	for path, want := range map[string]string{
		"/api/v1/servers?stat=Error":                         `servers have no field "stat", did you mean state? They have actor, `,
		"/api/v1/pools?page=0":                               `page="0": must be a number from 1 to 1000000`,
		"/api/v1/leases?name=" + strings.Repeat("x", 10<<10): "the query has 10246 bytes, and at most 4096 are read: ask for less",
		"/api/v1/servers?label=" + url.QueryEscape("a b"):    `"a b" selects by no labels`,
		"/api/v1/leases?network=nope":                        `network="nope": no network has that name; there are hosts, mgmt`,
		"/api/v1/leases?network!=nope":                       `network="nope": no network has that name; there are hosts, mgmt`,
		"/api/v1/pools?network=bmcs&network=nope":            `network="nope": no network has that name; there are hosts, mgmt`,
		"/api/v1/endpoints?network=nope":                     `network="nope": no network has that name; there are hosts, mgmt`,
		"/api/v1/leases?mac=zz":                              `mac="zz": must be a MAC address, such as 02:00:00:00:00:0a`,
		"/api/v1/bmcs?mac!=" + strings.Repeat("0", 30):       `mac="00000000000000000000…": must be a MAC address`,
		"/api/v1/servers?name=%zz":                           "the query cannot be read: ",
	} {
		w := ask(o, http.MethodGet, path)
		if w.Code != http.StatusBadRequest || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%.60s: got %d %s", path, w.Code, w.Body)
		}
	}
}

func TestAnObjectIsItsRowWithItsDocument(t *testing.T) {
	fleet := newLive(2)
	o := Options{Fleet: fleet}
	type object struct {
		Name, State, Rack, Server, Address, MAC string
		Spec                                    struct{ Image, MACAddress string }
		Status                                  struct{ State, Phase, Manufacturer, IP, Network string }
	}
	for path, want := range map[string]object{
		"servers/s1": {Name: "s1", State: "Reserved", Rack: "r1", Status: struct{ State, Phase, Manufacturer, IP, Network string }{State: "Reserved", Manufacturer: "Contoso"}},
		"claims/default/c1": {Name: "default/c1", State: "Booted", Server: "s1", Spec: struct{ Image, MACAddress string }{Image: "os:1"},
			Status: struct{ State, Phase, Manufacturer, IP, Network string }{Phase: "Bound"}},
		"bmcs/b1": {Name: "b1", State: "Enabled", Address: "192.0.2.1:443", Status: struct{ State, Phase, Manufacturer, IP, Network string }{State: "Enabled", IP: "192.0.2.1"}},
		"endpoints/e": {Name: "e", State: "Unrecognised", Address: "192.0.2.9", MAC: "02:00:00:00:00:01", Spec: struct{ Image, MACAddress string }{MACAddress: "02:00:00:00:00:01"},
			Status: struct{ State, Phase, Manufacturer, IP, Network string }{Network: "bmcs"}},
	} {
		if diff := cmp.Diff(want, decoded[object](t, ask(o, http.MethodGet, "/api/v1/"+path))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if w := ask(o, http.MethodGet, "/api/v1/servers/s9"); w.Code != http.StatusNotFound || w.Body.String() != "there is none of that name among the servers\n" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestWhatDidNotChangeIsNotSentAgain(t *testing.T) {
	for _, path := range []string{
		"/api/v1/status", "/api/v1/servers?state=Reserved", "/api/v1/servers/s1", "/api/v1/leases", "/api/v1/explain/server/s1",
	} {
		fleet := newLive(3)
		h := NewHandler(Options{Fleet: fleet, Log: discard, Metrics: noMetrics})
		get := func(etag string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
			if etag != "" {
				r.Header.Set("If-None-Match", `"other", W/`+etag)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		first := get("")
		etag := first.Header().Get("ETag")
		if first.Code != http.StatusOK || len(etag) < 10 {
			t.Fatalf("%s: got %d with tag %q", path, first.Code, etag)
		}
		if again := get(etag); again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("ETag") != etag {
			t.Errorf("%s: nothing changed, got %d %s", path, again.Code, again.Body)
		}
		fleet.set(1, model.StateError)
		if path == "/api/v1/leases" {
			continue
		}
		if later := get(etag); later.Code != http.StatusOK || later.Header().Get("ETag") == etag || later.Header().Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: a server changed, got %d with tag %s", path, later.Code, later.Header().Get("ETag"))
		}
	}
}

// A tag is of one process: what another says may be otherwise though it counts alike.
func TestAnotherProcessHasOtherTags(t *testing.T) {
	tag := func() string {
		return ask(Options{Fleet: newLive(1)}, http.MethodGet, "/api/v1/status").Header().Get("ETag")
	}
	if one, two := tag(), tag(); one == two {
		t.Errorf("both say %s", one)
	}
}
