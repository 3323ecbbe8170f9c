package registry

import (
	"testing"

	"ingot/model/must"
	"ingot/registry/store"
)

func set(b store.Bucket, name, value string) store.Change {
	return store.Change{Key: store.Key{Bucket: b, Name: name}, Value: []byte(value)}
}
func del(b store.Bucket, name string) store.Change {
	return store.Change{Key: store.Key{Bucket: b, Name: name}}
}

// remove takes all that is known of an object out of the store, as whoever edits the store
// by hand may.
func remove(t *testing.T, r *Registry, name string, buckets ...store.Bucket) {
	t.Helper()
	var b store.Batch
	for _, bucket := range buckets {
		b = append(b, del(bucket, name))
	}
	must.Do(t, r.write(t.Context(), always(b)))
}

func with(changes ...store.Change) store.Contents {
	c := store.NewContents()
	for _, ch := range changes {
		c.Set(ch)
	}
	return c
}

func mustLoad(t *testing.T, s store.Store) (store.Contents, bool) {
	t.Helper()
	l := must.Get(s.Load(t.Context()))(t)
	return l.Contents, l.Fresh
}
