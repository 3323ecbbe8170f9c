package config

import (
	"encoding"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/oci"
	"ingot/model"
	"ingot/model/must"
)

var update = flag.Bool("update", false, "write docs/reference/configuration.md anew")

const docs = "../../../docs/"

const referenceHead = `# Configuration keys

All keys of the file that ` + "`ingot run --config`" + ` reads. This page is made of the source: keys, types and defaults of the program,
meanings of [examples/ingot.yaml](../../examples/ingot.yaml), by ` + "`go test ./cmd/daemon/config -run TestReference -update`" + `.

A variable wins over the file. Lists and mappings have no variable. Durations are ` + "`90s`, `5m`, `1h`" + `, sizes ` + "`20GiB`" + `. A key that does not exist is an error, with the
nearest name that does. Ingot reads its configuration at its start alone; files that keys name are read again when they change, where it
says so.
`

// entryFields are lists of mappings: the type of their entries, and the page that says what their
// fields mean.
var entryFields = []struct {
	key  string
	of   reflect.Type
	page string
}{
	{"boot.registries", reflect.TypeFor[oci.Registry](), "booting.md"},
	{"git.tenants", reflect.TypeFor[model.Tenant](), "tenants.md"},
	{"dhcp", reflect.TypeFor[dhcp.Network](), "networks.md"},
}

// TestReferenceIsComplete holds docs/reference/configuration.md to the settings and to what
// examples/ingot.yaml says of them, and with -update writes it anew.
func TestReferenceIsComplete(t *testing.T) {
	about := exampleComments(t)
	opts := Default()
	var doc strings.Builder
	doc.WriteString(referenceHead)
	section := ""
	for _, s := range settings(&opts) {
		if of := sectionOf(s.path); of != section {
			section = of
			fmt.Fprintf(&doc, "\n## %s\n\n", section)
			if s.path != section && about[section] != "" {
				doc.WriteString(about[section] + "\n\n")
			}
			doc.WriteString("| key | type | default | variable | meaning |\n|---|---|---|---|---|\n")
		}
		if about[s.path] == "" {
			t.Errorf("examples/ingot.yaml does not say what %s is for: write it above the key", s.path)
		}
		kind, variable := typeText(s.value), s.variable
		if k := s.value.Kind(); k == reflect.Slice || k == reflect.Map {
			variable = ""
		}
		fmt.Fprintf(&doc, "| `%s` | %s | %s | %s | %s |\n", s.path, kind, defaultText(t, s), code(variable), cell(about[s.path]))
	}
	doc.WriteString("\n## Entries of lists\n\n| list | fields of an entry | explained in |\n|---|---|---|\n")
	for _, e := range entryFields {
		page := must.Get(os.ReadFile(docs + e.page))(t)
		for _, l := range entriesOf(e.of, e.key+"[]") {
			fmt.Fprintf(&doc, "| `%s` | `%s` | [%s](../%s) |\n", l.path, strings.Join(l.fields, "`, `"), e.page, e.page)
			for _, name := range l.fields {
				if !regexp.MustCompile(`\b` + name + `\b`).Match(page) {
					t.Errorf("docs/%s does not say what %s.%s is for", e.page, l.path, name)
				}
			}
		}
	}
	golden(t, docs+"reference/configuration.md", doc.String())
}

func sectionOf(path string) string {
	section, _, _ := strings.Cut(path, ".")
	return section
}

func exampleComments(t *testing.T) map[string]string {
	t.Helper()
	content := must.Get(os.ReadFile("../../../examples/ingot.yaml"))(t)
	var root yaml.Node
	must.Do(t, yaml.Unmarshal(content, &root))
	all := make(map[string]string)
	var walk func(n *yaml.Node, prefix string)
	walk = func(n *yaml.Node, prefix string) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			all[prefix+key.Value] = commentText(key.HeadComment)
			if value.Kind == yaml.MappingNode {
				walk(value, prefix+key.Value+".")
			}
		}
	}
	walk(root.Content[0], "")
	return all
}

var pageName = regexp.MustCompile(`docs/([a-z-]+\.md)`)

// commentText is a comment in one line, without the examples in it.
func commentText(comment string) string {
	var lines []string
	for line := range strings.Lines(comment) {
		if line = strings.TrimPrefix(line, "#"); !strings.HasPrefix(line, "   - ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return pageName.ReplaceAllString(strings.TrimSpace(strings.Join(lines, " ")), "[$1](../$1)")
}

const listOfMappings = "list of mappings"

func typeText(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Duration:
		return "duration"
	case Age:
		return "duration, or days (`90d`)"
	case ByteSize:
		return "size"
	case []string, model.BMCNetworks:
		return "list"
	case map[string]string:
		return "mapping"
	}
	switch v.Kind() {
	case reflect.Slice:
		return listOfMappings
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	default:
		return "text"
	}
}

// defaultText is the default of a setting as it is written.
func defaultText(t *testing.T, s setting) string {
	t.Helper()
	if s.path == "git.url" {
		return "**required**"
	}
	switch v := s.value.Interface().(type) {
	case time.Duration:
		return code(regexp.MustCompile(`(\D)0s$`).ReplaceAllString(regexp.MustCompile(`(\D)0m0s$`).ReplaceAllString(v.String(), "$1"), "$1"))
	case encoding.TextMarshaler:
		text := must.Get(v.MarshalText())(t)
		return "`" + string(text) + "`"
	case []string:
		return code(strings.Join(v, ", "))
	case string:
		return code(v)
	}
	if k := s.value.Kind(); k == reflect.Slice || k == reflect.Map {
		return ""
	}
	return code(fmt.Sprint(s.value.Interface()))
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// entry is a mapping within a list, and what it may have.
type entry struct {
	path   string
	fields []string
}

func entriesOf(of reflect.Type, path string) []entry {
	own, within := entry{path: path}, []entry(nil)
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		own.fields = append(own.fields, name)
		t := field.Type
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			if t.Kind() == reflect.Slice {
				name += "[]"
			}
			t = t.Elem()
		}
		if _, text := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(t)); t.Kind() == reflect.Struct && !text && strings.HasPrefix(t.PkgPath(), "ingot/") {
			within = append(within, entriesOf(t, path+"."+name)...)
		}
	}
	return append([]entry{own}, within...)
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what is generated; make it anew with -update (-is +should):\n%s", file, diff)
	}
}
