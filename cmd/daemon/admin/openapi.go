package admin

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/reconcile/report"
)

type object = map[string]any

// description describes the API (OpenAPI 3.1), by the types of the documents.
func description() object {
	s := &schemas{all: object{}, of: make(map[string]reflect.Type)}
	get := func(summary string, schema object, parameters ...object) object {
		text := func(description string) object {
			return object{"description": description, "content": object{"text/plain": object{"schema": object{"type": "string"}}}}
		}
		kind := "application/json"
		if schema == nil {
			kind, schema = "text/event-stream", object{"type": "string"}
		}
		return object{"get": object{"summary": summary, "parameters": append([]object{}, parameters...), "responses": object{
			"200":     object{"description": "The answer.", "content": object{kind: object{"schema": schema}}},
			"304":     object{"description": "Unchanged."},
			"default": text("An error. 400: the request is wrong. 401, 403: the client may not read this. 404: there is no such object. 503: too many clients or passwords at the same time."),
		}}}
	}
	parameter := func(in, name, description string) object {
		return object{"in": in, "name": name, "description": description, "required": in == "path", "schema": object{"type": "string"}}
	}
	name := parameter("path", "name", "The name, of a claim NAMESPACE/NAME. An Endpoint may be named by its MAC address.")
	paths := object{
		"/api/v1/fleet":        get("The fleet: revision in force, lists that wait for approval, problems in manifests, counts.", s.ref(reflect.TypeFor[report.Fleet]())),
		"/api/v1/leases":       get("DHCP leases, at most 50,000.", listOf(s.ref(reflect.TypeFor[report.LeaseRow]()))),
		"/api/v1/pools":        get("DHCP pools.", listOf(s.ref(reflect.TypeFor[report.PoolRow]()))),
		"/api/v1/images":       get("Blobs in the image cache.", listOf(s.ref(reflect.TypeFor[report.ImageRow]()))),
		"/api/v1/cards/{mac}":  get("A network card, and its requests to this process.", s.ref(reflect.TypeFor[report.Card]()), parameter("path", "mac", "The MAC address.")),
		"/api/v1/openapi.json": get("This description.", object{"type": "object"}),
		"/api/v1/events": get("Changes, as server-sent events: hello, change and reload. Their data is {\"changes\": [Change]}.", nil,
			parameter("header", "Last-Event-ID", "The last event that the client read.")),
	}
	s.ref(reflect.TypeFor[change]())
	for _, f := range report.Folders() {
		schema := s.document(f)
		paths["/api/v1/"+string(f)] = get("The "+string(f)+".", listOf(schema),
			parameter("query", "labelSelector", "A selector as of kubectl -l: rack=7,zone in (a,b),!gpu."),
			parameter("query", "q", "A part of a name, label, address or other short text; case is ignored."))
		paths["/api/v1/"+string(f)+"/{name}"] = get("One "+f.Noun()+".", schema, name)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Ingot", "version": "v1",
			"description": "The documents of the status branch, and facts that only a running process has. Read-only. Errors are plain text.",
		},
		"paths": paths, "components": object{"schemas": s.all},
	}
}

func listOf(schema object) object {
	return object{"type": "object", "properties": object{"items": object{"type": "array", "items": schema}}, "required": []string{"items"}}
}

// schemas are those of Go types, as they are in JSON.
type schemas struct {
	all object // by name
	of  map[string]reflect.Type
}

func (s *schemas) document(f report.Folder) object {
	name := strings.ToUpper(string(f)[:1]) + string(f)[1:] + "Document"
	properties := object{"apiVersion": object{"type": "string"}, "kind": object{"type": "string"}, "metadata": s.ref(reflect.TypeFor[report.Metadata]())}
	spec, status, decided := report.SectionsOf(f)
	for section, t := range map[string]reflect.Type{"spec": spec, "status": status, "decided": decided} {
		if t != nil {
			properties[section] = s.ref(t)
		}
	}
	s.all[name] = object{"type": "object", "properties": properties, "required": []string{"apiVersion", "kind", "metadata"}}
	return object{"$ref": "#/components/schemas/" + name}
}

// ref returns a reference to the schema of a type, or the schema of one without a name.
func (s *schemas) ref(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[metav1.Time](): // null if it is unknown
		return object{"type": []string{"string", "null"}, "format": "date-time"}
	}
	if t.Kind() != reflect.Pointer && (t.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]())) {
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.ref(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint64, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string"}
		}
		return object{"type": "array", "items": s.ref(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.ref(t.Elem())}
	case reflect.Struct:
		return s.structRef(t)
	default:
	}
	panic(fmt.Sprintf("no schema for %s", t)) // a test describes all types
}

// notInName are letters that a reference may not have.
var notInName = regexp.MustCompile(`[^A-Za-z0-9]`)

func (s *schemas) structRef(t reflect.Type) object {
	name := strings.ToUpper(t.Name()[:1]) + notInName.ReplaceAllString(t.Name()[1:], "")
	if known := s.of[name]; known != nil && known != t {
		of := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
		name = strings.ToUpper(of[:1]) + of[1:] + name
	}
	if s.of[name] == nil {
		s.of[name] = t
		properties, required := object{}, []string{}
		s.fields(t, properties, &required)
		s.all[name] = object{"type": "object", "properties": properties, "required": required}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (s *schemas) fields(t reflect.Type, properties object, required *[]string) {
	for f := range t.Fields() {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && key == "":
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			s.fields(of, properties, required)
		case key == "" || key == "-":
		default:
			properties[key] = s.ref(f.Type)
			if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
				*required = append(*required, key)
			}
		}
	}
}
