package ignition

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// maxInline bounds a file's contents within Ignition once unpacked, in bytes.
const maxInline = 16 << 20

// A field is a value that differs from ticket to ticket.
type field string

const (
	fieldFlags        field = "flags"
	fieldBootStateURL field = "bootStateURL"
	fieldUUID         field = "uuid"
)

// marks are what stands in a document in the place of fields while it is
// translated. They are drawn at random, so that no source can name them, and
// made of letters and digits, so that nothing escapes or quotes them.
type marks map[field]string

func newMarks(fields ...field) marks {
	m := make(marks, len(fields))
	for _, f := range fields {
		var random [16]byte
		_, _ = rand.Read(random[:]) // never fails, see crypto/rand
		m[f] = "mark" + hex.EncodeToString(random[:]) + "m"
	}
	return m
}

// escaped is the mark of a field that stands within a data URL.
func escaped(mark string) string { return mark + "escaped" }

// document is Ignition JSON with holes: translated once, filled in per ticket.
type document struct {
	parts []part
	size  int
}

// part is JSON text, or the hole that a field's value goes into.
type part struct {
	text    string
	field   field // of a hole
	dataURL bool  // the hole is within a data URL
}

// newDocument finds the marks in Ignition JSON. It looks at decoded strings, and
// into the contents of files, so no mark is missed for being encoded.
func newDocument(ignition []byte, m marks) (*document, error) {
	dec := json.NewDecoder(bytes.NewReader(ignition))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("decode Ignition: %w", err)
	}
	if err := unpackSources(tree, m); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil {
		return nil, fmt.Errorf("encode Ignition: %w", err)
	}
	return split(strings.TrimSuffix(out.String(), "\n"), m), nil
}

// unpackSources rewrites those data URLs whose contents hold a mark so that the
// mark can be seen.
func unpackSources(node any, m marks) error {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			if err := unpackSources(child, m); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := unpackSource(node, m); err != nil {
			return err
		}
		for _, child := range node {
			if err := unpackSources(child, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpackSource does so for one Ignition resource (a map with source and
// compression).
func unpackSource(resource map[string]any, m marks) error {
	source, _ := resource["source"].(string)
	if !strings.HasPrefix(source, "data:") {
		return nil
	}
	compression, _ := resource["compression"].(string)
	contents, err := decodeDataURL(source, compression)
	if err != nil || !m.within(contents) {
		return nil //nolint:nilerr // not ours to judge: a source without marks is left as it is
	}
	if verification, _ := resource["verification"].(map[string]any); verification["hash"] != nil {
		return errors.New("a file whose contents differ from server to server cannot have a verification hash")
	}
	encoded := percentEscape(contents)
	for _, mark := range m {
		encoded = strings.ReplaceAll(encoded, mark, escaped(mark))
	}
	resource["source"], resource["compression"] = "data:,"+encoded, ""
	return nil
}

func (m marks) within(s string) bool {
	for _, mark := range m {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return false
}

// decodeDataURL returns the contents of a data URL (RFC 2397).
func decodeDataURL(source, compression string) (string, error) {
	meta, data, _ := strings.Cut(strings.TrimPrefix(source, "data:"), ",")
	text, err := url.PathUnescape(data)
	if err != nil {
		return "", err
	}
	if strings.HasSuffix(meta, ";base64") {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return "", err
		}
		text = string(raw)
	}
	if compression != "gzip" {
		return text, nil
	}
	zr, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(zr, maxInline))
	return string(raw), err
}

func split(text string, m marks) *document {
	d := &document{size: len(text)}
	for text != "" {
		at, hole, length := next(text, m)
		if at > 0 {
			d.parts = append(d.parts, part{text: text[:at]})
		}
		if hole.field != "" {
			d.parts = append(d.parts, hole)
		}
		text = text[at+length:]
	}
	return d
}

// next finds the first hole in text: where it is and how long its mark, or the
// end of text.
func next(text string, m marks) (at int, hole part, length int) {
	at = len(text)
	for f, mark := range m {
		i := strings.Index(text, mark)
		if i < 0 || i >= at {
			continue
		}
		at, hole, length = i, part{field: f}, len(mark)
		if strings.HasPrefix(text[i:], escaped(mark)) {
			hole.dataURL, length = true, len(escaped(mark))
		}
	}
	return at, hole, length
}

// fill returns the document with values in its holes, encoded for where they
// stand.
func (d *document) fill(values map[field]string) string {
	var b strings.Builder
	b.Grow(d.size)
	for _, p := range d.parts {
		value := values[p.field]
		switch {
		case p.field == "":
			b.WriteString(p.text)
		case p.dataURL:
			b.WriteString(percentEscape(value))
		default:
			b.WriteString(jsonEscape(value))
		}
	}
	return b.String()
}

// percentEscape escapes all but the unreserved characters of RFC 3986 §2.3.
func percentEscape(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(s) + len(s)/4)
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~':
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// jsonEscape returns s as it stands between the quotes of a JSON string.
func jsonEscape(s string) string {
	quoted, _ := json.Marshal(s) // a string always marshals
	return string(quoted[1 : len(quoted)-1])
}
