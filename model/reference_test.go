package model

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const kindsHead = `# Kinds and fields

What a repository may hold. This page is made of the source: ` + "`go test ./model -run TestKindReference -update`" + `. The same for
editors are the [JSON Schemas](../manifests.md#in-the-editor); what is wrong with a file ` + "`ingot validate`" + ` says.

All kinds but Secret have ` + "`apiVersion: " + APIVersion + "`" + `; a ` + "`List`" + ` holds several objects. A field that is not listed is an
error. Fields that are **required** have to be there, with the mapping that holds them.
`

// TestKindReference holds docs/reference/kinds.md to the Go types, the schemas and the tables of
// the decoder, and with -update writes it anew.
func TestKindReference(t *testing.T) {
	about := commentsOf(t, "kinds.go")
	var doc strings.Builder
	doc.WriteString(kindsHead)
	rows := fieldRows{writer: schemaWriter{used: make(map[string]bool)}}
	for _, kind := range Kinds {
		fmt.Fprintf(&doc, "\n## %s\n\n%s%s\n", kind, strings.TrimSuffix(about[string(kind)], "."), namespacedText(kind))
		rows.of(kind)
		rows.flush(&doc)
	}
	doc.WriteString("\n## metadata\n\nOf all kinds.\n")
	rows.structure("metadata.", reflect.TypeFor[Meta]())
	rows.flush(&doc)
	doc.WriteString("\n## Annotations\n\n| annotation | on | values | meaning |\n|---|---|---|---|\n")
	for _, name := range append([]string{AnnotationOperation}, slices.Sorted(maps.Keys(annotations))...) {
		fmt.Fprintf(&doc, "| `%s` | %s | %s | %s |\n", name, annotatedKinds(name), codes(annotationValues(name)), cell(about[name]))
		if about[name] == "" {
			t.Errorf("nothing says what annotation %s is for: say it beside its constant", name)
		}
	}
	doc.WriteString("\n## Kinds that are refused\n\n| kind | why |\n|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(refusedKinds)) {
		fmt.Fprintf(&doc, "| %s | %s |\n", kind, cell(refusedKinds[kind]))
	}
	compareGolden(t, "../docs/reference/kinds.md", doc.String())
}

func namespacedText(kind Kind) string {
	if kind.Namespaced() {
		return ". It stands in a namespace."
	}
	return "."
}

func annotatedKinds(name string) string {
	if name == AnnotationOperation {
		return "Server; `ignore` and `retry` also on a BMC"
	}
	var names []string
	for _, kind := range annotations[name].kinds {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// annotationValues are the values that an annotation may have, nil if they are not enumerated.
func annotationValues(name string) []string {
	if name != AnnotationOperation {
		return annotations[name].values
	}
	var known []string
	for operation, does := range operations {
		if does {
			known = append(known, operation)
		}
	}
	slices.Sort(known)
	return known
}

// fieldRows are the lines of a table of fields.
type fieldRows struct {
	writer schemaWriter
	lines  []string
}

// of adds the fields of a kind, without its metadata.
func (r *fieldRows) of(kind Kind) {
	t := reflect.TypeOf(kindTable[kind].new()).Elem()
	for _, f := range newStructPlan(t).fields {
		if f.name != "metadata" {
			r.field(t, f, "")
		}
	}
	if kind.secret() {
		r.add("data", textsByKey, false, "base64", "Values in base64.")
		r.add("stringData", textsByKey, false, "", "Values as they are; of two by one name in data and here this one counts.")
		r.add("sops", "mapping", false, "", "What SOPS needs to decrypt the values: see [secrets.md](../secrets.md).")
	}
}

func (r *fieldRows) structure(prefix string, t reflect.Type) {
	for _, f := range newStructPlan(t).fields {
		r.field(t, f, prefix)
	}
}

func (r *fieldRows) field(within reflect.Type, f fieldPlan, prefix string) {
	field := within.FieldByIndex(f.index)
	name := within.Name() + "." + f.name
	_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	s, required := r.writer.field(name, field.Type, options == "")
	t, list := field.Type, ""
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice {
		t, list = t.Elem(), "[]"
	}
	rule := fieldSchemas[name]
	values := cmp.Or(codes(enumerated(s)), bounds(rule), strings.TrimPrefix(rule.text.want, "want "))
	r.add(prefix+f.name+list, typeWord(t, list), required, values, rule.about)
	if t.Kind() == reflect.Struct {
		r.structure(prefix+f.name+list+".", t)
	}
}

const textsByKey = "mapping of texts"

func (r *fieldRows) add(path, kind string, required bool, values, says string) {
	if required {
		kind += ", **required**"
	}
	r.lines = append(r.lines, fmt.Sprintf("| `%s` | %s | %s | %s |\n", path, kind, cell(values), cell(says)))
}

// bounds are those of a number, or of how many entries a list may have.
func bounds(rule fieldSchema) string {
	switch {
	case rule.least > 0:
		return fmt.Sprintf("%d to %d", rule.least, rule.most)
	case rule.most > 0:
		return fmt.Sprintf("at most %d", rule.most)
	}
	return ""
}

func (r *fieldRows) flush(doc *strings.Builder) {
	doc.WriteString("\n| field | type | values | meaning |\n|---|---|---|---|\n" + strings.Join(r.lines, ""))
	r.lines = nil
}

// enumerated are the values of an enumeration, nil for other fields.
func enumerated(s schema) (values []string) {
	switch enum := s["enum"].(type) {
	case []string:
		return enum
	case []any:
		for _, v := range enum {
			if text, ok := v.(string); ok && text != "" {
				values = append(values, text)
			}
		}
	}
	return values
}

func typeWord(t reflect.Type, list string) string {
	var word string
	switch t.Kind() {
	case reflect.String:
		word = "text"
	case reflect.Bool:
		word = "true or false"
	case reflect.Map:
		word = textsByKey
	case reflect.Struct:
		word = "mapping"
	default:
		word = "number"
	}
	return cmp.Or(map[string]string{"": word}[list], "list of "+word+"s")
}

func codes(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return "`" + strings.Join(all, "`, `") + "`"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
