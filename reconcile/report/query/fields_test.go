package query

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check compares the fields of a list with those of its rows in JSON. Labels have a parameter
// of their own.
func check[R any](t *testing.T, l List[R], row R) {
	t.Helper()
	want := slices.DeleteFunc(jsonFields(reflect.TypeOf(row).Elem()), func(name string) bool { return name == "labels" })
	got := l.Fields()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of %s (-in JSON +in the list):\n%s", l.Name(), diff)
	}
}

func jsonFields(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Anonymous:
			names = append(names, jsonFields(f.Type)...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}
