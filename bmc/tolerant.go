package bmc

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// decode reads raw into a T. Services of the field write numbers as strings, one
// value where the schema has a list, an object for a name; json.Unmarshal then
// refuses the whole resource. decode repairs such properties where that is plain,
// leaves out those that it cannot repair, and names these in odd.
func decode[T any](raw []byte) (v T, odd []string, err error) {
	if err := json.Unmarshal(raw, &v); err == nil {
		return v, nil, nil
	}
	fits := func(raw json.RawMessage) bool { return json.Unmarshal(raw, new(T)) == nil }
	m := repairer{}
	repaired, ok := m.repair(raw, "", fits, 0)
	if m.exhausted() {
		return v, nil, errTooOdd
	}
	var fresh T
	if !ok || json.Unmarshal(repaired, &fresh) != nil {
		return fresh, nil, json.Unmarshal(raw, &fresh)
	}
	slices.Sort(m.odd)
	return fresh, m.odd, nil
}

// maxDepth bounds how deep into a resource decode looks for what is odd.
const maxDepth = 6

// Bounds of what the repair of one resource may cost, in bytes that are decoded: a value is
// decoded once for each form that it may have, and with all that it is in. For small values
// that costs as much as decoding perRepair bytes.
const (
	maxRepair = 4 * maxBody
	perRepair = 4 << 10
)

// errTooOdd: a resource is not repaired, for that would take too long.
var errTooOdd = errors.New("too much in it is not in the schema's form")

// repairer repairs one JSON value and notes what it had to leave out.
type repairer struct {
	odd  []string
	cost int // so far
}

func (m *repairer) exhausted() bool { return m.cost > maxRepair }

func (m *repairer) try(fits func(json.RawMessage) bool, v json.RawMessage, depth int) bool {
	m.cost += (depth+1)*len(v) + perRepair
	return !m.exhausted() && fits(v)
}

// repair returns the fitting value that is closest to v, if there is one.
func (m *repairer) repair(v json.RawMessage, path string, fits func(json.RawMessage) bool, depth int) (json.RawMessage, bool) {
	if m.try(fits, v, depth) {
		return v, true
	}
	if m.exhausted() {
		return nil, false
	}
	for _, form := range otherForms(v) {
		if m.try(fits, form, depth) {
			return form, true
		}
	}
	noted := len(m.odd)
	if repaired, ok := m.repairParts(v, path, fits, depth); ok {
		return repaired, true
	}
	m.odd = append(m.odd[:noted], strings.TrimPrefix(path, "."))
	return nil, false
}

// repairParts repairs the properties of an object or the items of a list, one by one.
func (m *repairer) repairParts(v json.RawMessage, path string, fits func(json.RawMessage) bool, depth int) (json.RawMessage, bool) {
	if depth == maxDepth {
		return nil, false
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) == nil && object != nil {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			alone := func(v json.RawMessage) bool { return fits(marshal(map[string]json.RawMessage{name: v})) }
			if repaired, ok := m.repair(object[name], path+"."+name, alone, depth+1); ok {
				object[name] = repaired
			} else {
				delete(object, name)
			}
			if m.exhausted() {
				return nil, false
			}
		}
		whole := marshal(object)
		return whole, m.try(fits, whole, depth)
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) == nil && list != nil {
		var kept []json.RawMessage
		alone := func(v json.RawMessage) bool { return fits(marshal([]json.RawMessage{v})) }
		for i, item := range list {
			if repaired, ok := m.repair(item, path+"["+strconv.Itoa(i)+"]", alone, depth+1); ok {
				kept = append(kept, repaired)
			}
			if m.exhausted() {
				return nil, false
			}
		}
		whole := marshal(kept)
		return whole, m.try(fits, whole, depth)
	}
	return nil, false
}

// otherForms returns the other forms in which services write the same value.
func otherForms(v json.RawMessage) []json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	switch v[0] {
	case '"':
		var s string
		if json.Unmarshal(v, &s) != nil {
			return nil
		}
		forms := []json.RawMessage{marshal([]string{s})}
		if strings.HasPrefix(s, "/") {
			forms = append(forms, marshal(map[string]string{"@odata.id": s}))
		}
		if json.Valid([]byte(s)) { // "16", "true"
			forms = append(forms, json.RawMessage(s))
		}
		return forms
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(v, &list) != nil || len(list) == 0 {
			return nil
		}
		return append(list[:1:1], only(list[0])...)
	case '{':
		return append(only(v), marshal([]json.RawMessage{v}))
	default: // a number or a boolean; 16.0 for a count
		forms := []json.RawMessage{marshal(string(v)), marshal([]json.RawMessage{v})}
		if f, err := strconv.ParseFloat(string(v), 64); err == nil && f == float64(int64(f)) {
			forms = append(forms, strconv.AppendInt(nil, int64(f), 10))
		}
		return forms
	}
}

// only returns the value of an object with one property: an iDRAC's
// {"Member": "x86-64"}.
func only(v json.RawMessage) []json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) != nil || len(object) != 1 {
		return nil
	}
	return slices.Collect(maps.Values(object))
}

// marshal writes what was read from JSON before, which cannot fail.
func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
