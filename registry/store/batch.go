package store

import (
	"slices"
)

// Change sets one value, or deletes it when value is nil.
type Change struct {
	Key
	Value []byte
}

// Batch is what one commit changes: all of it or nothing. No key is in it twice.
type Batch []Change

// WithoutLeases returns the changes of b but those of leases, which memory has no
// copy of, and how many leases there are.
func (b Batch) WithoutLeases() (rest Batch, leases int) {
	for _, ch := range b {
		if IsLease(ch) {
			leases++
		}
	}
	switch leases {
	case 0:
		return b, 0
	case len(b):
		return nil, leases
	}
	return slices.DeleteFunc(slices.Clone(b), IsLease), leases
}

// IsLease reports whether a change is of a lease.
func IsLease(ch Change) bool { return ch.Bucket == BucketLease }
