package model

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

type structPlan struct {
	fields []fieldPlan
	names  []string // of the fields, for guesses
	want   string   // what it is written as, for messages
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
	const few = 6 // that are worth naming
	switch n := len(p.names); {
	case n == 1:
		p.want = "a mapping with the field " + p.names[0]
	case n > 1 && n <= few:
		p.want = "a mapping with the fields " + listed(p.names, "and")
	default:
		p.want = "a mapping"
	}
	return p
}

func (p *structPlan) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(append([]int(nil), index...), i)
		switch {
		case name == "-" || f.Tag.Get("decided") == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			p.add(f.Type, at)
		default:
			if name == "" {
				name = f.Name
			}
			decode := decodeFuncOf(f.Type)
			if values := fieldValues[t][name]; len(values) > 0 {
				decode = newDecodeEnum(values)
			}
			p.fields = append(p.fields, fieldPlan{name: name, index: at, decode: decode})
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
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.mismatch(n, p.want)
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
			d.failBy(RuleSyntax, key, noMerge)
		} else {
			d.failBy(RuleType, key, fmt.Sprintf("found %s as a field's name", d.found(key)))
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
		d.failBy(RuleRepeated, key, "is another name for "+x.alias+", which is given too")
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

func (d *nodeDecoder) unknown(key *yaml.Node, known []string) {
	if d.full() {
		d.errors++
		return
	}
	near := Nearest(key.Value, known)
	if d.quiet && near == "" { // it may be a line of a secret that lost its indentation
		d.failBy(RuleUnknownField, key, "unknown field, "+guess("", known))
		return
	}
	d.push(key.Value)
	d.failBy(RuleUnknownField, key, "unknown field, "+guess(key.Value, known))
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
	d.failBy(RuleRepeated, key, message)
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
