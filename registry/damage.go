package registry

import (
	"bytes"
	"slices"

	"ingot/registry/store"
)

// merge adds to l the values that memory held: all if the store was rolled back, or else those that are
// missing of a damaged bucket. A record that a sound store lacks was deleted.
func merge(l *store.Loaded, kept store.Contents) {
	holed := make(map[store.Bucket]bool)
	for _, d := range l.Damage {
		holed[store.Bucket(d.Bucket)] = true
	}
	for b, values := range kept {
		for name, mine := range values {
			theirs, there := l.Contents[b][name]
			if l.Behind && !bytes.Equal(theirs, mine) || !there && holed[b] {
				l.Contents.Set(store.Change{Key: store.Key{Bucket: b, Name: name}, Value: mine})
				l.Ahead = true
			}
		}
	}
	l.Ahead = l.Ahead || l.Behind
	l.Damage = slices.DeleteFunc(l.Damage, func(d store.Damage) bool {
		b := store.Bucket(d.Bucket)
		want, counted := l.Want[b]
		return counted && len(l.Contents[b]) >= want
	})
}

// Damage returns what was found missing or unreadable of the records when the store was
// last read, and is not in memory either. It is nil after Adopt has put there what
// another copy has. Until then a store with holes is left as it is, unless it is lost as
// well, so that a new process finds the damage too.
func (r *Registry) Damage() []store.Damage {
	if damage := r.damage.Load(); damage != nil {
		return slices.Clone(*damage)
	}
	return nil
}

func (r *Registry) setDamage(damage []store.Damage) {
	if len(damage) == 0 {
		r.damage.Store(nil)
		return
	}
	for _, d := range damage {
		if d.Bucket != "" && d.Name == "" { // the others were reported where they were found
			r.log.Error("stored records are missing", "bucket", d.Bucket, "err", d.Err)
		}
	}
	r.damage.Store(&damage)
}
