package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ingot/model/must"
)

const schemaFolder = "../examples/schemas"

// TestSchemas holds the JSON Schemas of the kinds to the Go types that they are made from, and
// with -update writes them anew.
func TestSchemas(t *testing.T) {
	want := schemas(t)
	if *updateGolden {
		must.Do(t, os.MkdirAll(schemaFolder, 0o755))
	}
	for name, s := range want {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		must.Do(t, enc.Encode(s))
		compareGolden(t, filepath.Join(schemaFolder, name+".json"), text.String())
	}
	files := must.Get(os.ReadDir(schemaFolder))(t)
	for _, f := range files {
		if want[strings.TrimSuffix(f.Name(), ".json")] == nil {
			t.Errorf("%s/%s is the schema of no kind", schemaFolder, f.Name())
		}
	}
}

func TestSchemasSayWhatEachFieldIsFor(t *testing.T) {
	used := make(map[string]bool)
	for _, kind := range Kinds {
		w := schemaWriter{kind: kind, used: used}
		w.document()
	}
	for name := range used {
		if fieldSchemas[name].about == "" {
			t.Errorf("fieldSchemas lacks %s: say there what it is for, and which values it takes", name)
		}
	}
	for name := range fieldSchemas {
		if !used[name] {
			t.Errorf("fieldSchemas has %s, which is no field", name)
		}
	}
}

// schema is a JSON Schema, draft 2020-12.
type schema map[string]any

const schemaDraft = "https://json-schema.org/draft/2020-12/schema"

// schemas returns the schemas by their file's name: one of each kind, one of lists, and "all"
// of whatever a file may hold.
func schemas(t *testing.T) map[string]schema {
	all, about := make(map[string]schema), commentsOf(t, "kinds.go")
	var kinds, lists []string
	var cases []schema
	defs := schema{}
	add := func(name string, s schema, kinds ...string) {
		defs[name] = s
		cases = append(cases, schema{"if": has("kind", kinds...), "then": schema{"$ref": "#/$defs/" + name}})
	}
	for _, kind := range Kinds {
		w := schemaWriter{kind: kind, about: about, used: make(map[string]bool)}
		s := w.document()
		all[string(kind)] = withDraft(s)
		kinds, lists = append(kinds, string(kind)), append(lists, string(kind)+"List")
		add(string(kind), s, string(kind))
	}
	lists = append([]string{"List"}, lists...)
	add("List", schema{
		"type": "object", "title": "List", "description": "List holds other objects, as kubectl writes them.",
		"required": []string{"apiVersion", "kind"},
		"properties": schema{
			"apiVersion": schema{"type": "string"},
			"kind":       schema{"enum": lists},
			"items":      schema{"type": []string{"array", "null"}, "items": schema{"$ref": "#/$defs/Manifest"}},
		},
	}, lists...)
	defs["Manifest"] = schema{
		"type": "object", "title": "Manifest of Ingot", "required": []string{"apiVersion", "kind"},
		"properties": schema{"apiVersion": schema{"type": "string"}, "kind": schema{"enum": append(kinds, lists...)}},
		"allOf":      cases,
	}
	all["List"] = schema{"$schema": schemaDraft, "$ref": "#/$defs/List", "$defs": defs}
	all["all"] = schema{"$schema": schemaDraft, "$ref": "#/$defs/Manifest", "$defs": defs}
	return all
}

func withDraft(s schema) schema {
	s = maps.Clone(s)
	s["$schema"] = schemaDraft
	return s
}

func commentsOf(t *testing.T, name string) map[string]string {
	file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments))(t)
	about, values := make(map[string]string), make(map[string]string)
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				about[s.Name.Name] = new(doc.Package).Synopsis(d.Doc.Text())
			case *ast.ValueSpec:
				if len(s.Values) != 1 {
					continue
				}
				if value, ok := constantText(s.Values[0], values); ok {
					values[s.Names[0].Name] = value
					about[value] = strings.Join(strings.Fields(s.Doc.Text()), " ")
				}
			}
		}
	}
	names := regexp.MustCompile(`\w+`)
	for of, comment := range about {
		about[of] = names.ReplaceAllStringFunc(comment, func(name string) string { return cmp.Or(values[name], name) })
	}
	return about
}

func constantText(e ast.Expr, known map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := known[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, ok := constantText(e.X, known)
		right, ok2 := constantText(e.Y, known)
		return left + right, ok && ok2 && e.Op == token.ADD
	}
	return "", false
}
