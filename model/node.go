package model

import (
	"encoding"
	"fmt"
	"reflect"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// YAML tags of scalars, as the parser resolves them.
const (
	tagString = "!!str"
	tagInt    = "!!int"
	tagFloat  = "!!float"
	tagBool   = "!!bool"
	tagNull   = "!!null"
	tagTime   = "!!timestamp"
	tagMerge  = "!!merge"
)

// nodeDecoder decodes YAML nodes into Go values by their json names. It is
// strict: what does not fit is reported with its place, and decoding goes on, so
// that a person sees everything that is wrong at once.
//
// The way of each type is worked out once and kept, and the path of a field
// becomes text only when it is reported, so that what is right costs little.
type nodeDecoder struct {
	file   string
	offset int    // lines of the file before the document
	object string // Problem.Object
	root   *yaml.Node
	source *sourceText // that root was parsed from; nil = not known
	quiet  bool        // the document holds secrets: problems must not show its values
	// encrypted are the nodes whose values were encrypted in the file.
	encrypted map[*yaml.Node]bool

	path     []step          // from root to where we are
	steps    [8]step         // room for path
	failed   map[string]bool // paths that were reported and need no second word
	problems []Problem
	errors   int
}

// step is one step of a path: a field, or an entry of a list when name is empty.
type step struct {
	name  string
	index int
}

func newNodeDecoder(file string, offset int, root *yaml.Node) *nodeDecoder {
	d := &nodeDecoder{file: file, offset: offset, root: root}
	d.path = d.steps[:0]
	return d
}

func (d *nodeDecoder) push(name string) { d.path = append(d.path, step{name: name}) }
func (d *nodeDecoder) pushIndex(i int)  { d.path = append(d.path, step{index: i}) }
func (d *nodeDecoder) pop()             { d.path = d.path[:len(d.path)-1] }

// decodeFunc decodes n into v. It leaves v alone when n is null, which in
// Kubernetes is the same as absent.
type decodeFunc func(d *nodeDecoder, n *yaml.Node, v reflect.Value)

var decodeFuncs sync.Map // reflect.Type → decodeFunc

// decodeFuncOf returns how to decode a type. Types that contain themselves are
// not for it.
func decodeFuncOf(t reflect.Type) decodeFunc {
	if f, ok := decodeFuncs.Load(t); ok {
		return f.(decodeFunc)
	}
	f, _ := decodeFuncs.LoadOrStore(t, newDecodeFunc(t))
	return f.(decodeFunc)
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

func newDecodeFunc(t reflect.Type) decodeFunc {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return decodeDuration
	case t == reflect.TypeFor[Sensitive]():
		return decodeSensitive
	case reflect.PointerTo(t).Implements(textUnmarshaler) && hasKeys(t):
		return newDecodeTextOrKeys(t)
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		return decodeText
	}
	switch t.Kind() {
	case reflect.String:
		return newDecodeString(t)
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return decodeUint
	case reflect.Float32, reflect.Float64:
		return decodeFloat
	case reflect.Pointer:
		return newDecodePointer(t)
	case reflect.Slice:
		return newDecodeSlice(t)
	case reflect.Map:
		return newDecodeMap(t)
	case reflect.Struct:
		return newStructPlan(t).decode
	case reflect.Interface:
		return decodeInterface
	default:
		panic("model: no YAML can be decoded into a " + t.String())
	}
}

func newDecodePointer(t reflect.Type) decodeFunc {
	elem := decodeFuncOf(t.Elem())
	return func(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
		if isNull(n) {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		elem(d, n, v.Elem())
	}
}

// decodeInterface decodes a value of the type that v holds, and skips it if v is nil.
func decodeInterface(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	if v.IsNil() {
		return
	}
	held := reflect.New(v.Elem().Type()).Elem()
	decodeFuncOf(held.Type())(d, n, held)
	v.Set(held)
}

func newDecodeSlice(t reflect.Type) decodeFunc {
	elem := decodeFuncOf(t.Elem())
	return func(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
		if isNull(n) {
			return
		}
		if n.Kind != yaml.SequenceNode {
			d.mismatch(n, "a list")
			return
		}
		list := reflect.MakeSlice(t, len(n.Content), len(n.Content))
		for i, item := range n.Content {
			d.pushIndex(i)
			if isNull(item) {
				d.fail(item, "the entry is empty")
			} else {
				elem(d, item, list.Index(i))
			}
			d.pop()
		}
		v.Set(list)
	}
}

func newDecodeMap(t reflect.Type) decodeFunc {
	if t.Key().Kind() != reflect.String {
		panic("model: no YAML can be decoded into a " + t.String())
	}
	elem := decodeFuncOf(t.Elem())
	strings := t == reflect.TypeFor[map[string]string]()
	return func(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
		if isNull(n) || !d.mapping(n) {
			return
		}
		if strings && d.tooMany(n) {
			return
		}
		if strings {
			v.Set(reflect.ValueOf(d.stringMap(n)))
			return
		}
		m := reflect.MakeMapWithSize(t, len(n.Content)/2)
		d.eachKey(n, func(key string, value *yaml.Node) {
			item := reflect.New(t.Elem()).Elem()
			elem(d, value, item)
			m.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), item)
		})
		v.Set(m)
	}
}

// stringMap is the short way for labels and annotations.
func (d *nodeDecoder) stringMap(n *yaml.Node) map[string]string {
	m := make(map[string]string, len(n.Content)/2)
	d.eachKey(n, func(key string, value *yaml.Node) {
		if isNull(value) {
			m[key] = ""
		} else if s, ok := d.text(value, d.wantedText(key, value)); ok {
			m[key] = s
		}
	})
	return m
}

// wantedText says what the value of a label or an annotation has to be: a string, or one of
// the few that an annotation may have.
func (d *nodeDecoder) wantedText(key string, value *yaml.Node) string {
	if in := len(d.path) - 2; in >= 0 && d.path[in].name == "annotations" && annotations[key].values != nil {
		return oneOfText(value, annotations[key].values)
	}
	return "a string"
}

// noMerge is the message about an alias or a merge key.
const noMerge = `aliases and merge keys ("<<", of YAML 1.1) are not supported: write the entries out`

// eachKey calls use for every key of a mapping, the path leading to its value.
// Keys that are no strings, and second ones of a name, are reported instead.
func (d *nodeDecoder) eachKey(n *yaml.Node, use func(key string, value *yaml.Node)) {
	twice := repeatsIn(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Tag == tagMerge:
			d.failBy(RuleSyntax, key, noMerge)
		case !isText(key):
			d.failBy(RuleType, key, fmt.Sprintf("found %s as a key, want a string: write it in quotes", d.found(key)))
		case key.Value == "":
			d.fail(key, "a key is empty")
		case twice(i):
			d.duplicate(n, i)
		default:
			d.push(key.Value)
			use(key.Value, n.Content[i+1])
			d.pop()
		}
	}
}

// repeatsIn returns a function that reports whether key i of a mapping was there
// before. It is to be called for the keys in their order.
func repeatsIn(n *yaml.Node) func(i int) bool {
	const few = 8 // to look at each is cheaper than a map
	if len(n.Content) <= 2*few {
		return func(i int) bool { return keyBefore(n, i) != nil }
	}
	seen := make(map[string]bool, len(n.Content)/2)
	return func(i int) bool {
		before := seen[n.Content[i].Value]
		seen[n.Content[i].Value] = true
		return before
	}
}

func (d *nodeDecoder) mapping(n *yaml.Node) bool {
	if n.Kind == yaml.MappingNode {
		return true
	}
	d.mismatch(n, "a mapping")
	return false
}

func absent(n *yaml.Node) bool  { return n == nil || isNull(n) }
func isNull(n *yaml.Node) bool  { return n.Kind == yaml.ScalarNode && n.Tag == tagNull }
func isPlain(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode }
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == tagString || n.Tag == tagTime)
}
