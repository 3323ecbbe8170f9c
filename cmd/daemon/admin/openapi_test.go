package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
	"ingot/reconcile/report/query"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// operation is what is asked at one path.
type operation struct {
	path, summary string
	fields        []string     // of a list
	answer        reflect.Type // nil = no JSON
	example       string       // a path to ask, "" = path
	refused       string       // a request that is answered 400, "" = there is none
}

func operations() []operation {
	return []operation{
		{path: "/api/v1/status", summary: "The fleet at a glance: the revision in force, what waits for approval, and all servers, claims, BMCs and problems.", answer: reflect.TypeFor[report.Summary]()},
		{
			path: "/api/v1/explain/{kind}/{name}", summary: "All there is to say of one object: what it waits for, who has to act, how far its boot came. Kinds are bmc, boot-configuration, claim, endpoint and server.",
			answer: reflect.TypeFor[report.Explanation](), example: "/api/v1/explain/claim/default/c1", refused: "/api/v1/explain/node/n1",
		},
		{
			path: "/api/v1/cards/{mac}", summary: "A network card by its MAC address, and what it asked of this process by DHCP, TFTP and HTTP, the oldest first. Nothing of it is stored.",
			answer: reflect.TypeFor[report.Card](), example: "/api/v1/cards/02:00:00:00:00:01", refused: "/api/v1/cards/02",
		},
		listOf(query.Servers, "Servers."), listOf(query.Claims, "Claims, and ServerBootConfigurations in Git."), listOf(query.BMCs, "BMCs."),
		listOf(query.Endpoints, "Devices that may be BMCs."), listOf(query.Problems, "Problems in the manifests. Their states are error and warning."),
		listOf(query.Leases, "DHCP leases, at most 50,000."), listOf(query.Pools, "DHCP pools."), listOf(query.Images, "Blobs of images in the cache."),
		objectOf[serverObject](query.Servers.Name(), "One server.", "s1"), objectOf[claimObject](query.Claims.Name(), "One claim, named namespace/name.", "default/c1"),
		objectOf[bmcObject](query.BMCs.Name(), "One BMC.", "b1"), objectOf[endpointObject](query.Endpoints.Name(), "One device.", "port-7"),
		{path: "/api/v1/events", summary: "What changes, as server-sent events. An event hello says that the stream begins, change has what changed since the event before, and reload says that all has to be looked at anew. Who comes again with Last-Event-ID is told what it missed. Data is as in the schema Changes."},
		{path: "/api/v1/openapi.json", summary: "This description."},
	}
}

func listOf[R any](l query.List[R], summary string) operation {
	return operation{path: "/api/v1/" + l.Name(), summary: summary, fields: l.Fields(), answer: reflect.TypeFor[query.Result[R]](), refused: "/api/v1/" + l.Name() + "?page=x"}
}

func objectOf[O any](list, summary, example string) operation {
	return operation{
		path: "/api/v1/" + list + "/{name}", summary: summary + " It has what its row has, and spec and status as on the status branch.",
		answer: reflect.TypeFor[O](), example: "/api/v1/" + list + "/" + example,
	}
}

func description() object {
	s := &schemas{all: object{}, of: make(map[string]reflect.Type)}
	paths := object{}
	s.ref(reflect.TypeFor[changes]())
	for _, o := range operations() {
		paths[o.path] = object{"get": o.describe(s)}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Ingot", "version": "v1",
			"description": "What Ingot knows of a fleet, for reading. Errors are texts. Answers have an ETag: with If-None-Match what did not change is not sent again.",
		},
		"paths": paths, "components": object{"schemas": s.all},
	}
}

func (o operation) describe(s *schemas) object {
	content := object{"application/json": object{}}
	switch {
	case o.answer != nil:
		content = object{"application/json": object{"schema": s.ref(o.answer)}}
	case strings.HasSuffix(o.path, "/events"):
		content = object{"text/event-stream": object{"schema": object{"type": "string"}}}
	}
	text := func(description string) object {
		return object{"description": description, "content": object{"text/plain": object{"schema": object{"type": "string"}}}}
	}
	responses := object{
		"200":     object{"description": "The answer.", "content": content},
		"default": text("An error, and why. Without a valid password, or with the name of another host, it is 401 or 403; with too many wrong passwords 429."),
	}
	if o.refused != "" {
		responses["400"] = text("The request cannot be answered, and why.")
	}
	if o.answer != nil {
		responses["304"] = object{"description": "It is as it was."}
	}
	var parameters []object
	for _, m := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(o.path, -1) {
		parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		responses["404"] = text("There is no such object.")
	}
	if o.fields != nil {
		parameters = append(parameters, listParameters(o.fields)...)
	}
	if strings.HasSuffix(o.path, "/events") {
		parameters = append(parameters, object{"name": "Last-Event-ID", "in": "header", "description": "The event that was read last.", "schema": object{"type": "string"}})
		responses["503"] = text("There are as many viewers as are told of changes; Retry-After says when to come again.")
	}
	described := object{"summary": o.summary, "responses": responses}
	if len(parameters) > 0 {
		described["parameters"] = parameters
	}
	return described
}

func listParameters(fields []string) []object {
	one := func(name, description string, schema object) object {
		return object{"name": name, "in": "query", "description": description, "schema": schema}
	}
	all := []object{
		one("q", "A part of any field or label; upper and lower case are the same.", object{"type": "string"}),
		one("label", "A selector of labels as kubectl has it: rack=7,zone in (a,b),!gpu.", object{"type": "string"}),
		one("sort", "Fields to sort by, with commas between them; -FIELD is the other way round.", object{"type": "string"}),
		one("page", "Which page, from 1. One beyond the last has no rows.", object{"type": "integer", "minimum": 1, "maximum": 1000000, "default": 1}),
		one("limit", "Rows of a page.", object{"type": "integer", "minimum": 1, "maximum": query.MaxLimit, "default": query.DefaultLimit}),
	}
	values := object{"type": "array", "items": object{"type": "string"}}
	refused := map[string]string{"mac": " What is no MAC address is refused.", "network": " One that is not configured is refused."}
	for _, f := range fields {
		all = append(all,
			one(f, "Rows with one of these values; - is nothing."+refused[f], values),
			one(f+"!", "Rows with none of these values."+refused[f], values))
	}
	return all
}

func asDocument(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	must.Do(t, e.Encode(description()))
	return b.Bytes()
}

func TestTheDescriptionIsThatOfTheTypes(t *testing.T) {
	want := asDocument(t)
	if *update {
		must.Do(t, os.WriteFile("openapi.json", want, 0o600))
		return
	}
	if diff := cmp.Diff(string(want), string(openAPI)); diff != "" {
		t.Errorf("openapi.json (-want +got; -update writes it anew):\n%s", diff)
	}
}

func schemaOf(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	doc := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(openAPI)))(t)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	must.Do(t, c.AddResource("mem:///openapi.json", doc))
	pointer := "/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) + "/get/responses/200/content/application~1json/schema"
	return must.Get(c.Compile("mem:///openapi.json#" + pointer))(t)
}

// Each answer has what the description requires, and nothing that it does not tell of.
func TestAnswersAreAsDescribed(t *testing.T) {
	fleet := newLive(3)
	fleet.set(1, model.StateError)
	o := Options{Fleet: fleet}
	for _, op := range operations() {
		if op.answer == nil {
			continue
		}
		asked := op.path
		if op.example != "" {
			asked = op.example
		}
		w := ask(o, http.MethodGet, asked)
		answer, err := jsonschema.UnmarshalJSON(w.Body)
		if w.Code != http.StatusOK || err != nil {
			t.Fatalf("%s: got %d, %v", asked, w.Code, err)
		}
		if err := schemaOf(t, op.path).Validate(answer); err != nil {
			t.Errorf("%s: %v", asked, err)
		}
		if list, is := answer.(map[string]any)["items"]; is && len(list.([]any)) == 0 {
			t.Errorf("%s: there is no row that could be wrong", asked)
		}
	}
}

// What is described to be refused with 400 is.
func TestRefusalsAreAsDescribed(t *testing.T) {
	for _, op := range operations() {
		if op.refused == "" {
			continue
		}
		if got := ask(Options{Fleet: newLive(1)}, http.MethodGet, op.refused).Code; got != http.StatusBadRequest {
			t.Errorf("%s: got %d", op.refused, got)
		}
	}
}

// An empty fleet's answers are as described, too: nothing is null.
func TestAnswersOfAnEmptyFleetAreAsDescribed(t *testing.T) {
	for _, op := range operations() {
		if op.answer == nil || op.example != "" {
			continue
		}
		answer := must.Get(jsonschema.UnmarshalJSON(ask(Options{Fleet: aFleet{}}, http.MethodGet, op.path).Body))(t)
		if err := schemaOf(t, op.path).Validate(answer); err != nil {
			t.Errorf("%s: %v", op.path, err)
		}
	}
}

// All that is served below /api/v1 is described, and the other way round.
func TestAllPathsAreDescribed(t *testing.T) {
	var described, served []string
	for _, op := range operations() {
		described = append(described, op.path)
	}
	files := must.Get(os.ReadDir("."))(t)
	pattern := regexp.MustCompile(`"GET (/api/v1/[^"]+)"`)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		text := must.Get(os.ReadFile(f.Name()))(t)
		for _, m := range pattern.FindAllSubmatch(text, -1) {
			served = append(served, strings.Replace(string(m[1]), "...}", "}", 1))
		}
		for _, m := range regexp.MustCompile(`serve(Rows|Facts|Object)\(h, mux, query\.(\w+),`).FindAllSubmatch(text, -1) {
			path := "/api/v1/" + strings.ToLower(string(m[2]))
			if string(m[1]) == "Object" {
				path += "/{name}"
			}
			served = append(served, path)
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	if diff := cmp.Diff(described, served); diff != "" {
		t.Errorf("paths (-described +served):\n%s", diff)
	}
	w := ask(Options{}, http.MethodGet, "/api/v1/openapi.json")
	var doc struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Header().Get("Content-Type") != "application/json" || doc.OpenAPI != "3.1.0" {
		t.Errorf("what is served: %v, %q", err, doc.OpenAPI)
	}
	if diff := cmp.Diff(described, slices.Sorted(maps.Keys(doc.Paths))); diff != "" {
		t.Errorf("paths of what is served (-want +got):\n%s", diff)
	}
}
