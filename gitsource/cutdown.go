package gitsource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
)

// cutDown returns a document, which has size bytes, without its largest fields, so
// that it can be read again, and an error that names them. Section decided stays whole: a
// document that has none, or one that is too large by itself, is nil.
func cutDown(d *model.Document, size int) ([]byte, error) {
	tooLarge := fmt.Errorf("it has %d bytes, at most %d are written", size, maxStatusFile)
	raw, err := json.Marshal(d.Object)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields[model.SectionDecided] == nil {
		return nil, tooLarge
	}
	bySize := slices.SortedFunc(maps.Keys(fields), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(fields[b]), len(fields[a])), cmp.Compare(a, b))
	})
	var left []string
	for _, name := range bySize {
		if name == model.SectionDecided {
			continue
		}
		delete(fields, name)
		left = append(left, name)
		content, err := marshalYAML(fields)
		if err != nil {
			return nil, err
		}
		if len(content) <= maxStatusFile {
			return content, fmt.Errorf("%w: left out are %q", tooLarge, left)
		}
	}
	return nil, tooLarge
}
