package registry

import (
	"hash/maphash"
	"reflect"
	"sync"
)

const (
	// internSlots is how many strings an interner remembers.
	internSlots = 4096
	// internBytes is the length of the longest of them: digests and references of images are.
	internBytes = 128
)

// interner makes strings that are alike share their bytes: the machines of a fleet
// have a handful of makers, models and states between them. It remembers the newest
// string of each hash value only, so it neither grows nor has to forget.
type interner struct {
	mu    sync.Mutex
	seed  maphash.Seed
	slots [internSlots]string
}

func newInterner() *interner { return &interner{seed: maphash.MakeSeed()} }

// internAll makes a value that was just decoded as small as it can be: its strings
// share their bytes with those of others, and its slices have no room to grow.
func (in *interner) internAll(v any) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.walk(reflect.ValueOf(v))
}

func (in *interner) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			in.walk(v.Elem())
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(in.intern(v.String()))
		}
	case reflect.Slice:
		in.walkSlice(v)
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() { // not those within a time.Time
				in.walk(field)
			}
		}
	default: // numbers, and maps, whose values cannot be set
	}
}

func (in *interner) walkSlice(v reflect.Value) {
	if n := v.Len(); v.CanSet() && v.Cap() > n {
		exact := reflect.MakeSlice(v.Type(), n, n)
		reflect.Copy(exact, v)
		v.Set(exact)
	}
	switch v.Type().Elem().Kind() {
	case reflect.String, reflect.Struct, reflect.Pointer, reflect.Slice:
		for i := range v.Len() {
			in.walk(v.Index(i))
		}
	default: // bytes and the like
	}
}

// intern returns s, with the bytes of the same string from before if that is
// remembered.
func (in *interner) intern(s string) string {
	if s == "" || len(s) > internBytes {
		return s
	}
	slot := &in.slots[maphash.String(in.seed, s)%internSlots]
	if *slot != s {
		*slot = s
	}
	return *slot
}
