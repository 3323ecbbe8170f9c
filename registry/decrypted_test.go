package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ingot/model"
	"ingot/registry/store"
)

func TestWhatIsOpenedIsForgottenWithItsSeal(t *testing.T) {
	none := func(string) bool { return false }
	cases := map[string]struct {
		change func(t *testing.T, r *Registry)
		want   string // "" when there is none
	}{
		"nothing changes":     {func(*testing.T, *Registry) {}, "before"},
		"it is saved anew":    {func(t *testing.T, r *Registry) { savePayload(t, r, "t1", "after") }, "after"},
		"its ticket ended":    {func(t *testing.T, r *Registry) { dropPayloads(t, r, none) }, ""},
		"another's is saved":  {func(t *testing.T, r *Registry) { savePayload(t, r, "t2", "other") }, "before"},
		"all is read again":   {func(_ *testing.T, r *Registry) { r.memory.reset(store.NewContents()) }, ""},
		"its ticket goes on":  {func(t *testing.T, r *Registry) { dropPayloads(t, r, func(id string) bool { return id == "t1" }) }, "before"},
		"a large one is kept": {func(t *testing.T, r *Registry) { savePayload(t, r, "t1", large) }, large},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{Dir: t.TempDir()})
			savePayload(t, r, "t1", "before")
			for range 2 {
				if got, err := r.Payload(t.Context(), "t1"); err != nil || got.Reveal() != "before" {
					t.Fatalf("got %q, %v", got.Reveal(), err)
				}
			}
			c.change(t, r)
			if kept, ok := r.memory.opened(store.Key{Bucket: store.BucketPayload, Name: "t1"}); ok && kept.Reveal() != c.want {
				t.Errorf("%q is still there in clear", kept.Reveal())
			}
			got, err := r.Payload(t.Context(), "t1")
			if _, ok := r.memory.opened(store.Key{Bucket: store.BucketPayload, Name: "t1"}); ok != (c.want != "" && c.want != large) {
				t.Errorf("it is remembered: %v", ok)
			}
			if got.Reveal() != c.want || errors.Is(err, ErrNotFound) != (c.want == "") {
				t.Errorf("got %q, %v; want %q", got.Reveal(), err, c.want)
			}
		})
	}
}

// large is more than is remembered of one value.
var large = strings.Repeat("x", maxOpenedValue+1)

func savePayload(t *testing.T, r *Registry, id, text string) {
	t.Helper()
	if err := r.SavePayload(t.Context(), id, model.NewSensitive(text)); err != nil {
		t.Fatal(err)
	}
}

func dropPayloads(t *testing.T, r *Registry, keep func(string) bool) {
	t.Helper()
	if err := r.DropPayloads(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
}

func TestAValueSealedAnewMeanwhileIsNotRemembered(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	k := store.Key{Bucket: store.BucketPayload, Name: "t1"}
	savePayload(t, r, "t1", "before")
	sealed := r.memory.kept(k)
	savePayload(t, r, "t1", "after")
	r.memory.remember(k, sealed, model.NewSensitive("before"))
	if got, ok := r.memory.opened(k); ok {
		t.Errorf("%q is remembered, which is not what is kept", got.Reveal())
	}
}

func TestWhatIsOpenedIsBounded(t *testing.T) {
	o := newOpenedValues()
	for i := range 1000 {
		o.put(store.Key{Bucket: store.BucketPayload, Name: fmt.Sprint(i)}, model.NewSensitive(large[1:]))
		o.put(store.Key{Bucket: store.BucketPayload, Name: "again"}, model.NewSensitive(large[:100]))
	}
	held := 0
	for _, plain := range o.values {
		held += len(plain.Reveal())
	}
	if held != o.bytes || held > maxOpened || held < maxOpened/2 {
		t.Errorf("%d bytes are held and %d counted, allowed are %d", held, o.bytes, maxOpened)
	}
}
