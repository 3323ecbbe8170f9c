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
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("model: DecodeStrict into a %T, want a pointer", into))
	}
	d, bad := onlyDocument(file, data)
	if d == nil {
		return bad
	}
	decodeFuncOf(v.Type().Elem())(d, d.root, v.Elem())
	SortProblems(d.problems)
	return d.problems
}

// onlyDocument returns a decoder for the one document of a file. It is nil when
// there is none, or when the file cannot be read, which the problems say.
func onlyDocument(file string, data []byte) (*nodeDecoder, []Problem) {
	data, unread := readable(data)
	if unread != nil {
		return nil, []Problem{unread.problem(file)}
	}
	docs := splitDocuments(data)
	if len(docs) == 0 {
		return nil, nil
	}
	roots, bad := docs[0].parse()
	switch {
	case bad != nil:
		return nil, []Problem{bad.problem(file)}
	case len(docs) > 1:
		return nil, []Problem{second(docs[1].line).problem(file)}
	case len(roots) == 0:
		return nil, nil
	case len(roots) > 1:
		return nil, []Problem{second(docs[0].line + roots[1].Line - 1).problem(file)}
	}
	return newNodeDecoder(file, docs[0].line-1, roots[0]), nil
}

func second(line int) *syntaxError {
	return &syntaxError{line: line, column: 1, message: "the file has a second document, want one"}
}
