package gitsource

import (
	"encoding/json"
	"reflect"

	"ingot/model"
)

const (
	// maxInterned is how many parts are known at most. With more it begins anew: parts that
	// so many objects do not have in common are not worth to be known.
	maxInterned = 10_000
	// maxInternedBytes is how large a part is at most, written as JSON.
	maxInternedBytes = 1 << 10
)

// interner has equal parts of objects be one: labels, selectors, references and the like,
// which a fleet repeats thousands of times. That is possible because an object is not
// changed once it was decoded.
type interner struct {
	parts map[internKey]any
}

type internKey struct {
	kind    reflect.Type
	content string
}

// object interns the parts of an object, but none that holds a secret value.
func (n *interner) object(o model.Object) {
	v := reflect.ValueOf(o).Elem()
	n.fields(reflect.ValueOf(o.Metadata()).Elem())
	if spec := v.FieldByName("Spec"); spec.IsValid() {
		n.fields(spec)
	}
}

func (n *interner) fields(of reflect.Value) {
	for _, f := range of.Fields() {
		switch f.Kind() {
		case reflect.Map, reflect.Slice, reflect.Pointer:
			if !f.IsNil() {
				n.part(f)
			}
		default:
		}
	}
}

// part puts the part that was met first into the place of an equal one.
func (n *interner) part(f reflect.Value) {
	content, err := json.Marshal(f.Interface())
	if err != nil || len(content) > maxInternedBytes {
		return
	}
	key := internKey{f.Type(), string(content)}
	switch known, ok := n.parts[key]; {
	case !ok:
		if n.parts == nil || len(n.parts) >= maxInterned {
			n.parts = make(map[internKey]any)
		}
		n.parts[key] = f.Interface()
	case reflect.DeepEqual(known, f.Interface()): // JSON does not tell what is empty from what is not there
		f.Set(reflect.ValueOf(known))
	}
}
