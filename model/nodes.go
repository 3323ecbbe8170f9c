package model

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
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
	quiet  bool // the document holds secrets: problems must not show its values

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
	default:
		panic("model: no YAML can be decoded into a " + t.String())
	}
}

func newDecodeString(t reflect.Type) decodeFunc {
	want := "a string"
	if allowed := allowedValues[t]; len(allowed) > 0 {
		want = oneOf(allowed)
	}
	return func(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
		if s, ok := d.text(n, want); ok {
			v.SetString(s)
		}
	}
}

// text returns a string's value. A date without quotes is a string: YAML 1.2
// knows no dates.
func (d *nodeDecoder) text(n *yaml.Node, want string) (string, bool) {
	if n.Kind == yaml.ScalarNode && (n.Tag == tagString || n.Tag == tagTime || n.Tag == tagMerge) {
		return n.Value, true
	}
	if !isNull(n) {
		d.mismatch(n, want)
	}
	return "", false
}

func decodeSensitive(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	quiet := d.quiet
	d.quiet = true
	if s, ok := d.text(n, "a string"); ok {
		v.Set(reflect.ValueOf(NewSensitive(s)))
	}
	d.quiet = quiet
}

// decodeText hands the scalar's text as it is written to the type's own parser,
// so that "23" and 23 are the same to a type that takes both.
func decodeText(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	switch {
	case isNull(n):
	case !isPlain(n):
		d.mismatch(n, "a string")
	default:
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			d.fail(n, err.Error())
		}
	}
}

// hasKeys reports whether a type is a struct with keys in files.
func hasKeys(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() > 0 && t.Field(0).Tag.Get("json") != ""
}

// newDecodeTextOrKeys decodes a type that has a short form: it is written as a scalar,
// or with its keys.
func newDecodeTextOrKeys(t reflect.Type) decodeFunc {
	keys := newStructPlan(t)
	return func(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
		if n.Kind == yaml.MappingNode {
			keys.decode(d, n, v)
			return
		}
		decodeText(d, n, v)
	}
}

func decodeDuration(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	const want = `a duration with a unit, such as 60s, 5m or 1h30m`
	switch {
	case isNull(n):
	case n.Kind != yaml.ScalarNode || n.Tag != tagString:
		d.mismatch(n, want)
	default:
		t, err := time.ParseDuration(n.Value)
		if err != nil {
			d.mismatch(n, want)
			return
		}
		v.SetInt(int64(t))
	}
}

func decodeBool(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	switch {
	case isNull(n):
	case n.Kind != yaml.ScalarNode || n.Tag != tagBool:
		d.mismatch(n, "true or false")
	default:
		v.SetBool(n.Value[0] == 't' || n.Value[0] == 'T')
	}
}

func decodeInt(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	if !d.wholeNumber(n) {
		return
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || v.OverflowInt(i) {
		d.fail(n, fmt.Sprintf("found %s, which is out of range", d.found(n)))
		return
	}
	v.SetInt(i)
}

func decodeUint(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	if !d.wholeNumber(n) {
		return
	}
	u, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil || v.OverflowUint(u) {
		d.fail(n, fmt.Sprintf("found %s, which is out of range", d.found(n)))
		return
	}
	v.SetUint(u)
}

// wholeNumber reports whether n is a decimal number, and complains if it is
// neither that nor null. 012 is refused, for half of the world reads it as ten.
func (d *nodeDecoder) wholeNumber(n *yaml.Node) bool {
	switch {
	case isNull(n):
		return false
	case n.Kind != yaml.ScalarNode || n.Tag != tagInt:
		d.mismatch(n, "a whole number")
		return false
	case !isDecimal(n.Value):
		d.fail(n, fmt.Sprintf("found %s, want a whole number in decimal digits, without leading zeros", d.found(n)))
		return false
	}
	return true
}

func isDecimal(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if s == "" || s[0] == '0' && len(s) > 1 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func decodeFloat(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	switch {
	case isNull(n):
		return
	case n.Kind != yaml.ScalarNode || n.Tag != tagFloat && n.Tag != tagInt:
		d.mismatch(n, "a number")
		return
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || v.OverflowFloat(f) {
		d.mismatch(n, "a number")
		return
	}
	v.SetFloat(f)
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
		} else if s, ok := d.text(value, "a string"); ok {
			m[key] = s
		}
	})
	return m
}

// eachKey calls use for every key of a mapping, the path leading to its value.
// Keys that are no strings, and second ones of a name, are reported instead.
func (d *nodeDecoder) eachKey(n *yaml.Node, use func(key string, value *yaml.Node)) {
	twice := repeatsIn(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !isText(key):
			d.fail(key, fmt.Sprintf("found %s as a key, want a string: write it in quotes", d.found(key)))
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

// mapping reports whether n is a mapping, and complains if not.
func (d *nodeDecoder) mapping(n *yaml.Node) bool {
	if n.Kind == yaml.MappingNode {
		return true
	}
	d.mismatch(n, "a mapping")
	return false
}

// structPlan is how to decode a struct.
type structPlan struct {
	fields []fieldPlan
	names  []string // of the fields, for guesses
	extras map[string]extraField
}

type fieldPlan struct {
	name   string
	index  []int
	decode decodeFunc
}

// extraField is a name that a struct has in files and not in Go.
type extraField struct {
	alias   string // of this field
	warning string // "" = none
}

func newStructPlan(t reflect.Type) *structPlan {
	p := &structPlan{extras: extraFields[t]}
	p.add(t, nil)
	if len(p.fields) > 64 {
		panic("model: more than 64 fields in " + t.String())
	}
	for _, f := range p.fields {
		p.names = append(p.names, f.name)
	}
	return p
}

func (p *structPlan) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(append([]int(nil), index...), i)
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			p.add(f.Type, at)
		default:
			if name == "" {
				name = f.Name
			}
			p.fields = append(p.fields, fieldPlan{name: name, index: at, decode: decodeFuncOf(f.Type)})
		}
	}
}

func (p *structPlan) field(name string) int {
	for i := range p.fields {
		if p.fields[i].name == name {
			return i
		}
	}
	return -1
}

func (p *structPlan) decode(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
	if isNull(n) || !d.mapping(n) {
		return
	}
	var seen uint64 // a bit for each field
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := p.field(key.Value)
		if at < 0 {
			if at = p.extra(d, n, i); at < 0 {
				continue
			}
		}
		if seen&(1<<at) != 0 {
			d.duplicate(n, i)
			continue
		}
		seen |= 1 << at
		f := &p.fields[at]
		d.push(key.Value)
		if len(f.index) == 1 {
			f.decode(d, n.Content[i+1], v.Field(f.index[0]))
		} else {
			f.decode(d, n.Content[i+1], v.FieldByIndex(f.index))
		}
		d.pop()
	}
}

// extra deals with a key that is no field of the struct. It returns the field
// that the key is another name for, or -1.
func (p *structPlan) extra(d *nodeDecoder, n *yaml.Node, i int) int {
	key := n.Content[i]
	if !isText(key) {
		if key.Tag == tagMerge || key.Kind == yaml.AliasNode {
			d.fail(key, `aliases and merge keys ("<<") are not read: write the fields out`)
		} else {
			d.fail(key, fmt.Sprintf("found %s as a field's name", d.found(key)))
		}
		return -1
	}
	x, ok := p.extras[key.Value]
	if !ok {
		d.unknown(key, p.names)
		return -1
	}
	d.push(key.Value)
	defer d.pop()
	if first := keyBefore(n, i); first != nil {
		d.repeated(key, first)
		return -1
	}
	if x.alias != "" && child(n, x.alias) != nil {
		d.fail(key, "is another name for "+x.alias+", which is given too")
		return -1
	}
	if x.warning != "" {
		d.warn(key, x.warning)
	}
	if x.alias != "" {
		return p.field(x.alias)
	}
	return -1
}

// unknown reports a field that is not known.
func (d *nodeDecoder) unknown(key *yaml.Node, known []string) {
	if d.full() {
		d.errors++
		return
	}
	near := Nearest(key.Value, known)
	if d.quiet && near == "" { // it may be a line of a secret that lost its indentation
		d.fail(key, "unknown field, "+guess("", known))
		return
	}
	d.push(key.Value)
	d.fail(key, "unknown field, "+guess(key.Value, known))
	d.pop()
	if near != "" { // the field that was meant is not missing, it is misspelt
		d.note(pathText(d.path, near))
	}
}

// duplicate reports key i of a mapping as there before.
func (d *nodeDecoder) duplicate(n *yaml.Node, i int) {
	if d.full() {
		d.errors++
		return
	}
	first := keyBefore(n, i)
	d.push(n.Content[i].Value)
	d.repeated(n.Content[i], first)
	d.pop()
}

func (d *nodeDecoder) repeated(key, first *yaml.Node) {
	message := fmt.Sprintf("is given twice, first in line %d", first.Line+d.offset)
	if len(d.path) == 1 && (key.Value == "apiVersion" || key.Value == "kind") {
		message += `: is a line "---" missing above it?`
	}
	d.fail(key, message)
}

// keyBefore returns the first key of a mapping that is the same as key i.
func keyBefore(n *yaml.Node, i int) *yaml.Node {
	for j := 0; j < i; j += 2 {
		if n.Content[j].Value == n.Content[i].Value {
			return n.Content[j]
		}
	}
	return nil
}

// keyIndex returns where in a mapping's content a key stands, or -1.
func keyIndex(n *yaml.Node, name string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name && n.Content[i].Kind == yaml.ScalarNode {
			return i
		}
	}
	return -1
}

// child returns the value of a key of a mapping, or nil.
func child(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	if i := keyIndex(n, name); i >= 0 {
		return n.Content[i+1]
	}
	return nil
}

// mismatch reports a value of the wrong type.
func (d *nodeDecoder) mismatch(n *yaml.Node, want string) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n, `aliases ("*name") are not read: write the value out`)
		return
	case want == "a string" && isPlain(n) && isNumberOrBool(n):
		want += ": write it in quotes"
	case n.Kind == yaml.ScalarNode && n.Tag == tagString && looksLike(n.Value, want):
		want += ": write it without quotes"
	}
	d.fail(n, fmt.Sprintf("found %s, want %s", d.found(n), want))
}

func isNumberOrBool(n *yaml.Node) bool {
	return n.Tag == tagInt || n.Tag == tagFloat || n.Tag == tagBool
}

// looksLike reports whether text in quotes would be what is wanted without them.
func looksLike(text, want string) bool {
	switch want {
	case "a whole number":
		return isDecimal(text)
	case "true or false":
		return text == "true" || text == "false"
	}
	return false
}

// found says what a node is, for a message.
func (d *nodeDecoder) found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode, yaml.DocumentNode:
	}
	kind, value := "a value with a tag of its own,", show(n.Tag)
	switch n.Tag {
	case tagNull:
		return "nothing"
	case tagInt, tagFloat:
		kind, value = "the number", shorten(n.Value)
	case tagBool:
		kind, value = "the boolean", n.Value
	case tagString, tagTime, tagMerge:
		kind, value = "the string", show(n.Value)
	}
	if d.quiet {
		return strings.Replace(strings.TrimSuffix(kind, ","), "the ", "a ", 1) + " (not shown: it may be secret)"
	}
	return kind + " " + value
}

// fail reports an error at a node.
func (d *nodeDecoder) fail(n *yaml.Node, message string) {
	d.errors++
	if d.full() {
		return
	}
	field := pathText(d.path, "")
	d.note(field)
	d.report(SeverityError, n, field, message)
}

// warn reports a warning at a node.
func (d *nodeDecoder) warn(n *yaml.Node, message string) {
	if d.full() {
		return
	}
	d.report(SeverityWarning, n, pathText(d.path, ""), message)
}

// bad reports an error in a field of the object that was decoded: name, below
// the path. It is silent about what was reported before.
func (d *nodeDecoder) bad(name, message string) {
	if d.full() {
		d.errors++
		return
	}
	field := pathText(d.path, name)
	if d.reported(field) {
		return
	}
	d.errors++
	d.note(field)
	d.report(SeverityError, locate(d.root, d.path, name), field, message)
}

// odd is bad, for a warning.
func (d *nodeDecoder) odd(name, message string) {
	if d.full() {
		return
	}
	d.report(SeverityWarning, locate(d.root, d.path, name), pathText(d.path, name), message)
}

// reported reports whether a field, or one that it is in, has failed.
func (d *nodeDecoder) reported(field string) bool {
	if len(d.failed) == 0 {
		return false
	}
	for i := range len(field) {
		if (field[i] == '.' || field[i] == '[') && d.failed[field[:i]] {
			return true
		}
	}
	return d.failed[field]
}

// full reports whether so much is wrong that more would not be read. The rest of
// the file is anybody's, and must cost little then.
func (d *nodeDecoder) full() bool { return len(d.problems) >= maxProblems }

// note keeps in mind that a path was reported.
func (d *nodeDecoder) note(field string) {
	if d.failed == nil {
		d.failed = make(map[string]bool)
	}
	d.failed[field] = true
}

// in runs check with the path one field deeper.
func (d *nodeDecoder) in(name string, check func()) {
	d.push(name)
	check()
	d.pop()
}

// each runs check on the entries of a list, the path leading to each.
func each[T any](d *nodeDecoder, name string, list []T, check func(*T)) {
	d.push(name)
	for i := range list {
		d.pushIndex(i)
		check(&list[i])
		d.pop()
	}
	d.pop()
}

func (d *nodeDecoder) report(severity Severity, n *yaml.Node, field, message string) {
	d.problems = append(d.problems, Problem{
		Severity: severity,
		File:     d.file,
		Line:     n.Line + d.offset,
		Column:   n.Column,
		Object:   d.object,
		Field:    field,
		Message:  message,
	})
}

// pathText writes a path as people do: spec.taints[1].effect. A name that holds
// dots, as labels do, stands in brackets.
func pathText(path []step, last string) string {
	var b strings.Builder
	write := func(name string) {
		switch {
		case strings.ContainsAny(name, "./[] \n") || name == "":
			b.WriteString("[" + shorten(name) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(shorten(name))
		}
	}
	for _, s := range path {
		if s.name == "" {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		} else {
			write(s.name)
		}
	}
	if last != "" {
		write(last)
	}
	return b.String()
}

// locate returns the node that a path leads to, as far as it exists: a value, or
// the key of the last mapping on the way.
func locate(root *yaml.Node, path []step, last string) *yaml.Node {
	at, place := root, root
	follow := func(s step) bool {
		next := (*yaml.Node)(nil)
		switch {
		case s.name == "" && at.Kind == yaml.SequenceNode && s.index < len(at.Content):
			next = at.Content[s.index]
			place = next
		case s.name != "" && at.Kind == yaml.MappingNode:
			if i := keyIndex(at, s.name); i >= 0 {
				place, next = at.Content[i], at.Content[i+1]
			}
		}
		if next != nil {
			at = next
		}
		return next != nil
	}
	for _, s := range path {
		if !follow(s) {
			return place
		}
	}
	if last != "" && !follow(step{name: last}) {
		return place
	}
	if at.Kind == yaml.ScalarNode && !isNull(at) {
		return at
	}
	return place
}

// absent reports whether there is no node, or null, which is the same.
func absent(n *yaml.Node) bool  { return n == nil || isNull(n) }
func isNull(n *yaml.Node) bool  { return n.Kind == yaml.ScalarNode && n.Tag == tagNull }
func isPlain(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode }
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == tagString || n.Tag == tagTime)
}
