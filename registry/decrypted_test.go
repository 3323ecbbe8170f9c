package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/store"
)

func TestWhatIsOpenedIsForgottenWithItsSeal(t *testing.T) {
	none := func(string) bool { return false }
	cases := map[string]struct {
		change func(t *testing.T, r *Registry)
		want   string // "" when there is none
	}{
		"nothing changes": {
			change: func(*testing.T, *Registry) {},
			want:   "before",
		},
		"it is saved anew": {
			change: func(t *testing.T, r *Registry) { savePayload(t, r, "t1", "after") },
			want:   "after",
		},
		"its ticket ended": {
			change: func(t *testing.T, r *Registry) { dropPayloads(t, r, none) },
		},
		"another's is saved": {
			change: func(t *testing.T, r *Registry) { savePayload(t, r, "t2", "other") },
			want:   "before",
		},
		"all is read again": {
			change: func(_ *testing.T, r *Registry) { r.memory.reset(store.NewContents()) },
		},
		"its ticket goes on": {
			change: func(t *testing.T, r *Registry) { dropPayloads(t, r, func(id string) bool { return id == "t1" }) },
			want:   "before",
		},
		"a large one is kept": {
			change: func(t *testing.T, r *Registry) { savePayload(t, r, "t1", large) },
			want:   large,
		},
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
			if kept, ok := r.memory.decryptedValue(store.Key{Bucket: store.BucketPayload, Name: "t1"}); ok && kept.Reveal() != c.want {
				t.Errorf("%q is still there in clear", kept.Reveal())
			}
			got, err := r.Payload(t.Context(), "t1")
			_, ok := r.memory.decryptedValue(store.Key{Bucket: store.BucketPayload, Name: "t1"})
			if ok != (c.want != "" && c.want != large) {
				t.Errorf("it is remembered: %v", ok)
			}
			if got.Reveal() != c.want || errors.Is(err, ErrNotFound) != (c.want == "") {
				t.Errorf("got %q, %v; want %q", got.Reveal(), err, c.want)
			}
		})
	}
}

var large = strings.Repeat("x", maxDecryptedValue+1)

func savePayload(t *testing.T, r *Registry, id, text string) {
	t.Helper()
	must.Do(t, r.SavePayload(t.Context(), id, model.NewSensitive(text)))
}

func dropPayloads(t *testing.T, r *Registry, keep func(string) bool) {
	t.Helper()
	must.Do(t, r.DropPayloads(t.Context(), keep))
}

func TestAValueSealedAnewMeanwhileIsNotRemembered(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	k := store.Key{Bucket: store.BucketPayload, Name: "t1"}
	savePayload(t, r, "t1", "before")
	sealed := r.memory.kept(k)
	savePayload(t, r, "t1", "after")
	r.memory.remember(k, sealed, model.NewSensitive("before"))
	if got, ok := r.memory.decryptedValue(k); ok {
		t.Errorf("%q is remembered, which is not what is kept", got.Reveal())
	}
}

func TestWhatIsOpenedIsBounded(t *testing.T) {
	o := newDecryptedValues()
	for i := range 1000 {
		o.put(store.Key{Bucket: store.BucketPayload, Name: fmt.Sprint(i)}, model.NewSensitive(large[1:]))
		o.put(store.Key{Bucket: store.BucketPayload, Name: "again"}, model.NewSensitive(large[:100]))
	}
	held := 0
	for _, plain := range o.values {
		held += len(plain.Reveal())
	}
	if held != o.bytes || held > maxDecrypted || held < maxDecrypted/2 {
		t.Errorf("%d bytes are held and %d counted, allowed are %d", held, o.bytes, maxDecrypted)
	}
}
