package registry

import (
	"testing"

	"ingot/registry/store"
)

func set(b store.Bucket, name, value string) store.Change {
	return store.Change{Key: store.Key{Bucket: b, Name: name}, Value: []byte(value)}
}
func del(b store.Bucket, name string) store.Change {
	return store.Change{Key: store.Key{Bucket: b, Name: name}}
}

// with returns contents with changes made.
func with(changes ...store.Change) store.Contents {
	c := store.NewContents()
	for _, ch := range changes {
		c.Set(ch)
	}
	return c
}

func mustLoad(t *testing.T, s store.Store) (store.Contents, bool) {
	t.Helper()
	l, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l.Contents, l.Fresh
}
