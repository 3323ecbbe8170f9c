package registry

import (
	"ingot/registry/store"
)

// draft has the values after the edits of a commit that is being assembled.
type draft struct {
	memory *memory
	edited map[store.Key][]byte
	order  []store.Key
	size   int
	// tenancy is nil before the first edit of leases.
	tenancy *tenancy
}

func newDraft(m *memory) *draft { return &draft{memory: m} }

func (d *draft) add(b store.Batch) {
	if d.edited == nil { // most have one edit
		d.edited, d.order = make(map[store.Key][]byte, len(b)), make([]store.Key, 0, len(b))
	}
	for _, ch := range b {
		if _, again := d.edited[ch.Key]; !again {
			d.order = append(d.order, ch.Key)
		}
		d.edited[ch.Key] = ch.Value
		d.size += len(ch.Name) + len(ch.Value)
	}
}

// sealed returns the bytes of a value in a sealed bucket, nil if it does not exist.
func (d *draft) sealed(k store.Key) []byte {
	if value, ok := d.edited[k]; ok {
		return value
	}
	return d.memory.sealed(k)
}

// changes returns the newest value of each edited key that differs from the stored one.
func (d *draft) changes() store.Batch {
	b := make(store.Batch, 0, len(d.order))
	for _, k := range d.order {
		if ch := (store.Change{Key: k, Value: d.edited[k]}); store.IsLease(ch) || d.memory.differs(ch) {
			b = append(b, ch)
		}
	}
	return b
}

// drafted returns a decoded value of a draft, nil if it does not exist or cannot be read. The caller
// must not change it.
func drafted[V any](d *draft, k store.Key) *V {
	raw, edited := d.edited[k]
	if !edited {
		v, _ := d.memory.value(k).(*V)
		return v
	}
	if raw == nil {
		return nil
	}
	v, err := decode[V](raw)
	if err != nil {
		return nil
	}
	return v.(*V)
}
