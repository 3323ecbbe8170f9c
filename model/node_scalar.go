package model

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func newDecodeString(t reflect.Type) decodeFunc {
	if allowed := allowedValues[t]; len(allowed) > 0 {
		return newDecodeEnum(allowed)
	}
	return func(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
		if s, ok := d.text(n, "a string"); ok {
			v.SetString(s)
		}
	}
}

// newDecodeEnum decodes a string that has to be one of these; that it is, is checked later.
func newDecodeEnum(allowed []string) decodeFunc {
	return func(d *nodeDecoder, n *yaml.Node, v reflect.Value) {
		if s, ok := d.text(n, oneOfText(n, allowed)); ok {
			v.SetString(s)
		}
	}
}

// oneOfText says that a text has to be one of these. A value that YAML takes for a boolean,
// as it does True, is told to be written in quotes.
func oneOfText(n *yaml.Node, allowed []string) string {
	want := oneOf(allowed)
	if isPlain(n) && isNumberOrBool(n) && slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, n.Value) }) {
		want += ": write it in quotes"
	}
	return want
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
