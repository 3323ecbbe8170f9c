package registry

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Damage is something that was stored and cannot be had any more.
type Damage struct {
	// Bucket is the kind of record: fleet, server, bmc, claim or endpoint; empty means
	// that the store as a whole was lost.
	Bucket string
	// Name is of the record, empty where it is only known how many are missing.
	Name string
	Err  error
}

func (d Damage) Error() string {
	what := d.Bucket
	if d.Name != "" {
		what += " " + d.Name
	}
	if what == "" {
		what = "store"
	}
	return fmt.Sprintf("%s: %v", what, d.Err)
}

func (d Damage) Unwrap() error { return d.Err }

// ErrMissing is the error of a Damage where values are gone and nobody knows which.
var ErrMissing = errors.New("not all that was stored is there")

// count notes which records' buckets hold less than they should.
func (l *loaded) count(want func(bucket) int) {
	l.want = make(map[bucket]int)
	for _, b := range buckets {
		l.want[b] = want(b)
		if missing := l.want[b] - len(l.contents[b]); missing > 0 && versioned[b] {
			l.damage = append(l.damage, Damage{Bucket: string(b), Err: fmt.Errorf("%w: %d of %d", ErrMissing, missing, l.want[b])})
		}
	}
}

// merge puts into l what memory held, where that is newer: of records by their version,
// of all else if the store was rolled back, and what is missing of a damaged bucket. A
// record that is not in a store which was not rolled back was deleted.
func (l *loaded) merge(held contents) {
	holed := make(map[bucket]bool)
	for _, d := range l.damage {
		holed[bucket(d.Bucket)] = true
	}
	for b, values := range held {
		for name, mine := range values {
			theirs, there := l.contents[b][name]
			take := l.behind
			switch {
			case !there:
				take = l.behind || holed[b]
			case versioned[b]:
				take = versionGiven(change{key{b, name}, mine}).After(versionGiven(change{key{b, name}, theirs}))
			}
			if take && !(there && bytes.Equal(theirs, mine)) {
				l.contents.set(change{key{b, name}, mine})
				l.ahead = true
			}
		}
	}
	l.ahead = l.ahead || l.behind
	l.damage = slices.DeleteFunc(l.damage, func(d Damage) bool {
		b := bucket(d.Bucket)
		want, counted := l.want[b]
		return counted && len(l.contents[b]) >= want
	})
}

// Damage returns what was found missing or unreadable of the records when the store was
// last read, and is not in memory either. It is nil after Restore has put there what
// another copy has. Until then a store with holes is left as it is, unless it is lost as
// well, so that a new process finds the damage too.
func (r *Registry) Damage() []Damage {
	if damage := r.damage.Load(); damage != nil {
		return slices.Clone(*damage)
	}
	return nil
}

func (r *Registry) setDamage(damage []Damage) {
	if len(damage) == 0 {
		r.damage.Store(nil)
		return
	}
	for _, d := range damage {
		if d.Bucket != "" && d.Name == "" { // the others were told of where they were found
			r.log.Error("stored records are missing", "bucket", d.Bucket, "err", d.Err)
		}
	}
	r.damage.Store(&damage)
}
