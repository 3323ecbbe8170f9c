// Package must ends a test at the first error of a step that has to succeed.
package must

import "testing"

// Do ends the test if a step returns an error.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns the value of a step. The returned function ends the test if the step failed, so a call
// is must.Get(os.ReadFile(name))(t).
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}
