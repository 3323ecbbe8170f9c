package model

import (
	"fmt"
	"reflect"
)

// DecodeStrict decodes a YAML file of one document into the struct that into
// points to, by its json names. Fields that the file does not have keep their
// value, so that into can hold the defaults. Unknown and repeated keys and wrong
// types are reported as in manifests, all of them.
//
// It takes durations with a unit ("60s"), and every scalar as it is written for
// types that implement encoding.TextUnmarshaler.
func DecodeStrict(file string, data []byte, into any) []Problem {
	data, unread := readable(data)
	if unread != nil {
		return []Problem{unread.problem(file)}
	}
	docs := splitDocuments(data)
	if len(docs) == 0 {
		return nil
	}
	roots, bad := docs[0].parse()
	switch {
	case bad != nil:
		return []Problem{bad.problem(file)}
	case len(docs) > 1:
		return []Problem{second(docs[1].line).problem(file)}
	case len(roots) == 0:
		return nil
	case len(roots) > 1:
		return []Problem{second(docs[0].line + roots[1].Line - 1).problem(file)}
	}
	d := newNodeDecoder(file, docs[0].line-1, roots[0])
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("model: DecodeStrict into a %T, want a pointer", into))
	}
	decodeFuncOf(v.Type().Elem())(d, d.root, v.Elem())
	SortProblems(d.problems)
	return d.problems
}

func second(line int) *syntaxError {
	return &syntaxError{line: line, column: 1, message: "the file has a second document, want one"}
}
