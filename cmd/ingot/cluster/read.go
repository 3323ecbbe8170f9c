package cluster

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Object is one object as kubectl prints it.
type Object map[string]any

// maxInput bounds what is read of one file, in bytes: some 100,000 objects.
const maxInput = 512 << 20

// Read returns the objects of a file of YAML or JSON: one, several documents, or Lists.
func Read(in io.Reader) ([]Object, error) {
	limited := &io.LimitedReader{R: in, N: maxInput + 1}
	var all []Object
	for decoder := yaml.NewDecoder(limited); ; {
		var doc map[string]any
		err := decoder.Decode(&doc)
		switch {
		case limited.N <= 0:
			return nil, fmt.Errorf("it has more than %d MiB", maxInput>>20)
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case doc == nil:
			continue
		}
		objects, err := flat(doc)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
}

// flat is a document's objects: those of a List one by one.
func flat(doc map[string]any) ([]Object, error) {
	kind, _ := doc["kind"].(string)
	if kind == "" {
		return nil, errors.New("a document has no kind: is it what kubectl get -o yaml prints?")
	}
	items, list := doc["items"].([]any)
	if !list || !strings.HasSuffix(kind, "List") {
		return []Object{doc}, nil
	}
	var all []Object
	for _, item := range items {
		one, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("an item of the %s is no object", kind)
		}
		objects, err := flat(one)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func (o Object) kind() string { return o.text("kind") }

func (o Object) name() string { return o.text("metadata", "name") }

func (o Object) namespaced() string {
	if ns := o.text("metadata", "namespace"); ns != "" {
		return ns + "/" + o.name()
	}
	return o.name()
}

func (o Object) String() string { return o.kind() + " " + o.namespaced() }

// at is the value at a path of fields, nil if there is none.
func (o Object) at(path ...string) any {
	var v any = map[string]any(o)
	for _, field := range path {
		m, _ := v.(map[string]any)
		v = m[field]
	}
	return v
}

// text is the string at a path of fields, "" if there is none.
func (o Object) text(path ...string) string {
	s, _ := o.at(path...).(string)
	return s
}

// mapping is the mapping at a path of fields, nil if there is none.
func (o Object) mapping(path ...string) map[string]any {
	m, _ := o.at(path...).(map[string]any)
	return m
}

// drop takes fields out of the mapping at a path.
func (o Object) drop(fields []string, path ...string) {
	m := o.mapping(path...)
	for _, field := range fields {
		delete(m, field)
	}
}

func (o Object) set(field string, value any, path ...string) {
	m := map[string]any(o)
	for _, step := range path {
		next, ok := m[step].(map[string]any)
		if !ok {
			next = make(map[string]any)
			m[step] = next
		}
		m = next
	}
	m[field] = value
}
