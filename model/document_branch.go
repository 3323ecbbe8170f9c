package model

import (
	"reflect"
	"slices"
)

// SectionDecided is the section of a document on the status branch that is read back.
const SectionDecided = "decided"

// DecodeDocument decodes a file of the status branch into doc, a pointer to a struct. Section decided is
// decoded as strictly as manifests are. Of the other sections all is taken that fits, also with an error.
func DecodeDocument(file string, data []byte, doc any) error {
	data, unread := readable(data)
	if unread != nil {
		return JoinErrors([]Problem{unread.problem(file)})
	}
	roots, unread := document{data, 1}.parse()
	switch {
	case unread != nil:
		return JoinErrors([]Problem{unread.problem(file)})
	case len(roots) == 0:
		return nil
	}
	decided, others := *roots[0], *roots[0]
	decided.Content, others.Content = nil, nil
	for pair := range slices.Chunk(roots[0].Content, 2) {
		of := &others
		if pair[0].Value == SectionDecided {
			of = &decided
		}
		of.Content = append(of.Content, pair...)
	}
	v := reflect.ValueOf(doc).Elem()
	decode := decodeFuncOf(v.Type())
	decode(newNodeDecoder(file, 0, &others), &others, v)
	d := newNodeDecoder(file, 0, &decided)
	decode(d, &decided, v)
	return JoinErrors(d.problems)
}
