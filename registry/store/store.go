package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Key names one value.
type Key struct {
	Bucket Bucket
	Name   string
}

// Contents is all that a store holds.
type Contents map[Bucket]map[string][]byte

// NewContents returns contents with nothing in them, of all buckets.
func NewContents() Contents {
	c := make(Contents, len(Buckets))
	for _, b := range Buckets {
		c[b] = make(map[string][]byte)
	}
	return c
}

// Empty reports whether nothing is in c.
func (c Contents) Empty() bool {
	for _, values := range c {
		if len(values) > 0 {
			return false
		}
	}
	return true
}

// Set makes one change in c. Unknown buckets are left out.
func (c Contents) Set(ch Change) {
	values, known := c[ch.Bucket]
	switch {
	case !known:
	case ch.Value == nil:
		delete(values, ch.Name)
	default:
		values[ch.Name] = ch.Value
	}
}

// FollowWait is how long follow waits, and so how long a standby takes to stop.
const FollowWait = 500 * time.Millisecond

// Errors that callers tell apart.
var (
	// ErrFenced is returned for a write by a process that does not lead (any more). Nothing was
	// written.
	ErrFenced = errors.New("this ingot does not lead")
	// ErrLost is returned by a store that does not hold what was committed to it.
	ErrLost = errors.New("the store was emptied, replaced or rolled back")
	// ErrHoles is the ErrLost of a store that holds less than was committed to it.
	ErrHoles = fmt.Errorf("some of what was stored is gone: %w", ErrLost)
	// ErrFull is returned by the embedded store when a write does not fit.
	ErrFull = errors.New("the disk is full: free some space on the file system of state.dir")
	// errWrongType is the ErrLost of a store in which something else took the place of
	// what was stored.
	errWrongType = fmt.Errorf("something else is stored under a name of ours: %w", ErrLost)
)

// LeaseGroup is how many leases one commit has at most: Redis does nothing else meanwhile.
const LeaseGroup = 4096

// Store keeps bytes durably. It knows nothing of what they mean. Apart from Follow and
// Confirm, its methods are not called concurrently.
//
// Its commits are numbered. The numbers grow, and none is used twice, also where a commit
// failed or the store was lost.
type Store interface {
	Data
	Leadership
	Leases
	// Close gives up leadership and the store.
	Close() error
}

// Data are the values by bucket and name, but for leases.
type Data interface {
	// Load reads all.
	Load(ctx context.Context) (Loaded, error)
	// Commit makes the changes of b, all or none, durable as far as the store is.
	// Doing so twice is the same as once. It returns ErrLost or ErrFenced without
	// having written; after any other error nobody knows whether it has.
	Commit(ctx context.Context, b Batch) error
	// Replace makes c all that is kept; it is how a lost or fresh store is filled.
	// Until it has returned nil the store remains fresh. Leases that are left in it
	// stay, for nobody here has them.
	Replace(ctx context.Context, c Contents) error
	// Follow waits, not longer than FollowWait, for commits of another leader and
	// returns them. After stale the caller has to load again.
	Follow(ctx context.Context) (b Batch, stale bool, err error)
	// Next returns the number of the next commit.
	Next() uint64
	// Raise makes the numbers of all further commits higher than seq.
	Raise(seq uint64)
}

// Leadership is who may write.
type Leadership interface {
	// Acquire asks for leadership. The fencing number that it returns is higher
	// than any that was seen; holder is who leads instead of us, or empty when we do.
	Acquire(ctx context.Context) (fence uint64, holder string, err error)
	// Renew prolongs leadership and checks that the store still holds what was
	// committed: ErrLost if not, such as ErrHoles, ErrFenced if another has led since.
	Renew(ctx context.Context) error
	// RaiseFence makes our fencing number, and that of any later leader, higher than
	// above. It returns ErrLost or ErrFenced without having written.
	RaiseFence(ctx context.Context, above uint64) (fence uint64, err error)
	// Confirm returns nil if nobody leads after the one with this fencing number. It may
	// be called concurrently with all else.
	Confirm(ctx context.Context, fence uint64) error
	// Release gives up leadership.
	Release()
}

// Leases are what DHCP has the store keep. They are in the same commits as all else.
type Leases interface {
	// EachLease calls visit for each lease that is kept, for some perhaps twice. The
	// bytes are visit's only until it returns.
	EachLease(ctx context.Context, visit func(name, value []byte)) error
	// CountLeases returns how many leases are kept, and how many of those that b sets
	// are not among them.
	CountLeases(ctx context.Context, b Batch) (total, fresh int, err error)
}
