package model

import (
	"maps"
	"reflect"
	"strings"
)

// schemaWriter makes the schema of a kind from its Go type. Two keywords are no standard's: VS
// Code and others show patternErrorMessage in place of a regular expression, and
// deprecationMessage as a warning, for what the decoder warns of.
type schemaWriter struct {
	kind  Kind
	about map[string]string // what types and annotations are for
	used  map[string]bool   // names in fieldSchemas
}

func (w *schemaWriter) document() schema {
	s, _ := w.structure(reflect.TypeOf(kindTable[w.kind].new()).Elem())
	s["title"], s["description"] = string(w.kind), w.about[string(w.kind)]
	s["required"] = append([]string{"apiVersion", "kind"}, s["required"].([]string)...)
	p := s["properties"].(schema)
	p["kind"], p["apiVersion"] = schema{"const": w.kind}, schema{"const": "v1"}
	if !kindTable[w.kind].core {
		alias := anyCase(aliasGroup + "/v1alpha1")
		names := []schema{{"const": APIVersion}, {"type": "string", "pattern": "^" + alias + "$"}}
		if w.kind == KindServerMaintenance {
			names = append(names, schema{"const": MaintenanceVersion})
		}
		p["apiVersion"] = schema{"anyOf": names}
	}
	metadata := p["metadata"].(schema)["properties"].(schema)
	metadata["annotations"].(schema)["properties"] = w.annotations()
	if !w.kind.Namespaced() {
		metadata["namespace"] = schema{"type": nullOr("string"), "deprecationMessage": "a " + string(w.kind) + " has no namespace: ignored"}
	}
	if w.kind == KindImageCatalog {
		metadata["name"] = schema{"const": CatalogName}
	}
	if w.kind.secret() {
		secretSchemas(s, p)
	}
	return s
}

func anyCase(text string) string {
	var b strings.Builder
	for _, c := range text {
		lower, upper := strings.ToLower(string(c)), strings.ToUpper(string(c))
		switch {
		case lower != upper:
			b.WriteString("[" + lower + upper + "]")
		case c == '.':
			b.WriteString(`\.`)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// secretSchemas adds the values of a secret. Those of one that is encrypted are what SOPS makes
// of them.
func secretSchemas(s, properties schema) {
	values := func(about string, value textSchema) schema {
		return schema{
			"type": nullOr("object"), "description": about, "additionalProperties": value.schema(false),
			"propertyNames": textSchema{pattern: secretKeyPattern, want: `want letters, digits, "-", "_" and "."`, max: 253}.schema(true),
		}
	}
	s["if"] = schema{"not": schema{"required": []string{"sops"}}}
	s["then"] = schema{"properties": schema{
		"data":       values("Values in base64.", textSchema{pattern: base64Pattern, want: "want base64, or move it to stringData"}),
		"stringData": values("Values as they are; of two by one name in data and here this one counts.", textSchema{}),
		"immutable":  properties["immutable"],
	}}
	properties["sops"] = schema{"description": "What SOPS needs to decrypt the values."}
	properties["data"], properties["stringData"], properties["immutable"] = true, true, true
}

func (w *schemaWriter) structure(t reflect.Type) (s schema, required bool) {
	plan, properties, names := newStructPlan(t), schema{}, []string{}
	for _, f := range plan.fields {
		field := t.FieldByIndex(f.index)
		_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, needed := w.field(t.Name()+"."+f.name, field.Type, options == "")
		if needed {
			names = append(names, f.name)
		}
		properties[f.name] = value
	}
	for name, extra := range plan.extras {
		value := schema{}
		if extra.alias != "" {
			value = maps.Clone(properties[extra.alias].(schema))
		}
		value["deprecationMessage"] = extra.warning
		properties[name] = value
	}
	s = schema{"type": "object", "properties": properties, "additionalProperties": false, "required": names}
	maps.Copy(s, structSchemas[t.Name()])
	return s, len(names) > 0
}

// field is the schema of a field, and whether it is required: one that has no zero value to
// leave out, and of which the zero value is wrong.
func (w *schemaWriter) field(name string, t reflect.Type, noZero bool) (s schema, required bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	rule := fieldSchemas[name]
	if t.Kind() != reflect.Struct || t != reflect.TypeFor[Meta]() {
		w.used[name] = true
	}
	switch t.Kind() {
	case reflect.String:
		text := rule.text
		if text.pattern == "" && text.values == nil {
			text.values = allowedValues[t]
		}
		s, required = text.schema(noZero), noZero
	case reflect.Struct:
		s, required = w.structure(t)
		required = required && noZero
	case reflect.Slice:
		item, _ := w.item(name+"[]", t.Elem())
		s, required = schema{"type": "array", "items": item}, noZero && rule.least > 0
		bound(s, rule, "minItems", "maxItems")
	case reflect.Map:
		s = schema{"type": "object", "propertyNames": keyText.schema(true), "additionalProperties": valueText.schema(false)}
		bound(s, rule, "minProperties", "maxProperties")
		if name == "Meta.annotations" {
			s["propertyNames"] = textSchema{pattern: annotationKey, want: keyWant, max: keyText.max}.schema(true)
			s["additionalProperties"] = textSchema{}.schema(false)
		}
	case reflect.Bool:
		s = schema{"type": "boolean"}
	default:
		s, required = schema{"type": "integer"}, noZero && rule.least > 0
		bound(s, rule, "minimum", "maximum")
	}
	if kind, is := s["type"].(string); is && !required {
		s["type"] = nullOr(kind)
	}
	if rule.about != "" {
		s["description"] = rule.about
	}
	return s, required
}

// item is the schema of a list's entry, which is never null.
func (w *schemaWriter) item(name string, t reflect.Type) (schema, bool) {
	if t.Kind() == reflect.Struct {
		return w.structure(t)
	}
	s, _ := w.field(name, t, false)
	s["type"] = "string"
	return s, false
}

func bound(s schema, rule fieldSchema, least, most string) {
	if rule.least != 0 {
		s[least] = rule.least
	}
	if rule.most != 0 {
		s[most] = rule.most
	}
}

// nullOr are the types of what may be left out, and so be null.
func nullOr(kind string) []string { return []string{kind, "null"} }

// schema is the schema of a text that is required, or may be left out, and so be empty or null.
func (x textSchema) schema(required bool) schema {
	s := schema{}
	switch {
	case x.values != nil && required:
		return schema{"enum": x.values}
	case x.values != nil:
		values := []any{}
		for _, v := range x.values {
			values = append(values, v)
		}
		return schema{"enum": append(values, "", nil)}
	case required:
		s["type"], s["minLength"] = "string", 1
	default:
		s["type"] = nullOr("string")
	}
	if x.pattern != "" {
		s["pattern"] = "^(?:" + x.pattern + ")" + map[bool]string{false: "?"}[required] + "$"
		delete(s, "minLength")
		if x.want != "" {
			s["patternErrorMessage"] = x.want
		}
	}
	if x.not != "" {
		s["not"] = schema{"type": "string", "pattern": "^(?:" + x.not + ")$"}
	}
	if x.max > 0 {
		s["maxLength"] = x.max
	}
	return s
}
