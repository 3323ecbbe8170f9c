package registry

import (
	"hash/maphash"
	"reflect"
	"strings"
	"sync"

	"ingot/model"
)

const (
	// internSlots is how many strings an interner remembers.
	internSlots = 4096
	// internBytes is the length of the longest of them: digests and references of images are.
	internBytes = 128
	// layerSlots is how many layers of images an interner remembers.
	layerSlots = 256
)

// interner makes what is decoded small: the machines of a fleet have a handful of makers,
// models, states and images between them, and strings of one's own need not be a piece of
// memory each. Few pieces are soon gone over by the garbage collector, too. It remembers the
// newest string of each hash value only, so it neither grows nor has to forget.
type interner struct {
	mu     sync.Mutex
	seed   maphash.Seed
	slots  [internSlots]string
	layers [layerSlots]*model.Layer

	own    []reflect.Value // the strings of the value that is decoded which no other has
	places map[string]int  // where each of them is in the piece that they share
}

func newInterner() *interner {
	return &interner{seed: maphash.MakeSeed(), places: make(map[string]int)}
}

// internAll makes a value that was just decoded as small as it can be: its strings share their
// bytes with those of others, its name with its key, and what is left is one piece. Layers that
// are alike are one, and slices have no room to grow.
func (in *interner) internAll(key string, v any) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.remember(key)
	in.walk(reflect.ValueOf(v))
	in.pack()
}

func (in *interner) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		in.walkPointer(v)
	case reflect.String:
		if v.CanSet() {
			in.intern(v)
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

func (in *interner) walkPointer(v reflect.Value) {
	if v.IsNil() {
		return
	}
	l, isLayer := reflect.TypeAssert[*model.Layer](v)
	if !isLayer || !v.CanSet() {
		in.walk(v.Elem())
		return
	}
	known := &in.layers[maphash.String(in.seed, l.Digest)%layerSlots]
	if *known == nil || **known != *l {
		*known = l
	}
	v.Set(reflect.ValueOf(*known))
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

// intern has a string share the bytes of the same one from before, if that is remembered.
func (in *interner) intern(v reflect.Value) {
	s := v.String()
	if s == "" || len(s) > internBytes {
		return
	}
	if known := *in.slot(s); known == s {
		v.SetString(known)
		return
	}
	in.own = append(in.own, v)
}

func (in *interner) slot(s string) *string { return &in.slots[maphash.String(in.seed, s)%internSlots] }

// remember remembers a string if it is not too long.
func (in *interner) remember(s string) {
	if slot := in.slot(s); len(s) <= internBytes && *slot != s {
		*slot = s
	}
}

// pack makes one piece of the strings that no other value has so far. Those that are remembered
// are not in it: they would keep all of it in memory.
func (in *interner) pack() {
	var piece strings.Builder
	for _, v := range in.own {
		s := v.String()
		if _, known := in.places[s]; !known {
			in.places[s] = piece.Len()
			piece.WriteString(s)
			in.remember(s)
		}
	}
	text := piece.String()
	for _, v := range in.own {
		at := in.places[v.String()]
		v.SetString(text[at : at+v.Len()])
	}
	clear(in.own)
	clear(in.places)
	in.own = in.own[:0]
}
