package gitsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ingot/model"
)

func render(d *model.Document) ([]byte, error) {
	if d.Object == nil {
		return []byte(d.Text), nil
	}
	return marshalYAML(d.Object)
}

// marshalYAML writes v as YAML with its JSON names, in the order of its fields.
// It goes through encoding/json and turns the tokens over one by one, which takes
// a fraction of the time of a YAML encoder; a status commit may hold thousands.
func marshalYAML(v any) ([]byte, error) {
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	w := yamlWriter{in: in.Bytes(), out: make([]byte, 0, in.Len()*3/2)}
	w.value(0, true)
	if w.bad {
		return nil, errors.New("write YAML: the JSON is not well formed")
	}
	return w.out, nil
}

// yamlWriter turns JSON as encoding/json writes it into block style YAML.
type yamlWriter struct {
	in  []byte
	at  int
	out []byte
	bad bool
}

// peek returns the next byte that is not white space, 0 at the end.
func (w *yamlWriter) peek() byte {
	for ; w.at < len(w.in); w.at++ {
		switch c := w.in[w.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take consumes c, or finds the input bad.
func (w *yamlWriter) take(c byte) {
	if w.peek() != c {
		w.bad = true
		return
	}
	w.at++
}

// value writes the next value and ends its line. Maps and lists begin on a line of
// their own, unless fresh says that they stand at the beginning of one.
func (w *yamlWriter) value(indent int, fresh bool) {
	switch w.peek() {
	case '{':
		w.object(indent, fresh)
	case '[':
		w.array(indent, fresh)
	case '"':
		w.space(fresh)
		w.text(w.string(), indent)
		w.out = append(w.out, '\n')
	default:
		w.space(fresh)
		w.literal()
		w.out = append(w.out, '\n')
	}
}

func (w *yamlWriter) space(fresh bool) {
	if !fresh {
		w.out = append(w.out, ' ')
	}
}

func (w *yamlWriter) indent(n int) {
	for range n {
		w.out = append(w.out, ' ')
	}
}

func (w *yamlWriter) object(indent int, fresh bool) {
	w.take('{')
	if w.peek() == '}' {
		w.at++
		w.space(fresh)
		w.out = append(w.out, "{}\n"...)
		return
	}
	if !fresh {
		w.out = append(w.out, '\n')
	}
	for i := 0; !w.bad; i++ {
		if i > 0 || !fresh {
			w.indent(indent)
		}
		w.key()
		w.take(':')
		w.out = append(w.out, ':')
		next := indent + 2
		if w.peek() == '[' { // lists stand as far left as their key
			next = indent
		}
		w.value(next, false)
		if w.peek() != ',' {
			break
		}
		w.at++
	}
	w.take('}')
}

func (w *yamlWriter) array(indent int, fresh bool) {
	w.take('[')
	if w.peek() == ']' {
		w.at++
		w.space(fresh)
		w.out = append(w.out, "[]\n"...)
		return
	}
	if !fresh {
		w.out = append(w.out, '\n')
	}
	for i := 0; !w.bad; i++ {
		if i > 0 || !fresh {
			w.indent(indent)
		}
		w.out = append(w.out, '-', ' ')
		w.value(indent+2, true)
		if w.peek() != ',' {
			break
		}
		w.at++
	}
	w.take(']')
}

// literal copies a number, true, false or null.
func (w *yamlWriter) literal() {
	from := w.at
	for w.at < len(w.in) && !bytes.ContainsRune([]byte(",]}\n "), rune(w.in[w.at])) {
		w.at++
	}
	w.bad = w.bad || from == w.at
	w.out = append(w.out, w.in[from:w.at]...)
}

func (w *yamlWriter) string() []byte {
	w.take('"')
	from, escaped := w.at, false
	for ; w.at < len(w.in); w.at++ {
		switch w.in[w.at] {
		case '\\':
			escaped = true
			w.at++
			continue
		case '"':
			raw := w.in[from:w.at]
			w.at++
			if !escaped {
				return raw
			}
			var s string
			if err := json.Unmarshal(w.in[from-1:w.at], &s); err != nil {
				w.bad = true
			}
			return []byte(s)
		}
	}
	w.bad = true
	return nil
}

func (w *yamlWriter) key() {
	s := w.string()
	if plain(s) {
		w.out = append(w.out, s...)
		return
	}
	w.quoted(s)
}

// text writes a string so that it is read as that string again.
func (w *yamlWriter) text(s []byte, indent int) {
	switch {
	case plain(s):
		w.out = append(w.out, s...)
	case blockable(s):
		w.block(s, max(indent, 2))
	default:
		w.quoted(s)
	}
}

// plain reports whether s needs no quotes, in YAML 1.1 and 1.2.
func plain(s []byte) bool {
	if len(s) == 0 || !plainFirst[s[0]] || s[len(s)-1] == ' ' || s[len(s)-1] == ':' {
		return false
	}
	for i, c := range s {
		switch {
		case c < ' ' || c > '~':
			return false
		case c == '#' && s[i-1] == ' ', c == ' ' && s[i-1] == ':':
			return false
		}
	}
	return !ambiguous(s)
}

// plainFirst are the bytes that a string without quotes may begin with.
var plainFirst = func() (ok [256]bool) {
	for c := range ok {
		ok[c] = c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '/' || c == '_' || c == '(' || c == '$'
	}
	return ok
}()

// words are read as something else than strings by YAML 1.1 or 1.2.
var words = map[string]bool{
	"true": true, "false": true, "yes": true, "no": true, "on": true, "off": true, "y": true, "n": true, "null": true,
}

// longestWord is the length of the longest of words.
const longestWord = 5

// ambiguous reports whether a reader could take s for a boolean, null, a number, a
// date or a number to base 60 (12:34:56).
func ambiguous(s []byte) bool {
	if len(s) <= longestWord && words[strings.ToLower(string(s))] {
		return true
	}
	if s[0] < '0' || s[0] > '9' {
		return false
	}
	text := strings.ReplaceAll(string(s), "_", "")
	if _, err := strconv.ParseInt(text, 0, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return true
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return true
	}
	digits := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	return digits < 0 || text[digits] == ':' && sexagesimal(text) || digits == 4 && text[4] == '-' || text[0] == '0' && digits == 1
}

func sexagesimal(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != ':' && r != '.' }) < 0
}

// blockable reports whether s reads best as lines of its own (|), and may.
func blockable(s []byte) bool {
	if bytes.IndexByte(s, '\n') < 0 || s[0] == ' ' || s[0] == '\n' || bytes.HasSuffix(s, []byte("\n\n")) || !utf8.Valid(s) {
		return false
	}
	for line := range bytes.SplitSeq(s, []byte("\n")) {
		if n := len(line); n > 0 && (line[n-1] == ' ' || line[0] == '\t') {
			return false
		}
	}
	return bytes.IndexFunc(s, func(r rune) bool { return r != '\n' && !printable(r) }) < 0
}

func (w *yamlWriter) block(s []byte, indent int) {
	w.out = append(w.out, '|')
	if s[len(s)-1] != '\n' {
		w.out = append(w.out, '-')
	}
	for line := range bytes.SplitSeq(bytes.TrimSuffix(s, []byte("\n")), []byte("\n")) {
		w.out = append(w.out, '\n')
		if len(line) > 0 {
			w.indent(indent)
			w.out = append(w.out, line...)
		}
	}
}

// quoted writes a double-quoted string, see YAML 1.2 §5.7 for its escapes.
func (w *yamlWriter) quoted(s []byte) {
	w.out = append(w.out, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		switch {
		case r == '"' || r == '\\':
			w.out = append(w.out, '\\', byte(r))
		case r == '\n':
			w.out = append(w.out, `\n`...)
		case r == '\t':
			w.out = append(w.out, `\t`...)
		case printable(r):
			w.out = utf8.AppendRune(w.out, r)
		case r > 0xffff:
			w.out = fmt.Appendf(w.out, `\U%08x`, r)
		default:
			w.out = fmt.Appendf(w.out, `\u%04x`, r)
		}
	}
	w.out = append(w.out, '"')
}

func printable(r rune) bool { return r == ' ' || unicode.IsPrint(r) && r != '\ufeff' }
