package store

import (
	"errors"
	"fmt"
)

// Loaded is what a store holds, but for leases.
type Loaded struct {
	Contents Contents
	// Fresh is set for a store that was never written to, or lost since.
	Fresh bool
	// Behind is set for a store that held more when it was looked at before.
	Behind bool
	// Ahead is set when memory knows something newer.
	Ahead bool
	// Want is how many values there should be, where that is counted; damage what is
	// known to be missing.
	Want   map[Bucket]int
	Damage []Damage
}

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

// Count notes which records' buckets hold less than they should.
func (l *Loaded) Count(want func(Bucket) int) {
	l.Want = make(map[Bucket]int)
	for _, b := range Buckets {
		l.Want[b] = want(b)
		if missing := l.Want[b] - len(l.Contents[b]); missing > 0 && b.IsRecord() {
			l.Damage = append(l.Damage, Damage{Bucket: string(b), Err: fmt.Errorf("%w: %d of %d", ErrMissing, missing, l.Want[b])})
		}
	}
}
