package model

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"ingot/model/must"
)

// onlyDecoder are the errors that no schema can tell, by what the decoder says.
var onlyDecoder = []struct {
	says, why string
}{
	{says: "no valid YAML", why: "a schema is for what was parsed"},
	{says: "left by a merge conflict", why: "a schema is for what was parsed"},
	{says: "aliases", why: "they are resolved before a schema is asked"},
	{says: "is given twice, first in line", why: "of two keys a schema is shown one"},
	{says: "as a key, want a string", why: "keys of JSON are strings"},
	{says: "found a key that is none", why: "keys of JSON are strings, also where YAML has a number"},
	{says: "in decimal digits", why: "numbers are read before a schema is asked"},
	{says: "is encrypted with SOPS", why: "as it stands in Git it is right, and an editor has no key"},
	{says: "is given twice", why: "no keyword compares a part of the entries of a list"},
	{says: "too: keep one of them", why: "no schema knows the options of DHCP"},
	{says: "the repository is longer than 255 bytes", why: "no keyword measures a part of a text"},
	{says: "found two keys on one line", why: "the comment of a key may be any text"},
	{says: "give each entry one of its own", why: "no keyword compares a part of the entries of a list"},
}

// TestSchemasJudgeAsTheDecoderDoes: of each manifest in the examples, in testdata and in the
// tests, what the decoder calls an error the schema calls one in the same place, and the other
// way round.
func TestSchemasJudgeAsTheDecoderDoes(t *testing.T) {
	j := newJudge(t)
	for _, folder := range []string{"../examples", "../docs", "testdata/broken", "testdata/fields"} {
		j.folder(folder)
	}
	j.scripts("../cmd/ingot/testdata/script")
	for _, kind := range Kinds {
		wrongFieldsOf(t, kind, func(text []byte) { j.file("testdata/fields of "+string(kind), text) })
		j.otherValues(kind)
	}
	for _, folder := range []string{".", "../gitsource", "../cmd/ingot", "../features"} {
		j.tests(folder)
	}
	for i, e := range onlyDecoder {
		if !j.needed[i] {
			t.Errorf("the exception %q is not needed any more: take it out", e.says)
		}
	}
	t.Logf("%d manifests, %d of them wrong", j.manifests, j.wrong)
	if j.manifests < 300 || j.wrong < 200 {
		t.Errorf("only %d manifests were found, %d of them wrong", j.manifests, j.wrong)
	}
}

// judge compares schema and decoder.
type judge struct {
	t                *testing.T
	all              *jsonschema.Schema
	kinds            map[Kind]*jsonschema.Schema
	needed           map[int]bool // entries of onlyDecoder
	manifests, wrong int
}

func newJudge(t *testing.T) *judge {
	compiler := jsonschema.NewCompiler()
	compile := func(name string) *jsonschema.Schema {
		return must.Get(compiler.Compile(filepath.Join(schemaFolder, name+".json")))(t)
	}
	j := &judge{t: t, all: compile("all"), kinds: make(map[Kind]*jsonschema.Schema), needed: make(map[int]bool)}
	for _, kind := range append([]Kind{"List"}, Kinds...) {
		j.kinds[kind] = compile(string(kind))
	}
	return j
}

func (j *judge) folder(folder string) {
	fenced := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	must.Do(j.t, filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		switch {
		case err != nil:
			return err
		case filepath.Ext(name) == ".md":
			for _, block := range fenced.FindAllSubmatch(data, -1) {
				if strings.Contains(string(block[1]), "apiVersion") {
					j.file(name, block[1])
				}
			}
		case filepath.Ext(name) == ".yaml" && strings.Contains(string(data), "apiVersion"):
			j.file(name, data)
		}
		return nil
	}))
}

func (j *judge) scripts(folder string) {
	names, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(names) == 0 {
		j.t.Fatal(names, err)
	}
	for _, name := range names {
		archive := must.Get(txtar.ParseFile(name))(j.t)
		for _, f := range archive.Files {
			if strings.Contains(string(f.Data), "kind: ") {
				j.file(name+" "+f.Name, f.Data)
			}
		}
	}
}

func (j *judge) tests(folder string) {
	names := must.Get(filepath.Glob(filepath.Join(folder, "*_test.go")))(j.t)
	for _, name := range names {
		set := token.NewFileSet()
		file := must.Get(parser.ParseFile(set, name, nil, 0))(j.t)
		ast.Inspect(file, func(n ast.Node) bool {
			e, is := n.(ast.Expr)
			if !is {
				return true
			}
			text, is := constantText(e, nil)
			if is && strings.Contains(text, "kind: ") && strings.Contains(text, "apiVersion: ") {
				j.file(set.Position(n.Pos()).String(), []byte(text))
			}
			return !is
		})
	}
}

// otherValues judges the manifest of a kind that has each field with another value in the place
// of each of its own, then labels and annotations of that name or value.
func (j *judge) otherValues(kind Kind) {
	data := must.Get(os.ReadFile(filepath.Join("testdata", "fields", string(kind)+".yaml")))(j.t)
	for _, d := range splitDocuments(data) {
		roots, _ := d.parse()
		for _, v := range otherValues() {
			j.replaceEach(kind, roots[0], roots[0], v)
		}
		metadata := child(roots[0], "metadata")
		names := metadata.Content
		for _, v := range otherValues() {
			named, valued := mappingNode(v, textNode("x")), &yaml.Node{Kind: yaml.MappingNode}
			for name := range annotations {
				valued.Content = append(valued.Content, textNode(name), v)
			}
			valued.Content = append(valued.Content, textNode(AnnotationOperation), v)
			for _, more := range [][]*yaml.Node{
				{textNode("labels"), named}, {textNode("labels"), mappingNode(textNode("rack"), v)},
				{textNode("annotations"), named}, {textNode("annotations"), valued},
			} {
				metadata.Content = append(slices.Clone(names), more...)
				j.node(kind, roots[0])
			}
		}
	}
}

func (j *judge) replaceEach(kind Kind, root, n, v *yaml.Node) {
	own := *n
	if own.Kind == yaml.ScalarNode || v.Tag != tagString || v.Value == "" { // another text does not tell more
		*n = *v
		j.node(kind, root)
		*n = own
	}
	for i, c := range n.Content {
		if n.Kind == yaml.SequenceNode || i%2 == 1 || child(n, "rack") != nil || child(n, "ignition") != nil { // keys, too, that are anybody's
			j.replaceEach(kind, root, c, v)
		}
	}
}

func (j *judge) node(kind Kind, root *yaml.Node) {
	if isNull(root) {
		return // a document that is empty is none
	}
	data := must.Get(yaml.Marshal(root))(j.t)
	j.document("testdata/fields of "+string(kind)+" with another value", data, root)
}

func otherValues() []*yaml.Node {
	values := []*yaml.Node{{Kind: yaml.ScalarNode, Tag: tagNull}, {Kind: yaml.ScalarNode, Tag: tagBool, Value: "true"}}
	for _, number := range []string{"0", "65535", "65536"} {
		values = append(values, &yaml.Node{Kind: yaml.ScalarNode, Tag: tagInt, Value: number})
	}
	for _, s := range someTexts {
		values = append(values, textNode(s))
	}
	return values
}

func textNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tagString, Value: s, Style: yaml.DoubleQuotedStyle}
}

func mappingNode(key, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}}
}

var someTexts = []string{
	"", "x", "X", "7", "a.b", "a/b", "-a", "a b", "é", "a\nb",
	"On", "true", "True", "Ready", "Discovered", "Exists", "Equal", "In", "NotIn", "Lit", "https",
	"ignore", "retry#1", "park#", "retry-propagated", "always", "kernel", "secure", "-5", "+5", "1.5",
	"00:1a:2b:3c:4d:5e, 001a2b3c4d60", "00:1a:2b:3c:4d:5e,",
	"192.0.2.1", "192.0.2.256", "192.0.2", "010.0.0.1", "0.0.0.0", "224.0.0.1", "240.0.0.1", "255.255.255.255",
	"::", "::1", "1::", "fd00::10", "FD00:0:0:0:0:0:0:1", "fe80::1%eth0", "ff02::1", "::ffff:192.0.2.1", ":1", "fd00",
	"00:1A:2B:3C:4D:5E", "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e", "001a2b3c4d5e", "01:1a:2b:3c:4d:5e", "00:00:00:00:00:00",
	"00:1a-2b:3c:4d:5e", "00:1a:2b:3c:4d",
	"123e4567-e89b-12d3-a456-426614174000", "{123E4567-E89B-12D3-A456-426614174000}", "123e4567e89b12d3a456426614174000",
	"00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "123e4567-e89b-12d3-a456-42661417400",
	"os", "os:1", "os:", "OS:1", "Registry/os", "Registry.example.com/os", "localhost:5000/a/b_c:x", "[::1]:5000/os",
	"r/os@sha256:abc", "https://r/os",
	"os@sha256:" + strings.Repeat("0a", 32), "os:1@sha512:" + strings.Repeat("0a", 64), "a:b:c", "a//b",
	"/redfish/v1", "Bmc-1.Example.com", "example.com/Rack_7",
	"YQ==", "YQ=", "YWI=", "YW\nI=\n", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 254),
	"/" + strings.Repeat("a", 255), "/" + strings.Repeat("a", 256),
	"0x", "0x0", "0x0g", "0x01", "0x0a0b", "hex:", "hex:0A", "hex:0a0b", "hex:é", "0a:0b", "0a:0", "text:", "text:a", "text:0x", "Eth1/7",
	"0x" + strings.Repeat("0a", 128), "0x" + strings.Repeat("0a", 129), strings.Repeat("a", 128), strings.Repeat("a", 129),
}

func (j *judge) file(name string, data []byte) {
	text, unread := readable(data)
	if unread != nil {
		return
	}
	for _, d := range splitDocuments(text) {
		roots, bad := d.parse()
		for _, root := range roots {
			j.document(fmt.Sprintf("%s, document in line %d", name, d.line), d.text, root)
		}
		if bad != nil {
			j.excuse(bad.message)
		}
	}
}

func (j *judge) document(name string, text []byte, root *yaml.Node) {
	_, problems := Decode("f", text, DecodeOptions{AllowPlaintextSecrets: true})
	found := placesOf(j.all.Validate(valueOf(root)))
	j.manifests++
	if HasErrors(problems) {
		j.wrong++
	}
	kindKnown := true
	var own []string
	for _, p := range problems {
		if p.Severity != SeverityError {
			continue
		}
		kindKnown = kindKnown && p.Rule != RuleUnknownKind
		own = append(own, placeOf(p.Field))
		if !related(placeOf(p.Field), found) && !j.excuse(p.Message) {
			j.t.Errorf("%s: the schema has nothing against\n%s\n%s", name, p, text)
		}
	}
	for _, place := range found {
		if kindKnown && !related(place, own) {
			j.t.Errorf("%s: only the schema has something against %q\n%s\n%s", name, place, problemLines(problems), text)
		}
	}
	kind := j.kinds[Kind(plainText(child(root, "kind")))]
	if kind != nil && (kind.Validate(valueOf(root)) == nil) != (len(found) == 0) {
		j.t.Errorf("%s: the schema of the kind judges otherwise than that of all\n%s", name, text)
	}
}

// excuse reports whether only the decoder can tell an error.
func (j *judge) excuse(message string) bool {
	for i, e := range onlyDecoder {
		if strings.Contains(message, e.says) {
			j.needed[i] = true
			return true
		}
	}
	return false
}

// placeOf writes a field's path as the schemas' errors have it: "/spec/taints/1/".
func placeOf(field string) string {
	var b strings.Builder
	b.WriteByte('/')
	inBrackets := false
	for _, c := range field {
		switch {
		case c == '[' && strings.HasSuffix(b.String(), "/"), c == ']':
			inBrackets = c == '['
		case c == '[':
			inBrackets = true
			b.WriteByte('/')
		case c == '.' && !inBrackets:
			b.WriteByte('/')
		default:
			b.WriteRune(c)
		}
	}
	if field != "" {
		b.WriteByte('/')
	}
	return b.String()
}

func related(place string, places []string) bool {
	for _, p := range places {
		if strings.HasPrefix(p, place) || strings.HasPrefix(place, p) {
			return true
		}
	}
	return false
}

func placesOf(err error) []string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return nil
	}
	if len(v.Causes) == 0 {
		return []string{strings.TrimSuffix("/"+strings.Join(v.InstanceLocation, "/"), "/") + "/"}
	}
	var places []string
	for _, c := range v.Causes {
		places = append(places, placesOf(c)...)
	}
	return places
}

// valueOf is what an editor hands to a schema: YAML 1.2 as JSON, aliases resolved, of a key
// that is there twice the last one.
func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.AliasNode:
		return valueOf(n.Alias)
	case yaml.MappingNode:
		m := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = valueOf(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = valueOf(c)
		}
		return list
	default:
	}
	var v any = n.Value
	switch n.Tag {
	case tagNull:
		v = nil
	case tagInt, tagFloat, tagBool:
		if n.Decode(&v) != nil {
			v = n.Value
		}
	}
	return v
}
