package model

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"ingot/model/must"
)

var anyText = []string{
	"Server spec.bootOrder[].name", "Server spec.bootOrder[].device", "ServerMaintenance spec.reason",
	"Secret type", "BMCSecret type", "Server spec.power", // which is ignored
}

// TestEveryFieldThatIsWrong: testdata/fields has each field of each kind, right. Each is
// replaced by what has a wrong type, then by a wrong value, then left out; what people are
// told is in the golden files, and points at the field. A new field only has to be written
// into the kind's file.
func TestEveryFieldThatIsWrong(t *testing.T) {
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			w := wrongFieldsOf(t, kind, func([]byte) {})
			for path := range w.want {
				if !w.seen[path] {
					t.Errorf("testdata/fields/%s.yaml lacks %s", kind, path)
				}
			}
			compareGolden(t, filepath.Join("testdata", "fields", string(kind)+".golden"), w.got.String())
		})
	}
}

// wrongFieldsOf makes each field of a kind wrong, and hands over the text of each document that
// is made so.
func wrongFieldsOf(t *testing.T, kind Kind, made func(text []byte)) *wrongFields {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("testdata", "fields", string(kind)+".yaml")))(t)
	w := &wrongFields{t: t, kind: kind, made: made, want: make(map[string]reflect.Type), seen: make(map[string]bool)}
	w.fields(kind)
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	for dec.Decode(&w.doc) == nil {
		if _, problems := w.decode(); HasErrors(problems) {
			t.Fatalf("it is wrong before anything is changed:\n%s", problemLines(problems))
		}
		w.walk(w.doc.Content[0], "")
		w.doc = yaml.Node{}
	}
	return w
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *updateGolden {
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: want -, got +:\n%s", file, diff)
	}
}

// wrongFields makes each field of a manifest wrong, one at a time.
type wrongFields struct {
	t    *testing.T
	kind Kind
	made func(text []byte)
	want map[string]reflect.Type // by path, lists as []
	seen map[string]bool
	doc  yaml.Node
	got  strings.Builder
}

func (w *wrongFields) fields(kind Kind) {
	object := reflect.TypeOf(kindTable[kind].new()).Elem()
	for f := range object.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" && name != "metadata" {
			w.add(name, f.Type)
		}
	}
	if kind.secret() {
		w.want["data"], w.want["stringData"] = reflect.TypeFor[map[string]string](), reflect.TypeFor[map[string]string]()
	}
}

func (w *wrongFields) add(path string, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	w.want[path] = t
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			w.add(path+"."+name, f.Type)
		}
	case reflect.Slice:
		w.add(path+"[]", t.Elem())
	default:
	}
}

func (w *wrongFields) walk(n *yaml.Node, path string) {
	for i, c := range n.Content {
		below := path + "[]"
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			below = strings.TrimPrefix(path+"."+n.Content[i-1].Value, ".")
		}
		typ := w.want[below]
		if typ == nil {
			continue // of no kind alone, or an entry of a map
		}
		w.seen[below] = true
		ofWrongType := ""
		for _, wrong := range wrongTypes(typ) {
			ofWrongType = w.replace(n, i, below, wrong, true)
		}
		switch typ.Kind() {
		case reflect.String:
			told := w.replace(n, i, below, `"§"`, !slices.Contains(anyText, string(w.kind)+" "+below))
			if values := alternatives.FindString(told); !strings.HasSuffix(ofWrongType, values) {
				w.t.Errorf("%s: a number is told %q, and a wrong text %q", below, ofWrongType, told)
			}
		case reflect.Int32:
			w.replace(n, i, below, "-1", true)
		default:
		}
		if n.Kind == yaml.MappingNode {
			all := n.Content
			n.Content = slices.Delete(slices.Clone(all), i-1, i+1)
			w.tell("nothing")
			n.Content = all
		}
		w.walk(c, below)
	}
}

// wrongTypes are values that a field of a type cannot have.
func wrongTypes(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.String:
		return []string{"7"}
	case reflect.Struct, reflect.Map, reflect.Slice:
		return []string{"text"}
	case reflect.Bool:
		return []string{`"true"`}
	default:
		return []string{`"1"`, "1.5"}
	}
}

// alternatives are the values of an enumeration, in a message. What is wanted of other texts
// begins with the number of it: "a UUID", "at most".
var alternatives = regexp.MustCompile(`want \w+(, \w+)* or \w+$`)

// replace puts what is wrong in the place of the i-th node below n. Where it is an error, one
// points at it: its message is returned.
func (w *wrongFields) replace(n *yaml.Node, i int, path, wrong string, isError bool) string {
	var v yaml.Node
	must.Do(w.t, yaml.Unmarshal([]byte(wrong), &v))
	right := n.Content[i]
	n.Content[i] = v.Content[0]
	problems, at := w.tell(wrong), w.at(path)
	n.Content[i] = right
	there := slices.IndexFunc(problems, func(p Problem) bool { return p.Line == at.Line && p.Column == at.Column })
	if isError != (there >= 0) {
		w.t.Errorf("%s: %s at %d:%d: want an error there: %v, got:\n%s", path, wrong, at.Line, at.Column, isError, problemLines(problems))
	}
	if there < 0 {
		return ""
	}
	return problems[there].Message
}

func (w *wrongFields) tell(wrong string) []Problem {
	w.made(w.text())
	_, problems := w.decode()
	problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.Severity != SeverityError })
	for _, p := range problems {
		fmt.Fprintf(&w.got, "%s → %s\n", wrong, p)
	}
	return problems
}

func (w *wrongFields) text() []byte {
	text := must.Get(yaml.Marshal(&w.doc))(w.t)
	return text
}

func (w *wrongFields) decode() ([]Object, []Problem) {
	return Decode("f", w.text(), DecodeOptions{AllowPlaintextSecrets: true})
}

func (w *wrongFields) at(path string) *yaml.Node {
	var doc yaml.Node
	must.Do(w.t, yaml.Unmarshal(w.text(), &doc))
	n := doc.Content[0]
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[]", ".[]"), ".") {
		if step == "[]" {
			n = n.Content[0]
		} else {
			n = child(n, step)
		}
	}
	return n
}

// TestEveryFieldThatChanges: each field of each kind is changed, and taken away; what may not
// be is in the golden file.
func TestEveryFieldThatChanges(t *testing.T) {
	var got strings.Builder
	for _, kind := range Kinds {
		data := must.Get(os.ReadFile(filepath.Join("testdata", "fields", string(kind)+".yaml")))(t)
		read := func() []Object {
			objects, _ := Decode("f", data, DecodeOptions{AllowPlaintextSecrets: true})
			return objects
		}
		for i, old := range read() {
			fields := ownFields(old)
			for at := range fields.NumField() {
				for what, change := range map[string]func(reflect.Value){"changed": changeValue, "removed": reflect.Value.SetZero} {
					object := read()[i]
					change(ownFields(object).Field(at))
					for _, p := range ValidateUpdate(old, object) {
						fmt.Fprintf(&got, "%s %s → %s\n", fields.Type().Field(at).Name, what, p)
					}
				}
			}
		}
	}
	lines := slices.Sorted(strings.Lines(got.String()))
	compareGolden(t, filepath.Join("testdata", "fields", "changes.golden"), strings.Join(lines, ""))
}

func ownFields(o Object) reflect.Value {
	v := reflect.ValueOf(o).Elem()
	if spec := v.FieldByName("Spec"); spec.IsValid() {
		return spec
	}
	return v
}

func changeValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32:
		v.SetInt(v.Int() + 1)
	case reflect.Pointer:
		if !v.IsNil() {
			changeValue(v.Elem())
		}
	case reflect.Struct:
		if v.NumField() > 0 && v.Field(0).CanSet() && v.Type() != reflect.TypeFor[Meta]() {
			changeValue(v.Field(0))
		}
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
	case reflect.Map:
		v.SetMapIndex(reflect.ValueOf("x"), reflect.New(v.Type().Elem()).Elem())
	default:
	}
}
