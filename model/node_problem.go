package model

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *nodeDecoder) mismatch(n *yaml.Node, want string) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.failBy(RuleSyntax, n, `aliases ("*name") are not read: write the value out`)
		return
	case want == "a string" && isPlain(n) && isNumberOrBool(n):
		want += ": write it in quotes"
	case n.Kind == yaml.ScalarNode && n.Tag == tagString && looksLike(n.Value, want):
		want += ": write it without quotes"
	}
	d.failBy(RuleType, n, fmt.Sprintf("found %s, want %s", d.found(n), want))
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

func (d *nodeDecoder) fail(n *yaml.Node, message string) { d.failBy(RuleValue, n, message) }

func (d *nodeDecoder) failBy(rule Rule, n *yaml.Node, message string) {
	d.errors++
	if d.full() {
		return
	}
	field := pathText(d.path, "")
	d.note(field)
	d.report(n, Problem{Severity: SeverityError, Rule: rule, Field: field, Message: message})
}

func (d *nodeDecoder) warn(n *yaml.Node, message string) {
	if d.full() {
		return
	}
	d.report(n, Problem{Severity: SeverityWarning, Rule: RuleNoEffect, Field: pathText(d.path, ""), Message: message})
}

// bad reports a wrong value in a field of the object that was decoded: name, below
// the path. It is silent about what was reported before.
func (d *nodeDecoder) bad(name, message string) { d.badBy(RuleValue, name, message) }

func (d *nodeDecoder) missing(name, message string) { d.badBy(RuleRequired, name, message) }

func (d *nodeDecoder) badBy(rule Rule, name, message string) {
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
	d.report(locate(d.root, d.path, name), Problem{Severity: SeverityError, Rule: rule, Field: field, Message: message})
}

func (d *nodeDecoder) odd(name, message string) {
	if d.full() {
		return
	}
	field := pathText(d.path, name)
	d.report(locate(d.root, d.path, name), Problem{Severity: SeverityWarning, Rule: RuleNoEffect, Field: field, Message: message})
}

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

func (d *nodeDecoder) report(n *yaml.Node, p Problem) {
	if !d.quiet && d.holdsEncrypted(n) {
		p.Message = "the encrypted value is not allowed here (it is not shown, nor what is wrong with it)"
	}
	p.File, p.Line, p.Column, p.Object = d.file, n.Line+d.offset, n.Column, d.object
	d.problems = append(d.problems, p)
}

// lineOf is where a line of a text is, from 1: a line of its own if the text is a literal block ("|"), else the text.
func (d *nodeDecoder) lineOf(n *yaml.Node, line int) (at *yaml.Node, isOwn bool) {
	if n.Style&yaml.LiteralStyle == 0 || d.holdsEncrypted(n) {
		return n, false
	}
	at = &yaml.Node{Kind: n.Kind, Line: n.Line + line, Column: n.Column}
	if d.source != nil {
		at.Column = d.source.indentFrom(at.Line+d.offset) + 1
	}
	return at, true
}

// indentOf returns the indentation of a literal block ("|"), as Place has it.
func (d *nodeDecoder) indentOf(n *yaml.Node) int {
	if n.Style&yaml.LiteralStyle == 0 || d.source == nil {
		return 0
	}
	return d.source.indentFrom(n.Line + d.offset + 1)
}

// sourceText is the text of a file, for the positions that YAML's nodes do not have.
type sourceText struct {
	text  []byte
	lines [][]byte // of text, once they are needed
}

// indentFrom returns the indentation of the first line with text from a line on, which counts from 1.
func (s *sourceText) indentFrom(line int) int {
	if s.lines == nil {
		s.lines = bytes.Split(s.text, []byte("\n"))
	}
	for _, next := range s.lines[min(line-1, len(s.lines)):] {
		if text := bytes.TrimLeft(next, " "); len(bytes.TrimSpace(text)) > 0 {
			return len(next) - len(text)
		}
	}
	return 0
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
