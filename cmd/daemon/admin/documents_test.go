package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

// namesIn are the names of a list.
func namesIn(t *testing.T, body string) []string {
	t.Helper()
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	must.Do(t, json.Unmarshal([]byte(body), &list))
	names := []string{}
	for _, item := range list.Items {
		names = append(names, must.Get(report.ParseDocument(item))(t).Name())
	}
	return names
}

func TestListsAreSelected(t *testing.T) {
	fleet := newLive(12)
	fleet.set(3, model.StateError)
	for query, want := range map[string][]string{
		"servers?labelSelector=rack%3Dr1": {"s1", "s11"},
		"servers?q=S3":                    {"s3"},
		"servers?q=cannot+be+wiped":       {"s3"},
		"servers?q=contoso&labelSelector=rack+in+(r2,r3),rack!%3Dr2": {"s3"},
		"servers?q=nothing":             {},
		"servers?q=s1":                  {"s1", "s10", "s11"},
		"endpoints?q=02:00:00:00:00:01": {"port-7"},
		"serverclaims?q=default/c11":    {"default/c11"},
	} {
		w := ask(Options{Fleet: fleet}, http.MethodGet, "/api/v1/"+query)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
			continue
		}
		if diff := cmp.Diff(want, namesIn(t, w.Body.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestWrongRequestsAreRefused(t *testing.T) {
	for path, want := range map[string]string{
		"servers?state=Error":             `400 unknown parameter "state": use labelSelector`,
		"servers?labelSelector=rack+in":   "400 labelSelector: ",
		"servers?q=%zz":                   "400 read the query: ",
		"servers?q=" + hundreds("x"):      "400 the query has 5002 bytes: at most 4096 are read",
		"servers/s99":                     "404 server s99 is not known, did you mean s9?",
		"serverclaims/default/none":       "404 claim default/none is not known",
		"leases?q=1":                      "400 leases have no parameters: select with jq",
		"cards/02":                        `400 "02" is not a MAC address: write it as 02:00:00:00:00:0a`,
		"cards/02:00:00:00:00:02":         "404 the network card 02:00:00:00:00:02 is unknown: ",
		"machines":                        "404 /api/v1/machines is not a path of the API; see /api/v1/openapi.json",
		"serverbootconfigurations/x/none": "404 boot-configuration x/none is not known",
	} {
		page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusNotFound, "<html>") })
		w := ask(Options{Fleet: newLive(10), Page: page}, http.MethodGet, "/api/v1/"+path)
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", path[:min(len(path), 40)], got, want)
		}
	}
}

func hundreds(s string) string { return strings.Repeat(s, 5000) }

func TestAnUnchangedAnswerIsNotSentAgain(t *testing.T) {
	fleet := newLive(3)
	o := Options{Fleet: fleet, Index: NewIndex(fleet)}
	tags := make(map[string]string)
	paths := []string{"/api/v1/fleet", "/api/v1/servers", "/api/v1/servers/s0", "/api/v1/servers/s1", "/api/v1/serverclaims/c1"}
	again := func(path string) int {
		return ask(o, http.MethodGet, path, func(r *http.Request) { r.Header.Set("If-None-Match", `"other", W/`+tags[path]) }).Code
	}
	for _, path := range paths {
		tags[path] = ask(o, http.MethodGet, path).Header().Get("ETag")
		if code := again(path); code != http.StatusNotModified {
			t.Errorf("%s: got %d with its own tag %s", path, code, tags[path])
		}
	}
	fleet.set(1, model.StateError)
	for path, want := range map[string]int{
		"/api/v1/servers": 200, "/api/v1/servers/s1": 200, "/api/v1/servers/s0": 304, "/api/v1/serverclaims/c1": 304, "/api/v1/fleet": 304,
	} {
		if code := again(path); code != want {
			t.Errorf("after a change of s1, %s: got %d, want %d", path, code, want)
		}
	}
	restarted := Options{Fleet: newLive(3)}
	if code := ask(restarted, http.MethodGet, "/api/v1/servers/s0", func(r *http.Request) {
		r.Header.Set("If-None-Match", tags["/api/v1/servers/s0"])
	}).Code; code != http.StatusNotModified {
		t.Errorf("the tag of a document does not survive a restart: got %d", code)
	}
}

// schemaOf compiles the schema of the answer of a path.
func schemaOf(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	text := ask(Options{}, http.MethodGet, "/api/v1/openapi.json").Body
	doc := must.Get(jsonschema.UnmarshalJSON(text))(t)
	strict(doc)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	must.Do(t, c.AddResource("mem:///openapi.json", doc))
	pointer := "/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) + "/get/responses/200/content/application~1json/schema"
	return must.Get(c.Compile("mem:///openapi.json#" + pointer))(t)
}

// strict forbids fields that the description does not have.
func strict(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, part := range v {
			strict(part)
		}
		if _, has := v["properties"]; has && v["type"] == "object" {
			v["additionalProperties"] = false
		}
	case []any:
		for _, part := range v {
			strict(part)
		}
	}
}

func TestAnswersAreAsDescribed(t *testing.T) {
	fleet := newLive(3)
	fleet.set(1, model.StateError)
	var doc struct {
		Paths map[string]any `json:"paths"`
	}
	must.Do(t, json.Unmarshal(ask(Options{}, http.MethodGet, "/api/v1/openapi.json").Body.Bytes(), &doc))
	names := map[string]string{
		"servers": "s1", "serverclaims": "default/c1", "serverbootconfigurations": "c0", "bmcs": "b1", "endpoints": "02:00:00:00:00:01",
		"servermaintenances": "disk", "serverreadinessrules": "burn-in",
	}
	if len(doc.Paths) != 7+2*len(report.Folders()) {
		t.Errorf("paths: %v", slices.Sorted(maps.Keys(doc.Paths)))
	}
	for path := range doc.Paths {
		if strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "openapi.json") {
			continue
		}
		folder, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
		asked := strings.NewReplacer("{mac}", "02-00-00-00-00-01", "{name}", names[folder]).Replace(path)
		for state, o := range map[string]Options{"a fleet": {Fleet: fleet}, "an empty fleet": {}} {
			w := ask(o, http.MethodGet, asked)
			if state == "an empty fleet" && asked != path {
				continue
			}
			answer, err := jsonschema.UnmarshalJSON(w.Body)
			if w.Code != http.StatusOK || err != nil {
				t.Errorf("%s, %s: got %d, %v", state, asked, w.Code, err)
				continue
			}
			if err := schemaOf(t, path).Validate(answer); err != nil {
				t.Errorf("%s, %s: %v", state, asked, err)
			}
			if list, is := answer.(map[string]any)["items"]; is && state == "a fleet" && len(list.([]any)) == 0 {
				t.Errorf("%s: no entry can be compared", asked)
			}
		}
	}
}

func TestDocumentsAreReadBack(t *testing.T) {
	fleet := newLive(2)
	for _, f := range report.Folders() {
		for _, d := range fleet.Documents().List(f) {
			w := ask(Options{Fleet: fleet}, http.MethodGet, "/api/v1/"+string(f)+"/"+d.Name())
			got := must.Get(report.ParseDocument(w.Body.Bytes()))(t)
			if diff := cmp.Diff(must.Get(json.Marshal(d))(t), must.Get(json.Marshal(got))(t)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", d.Path(), diff)
			}
		}
	}
}
