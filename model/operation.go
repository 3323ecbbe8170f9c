package model

import "strings"

// Operation returns what AnnotationOperation asks for: the operation's name, and
// the whole value, which tells this request from others. Both are empty when
// nothing is asked for.
func (m *Meta) Operation() (name, value string) { return operation(m.Annotations[AnnotationOperation]) }

func operation(value string) (string, string) {
	name, _, _ := strings.Cut(value, "#")
	return name, value
}
