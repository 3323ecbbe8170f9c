package admin

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/report"
)

// object is one of JSON.
type object = map[string]any

// schemas are those of Go types, as they are in JSON. All fields are told of, and no others
// may be there.
type schemas struct {
	all object // by name
	of  map[string]reflect.Type
}

var either = map[string][]reflect.Type{
	"ClaimObject.spec":   {reflect.TypeFor[model.ServerClaimSpec](), reflect.TypeFor[report.BootConfigurationSpec]()},
	"ClaimObject.status": {reflect.TypeFor[report.ClaimStatus](), reflect.TypeFor[report.BootConfigurationStatus]()},
}

// ref returns a reference to the schema of a type, or the schema of one without a name.
func (s *schemas) ref(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[metav1.Time](): // null where nobody knows when it was
		return object{"type": []any{"string", "null"}, "format": "date-time"}
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
	case reflect.Uint64, reflect.Uint8, reflect.Uint32:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": s.ref(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.ref(t.Elem())}
	case reflect.Struct:
		return s.structRef(t)
	default:
	}
	panic(fmt.Sprintf("no schema for %s", t))
}

func (s *schemas) structRef(t reflect.Type) object {
	name := schemaName(t)
	if known := s.of[name]; known != nil && known != t {
		name = strings.ToUpper(t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:][:1]) + t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+2:] + name
	}
	if s.of[name] == nil {
		s.of[name] = t
		s.all[name] = s.structSchema(name, t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// schemaName is what a type is called: of query.Result[*query.Server] it is ServerList.
func schemaName(t reflect.Type) string {
	name := t.Name()
	if of, is := strings.CutPrefix(name, "Result["); is {
		return strings.TrimSuffix(of[strings.LastIndex(of, ".")+1:], "]") + "List"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

func (s *schemas) structSchema(name string, t reflect.Type) object {
	properties, required := object{}, []any{}
	s.fields(name, t, properties, &required)
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func (s *schemas) fields(name string, t reflect.Type, properties object, required *[]any) {
	for f := range t.Fields() {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && key == "":
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			s.fields(name, of, properties, required)
			continue
		case key == "" || key == "-":
			continue
		}
		if all := either[name+"."+key]; all != nil {
			var refs []any
			for _, one := range all {
				refs = append(refs, s.ref(one))
			}
			properties[key] = object{"anyOf": refs}
		} else {
			properties[key] = s.ref(f.Type)
		}
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, key)
		}
	}
}
