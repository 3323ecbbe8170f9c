package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of what is read: whoever may open a pull request writes these files.
const (
	maxFileBytes   = 1 << 20
	maxDocuments   = 10_000
	maxListDepth   = 8
	maxProblems    = 200 // of one file, more than anybody reads at once
	maxSearchBytes = 256 << 10
)

type document struct {
	text []byte
	line int // of the file, from 1, on which text begins
}

// syntaxError is why a document is no YAML. It never holds text of the document,
// which may be a secret.
type syntaxError struct {
	line, column int // of the file, from 1
	message      string
}

// readable checks a file as a whole and returns it without byte order mark.
func readable(data []byte) ([]byte, *syntaxError) {
	if len(data) > maxFileBytes {
		return nil, &syntaxError{message: fmt.Sprintf("the file has %d bytes, at most %d are read: split it", len(data), maxFileBytes)}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return nil, &syntaxError{line: invalidLine(data), column: 1, message: "the file is not UTF-8 text"}
	}
	return data, nil
}

func invalidLine(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return line
}

// splitDocuments splits a file at its "---" and "..." lines, before anything is
// parsed, so that a broken document does not hide those after it. YAML forbids
// such lines within a document (YAML 1.2.2 §9.1.2), even in a block of text. A
// document that holds nothing is left out.
func splitDocuments(data []byte) []document {
	var docs []document
	add := func(text []byte, line int) {
		if !blank(text) {
			docs = append(docs, document{text, line})
		}
	}
	start, startLine, line := 0, 1, 1
	for at := 0; at < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		switch {
		case at > start && isMarker(data[at:end], "---"):
			add(data[start:at], startLine)
			start, startLine = at, line
		case isMarker(data[at:end], "..."):
			add(data[start:at], startLine)
			start, startLine = end, line+1
		}
		at = end
	}
	add(data[start:], startLine)
	return docs
}

// isMarker reports whether a line begins with a marker of three letters.
func isMarker(line []byte, marker string) bool {
	return len(line) >= 3 && string(line[:3]) == marker && (len(line) == 3 || isSpace(line[3]))
}

// blank reports whether text holds only separators, directives, comments and
// empty lines.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if isMarker(line, "---") {
			line = line[3:]
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// parse returns the roots of the document: one, unless a line break that only
// YAML knows divides it further.
func (d document) parse() ([]*yaml.Node, *syntaxError) {
	roots, err := parseYAML(d.text)
	if err == nil {
		return roots, nil
	}
	return roots, d.explain(err)
}

// parseYAML turns a panic of the parser into an error: its input is anybody's.
func parseYAML(text []byte) (roots []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the YAML parser gave up on it")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return roots, err
		}
		if len(n.Content) == 1 && !isNull(n.Content[0]) {
			roots = append(roots, n.Content[0])
		}
	}
}

// explain says where a document stops being YAML and what a person should look
// for.
func (d document) explain(err error) *syntaxError {
	if line, ok := conflictMarker(d.text); ok {
		return d.at(line, "this line was left by a merge conflict: resolve it")
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, message, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, text = n, message
			}
		}
	}
	// The parser names the line where the broken block begins.
	line = max(line, firstBadLine(d.text))
	return d.at(line, "no valid YAML: "+YAMLAdvice(text, lineOf(d.text, line)))
}

// at places a message at a line of the document, on its first letter.
func (d document) at(line int, message string) *syntaxError {
	line = max(1, min(line, bytes.Count(d.text, []byte("\n"))+1))
	text := lineOf(d.text, line)
	column := 1 + len(text) - len(bytes.TrimLeft(text, " \t"))
	return &syntaxError{line: d.line + line - 1, column: column, message: message}
}

// firstBadLine finds the line that breaks the document: that up to which it
// still parses, and one more. The answer is 1 for a document that is one bracket,
// for then no part of it parses.
func firstBadLine(text []byte) int {
	if len(text) > maxSearchBytes {
		return 1
	}
	ends := []int{0}
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	good, bad := 0, len(ends)
	for bad-good > 1 {
		middle := (good + bad) / 2
		if _, err := parseYAML(text[:ends[middle]]); err == nil {
			good = middle
		} else {
			bad = middle
		}
	}
	return good + 1
}

// lineOf returns a line of text, counted from 1.
func lineOf(text []byte, line int) []byte {
	n := 0
	for l := range bytes.Lines(text) {
		if n++; n == line {
			return bytes.TrimRight(l, "\r\n")
		}
	}
	return nil
}

func conflictMarker(text []byte) (line int, ok bool) {
	for l := range bytes.Lines(text) {
		line++
		if bytes.HasPrefix(l, []byte("<<<<<<< ")) || bytes.HasPrefix(l, []byte(">>>>>>> ")) {
			return line, true
		}
	}
	return 0, false
}

// YAMLAdvice puts the parser's message into words that say what to do. A message
// that it does not know passes as it is only if it can hold no text of the
// document.
func YAMLAdvice(message string, line []byte) string {
	indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
	switch {
	case bytes.IndexByte(indent, '\t') >= 0:
		return "the line is indented with a tab: use spaces"
	case strings.Contains(message, "unknown anchor"):
		return `aliases ("*name") are not read: put text that begins with "*" in quotes`
	case strings.Contains(message, "mapping values are not allowed"):
		return `a value is not allowed here: check the indentation, and put text that holds ": " in quotes`
	case strings.Contains(message, "expected key"), strings.Contains(message, "expected '-' indicator"):
		return "the line does not fit those above it: check the indentation"
	case strings.Contains(message, "expected ','"):
		return `a "," or a closing bracket is missing`
	case strings.Contains(message, "could not find expected ':'"):
		return `a ":" is missing after the key`
	case strings.Contains(message, "cannot start any token"):
		return "a value cannot begin with this character: put text in quotes, and indent with spaces instead of tabs"
	case strings.Contains(message, "unexpected end of stream"):
		return "a quote or bracket that begins here is not closed"
	case strings.ContainsAny(message, "`\"'"):
		return "the line cannot be read"
	}
	return message
}
