package registry

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// bucket is one kind of thing that a store keeps, by name.
type bucket string

// The buckets. Each has one writer.
const (
	bucketFleet       bucket = "fleet" // records: written by reconcile
	bucketServer      bucket = "server"
	bucketBMC         bucket = "bmc"
	bucketClaim       bucket = "claim"
	bucketEndpoint    bucket = "endpoint"
	bucketBMCFacts    bucket = "bmcfacts" // observations: written by reconcile
	bucketServerFacts bucket = "serverfacts"
	bucketProbe       bucket = "probe" // reports: written by the endpoint
	bucketBootState   bucket = "bootstate"
	bucketWipe        bucket = "wipe"
	bucketProgress    bucket = "progress"  // written by the boot service; uses by the endpoint too
	bucketPayload     bucket = "payload"   // sealed: written by reconcile
	bucketSession     bucket = "session"   // sealed: written by the BMC clients
	bucketPublished   bucket = "published" // what the status branch shows; written by its publisher
	bucketSeal        bucket = "seal"      // what tells whether a seal key is the right one

	bucketWipeProgress bucket = "wipeprogress" // written by the endpoint, until the ticket ends

	bucketEndpointFacts bucket = "endpointfacts" // written by DHCP, with its leases
	bucketLease         bucket = "lease"         // DHCP's leases, which memory has no copy of
)

// buckets are all buckets that memory has a copy of. Their order is part of the
// Redis commit script's contract only within one call: a store that was written
// before there was one of them has nothing in it.
var buckets = []bucket{
	bucketFleet, bucketServer, bucketBMC, bucketClaim, bucketEndpoint,
	bucketBMCFacts, bucketServerFacts, bucketEndpointFacts,
	bucketProbe, bucketBootState, bucketWipe, bucketWipeProgress,
	bucketProgress, bucketPayload, bucketSession,
	bucketPublished, bucketSeal,
}

// The names of the one value in bucketFleet, bucketPublished and bucketSeal.
const (
	fleetKey     = "fleet"
	publishedKey = "published"
	sealKey      = "check"
)

// schemaVersion is the version of the layout and encoding of what is stored.
const schemaVersion = 1

// key names one value.
type key struct {
	bucket bucket
	name   string
}

// change sets one value, or deletes it when value is nil.
type change struct {
	key
	value []byte
}

// batch is what one commit changes: all of it or nothing. No key is in it twice.
type batch []change

// contents is all that a store holds.
type contents map[bucket]map[string][]byte

func newContents() contents {
	c := make(contents, len(buckets))
	for _, b := range buckets {
		c[b] = make(map[string][]byte)
	}
	return c
}

// empty reports whether nothing is in c.
func (c contents) empty() bool {
	for _, values := range c {
		if len(values) > 0 {
			return false
		}
	}
	return true
}

// set makes one change in c. Buckets that are not known, as a newer Ingot may
// have, are left out.
func (c contents) set(ch change) {
	values, known := c[ch.bucket]
	switch {
	case !known:
	case ch.value == nil:
		delete(values, ch.name)
	default:
		values[ch.name] = ch.value
	}
}

// Errors that callers tell apart.
var (
	// ErrFenced is returned for a write by a Registry that does not lead (any
	// more). Nothing was written.
	ErrFenced = errors.New("this ingot does not lead")
	// ErrLeadershipLost is returned by Run once another Ingot leads.
	ErrLeadershipLost = errors.New("leadership lost: another ingot leads")
	// ErrNotFound is returned for a payload or credential that is not kept.
	ErrNotFound = errors.New("not found")

	// errLost is returned by a store that does not hold what was committed to it.
	errLost = errors.New("the store was emptied, replaced or rolled back")
	// errHoles is the errLost of a store that holds less than was committed to it.
	errHoles = fmt.Errorf("some of what was stored is gone: %w", errLost)
	// errWrongType is the errLost of a store in which something else took the place of
	// what was stored.
	errWrongType = fmt.Errorf("something else is stored under a name of ours: %w", errLost)
)

// followWait is how long follow waits, and so how long a standby takes to stop.
const followWait = 500 * time.Millisecond

// loaded is what a store holds, but for leases.
type loaded struct {
	contents contents
	// fresh is set for a store that was never written to, or lost since.
	fresh bool
	// behind is set for a store that held more when it was looked at before.
	behind bool
	// ahead is set when memory knows something newer.
	ahead bool
	// uncounted is set where nobody knows how many values there should be: an older
	// Ingot wrote last.
	uncounted bool
	// want is how many values there should be, where that is counted; damage what is
	// known to be missing.
	want   map[bucket]int
	damage []Damage
}

// Durability is what becomes of a commit when the machine of the store dies.
type Durability int

// The durabilities, worst first.
const (
	// DurableNo may lose everything, or nobody knows.
	DurableNo Durability = iota
	// DurableEverySecond loses what was committed in the last second or two.
	DurableEverySecond
	// DurableAlways loses nothing.
	DurableAlways
)

func (d Durability) String() string {
	switch d {
	case DurableAlways:
		return "always"
	case DurableEverySecond:
		return "every second"
	default:
		return "no"
	}
}

// store keeps bytes durably. It knows nothing of what they mean. Apart from
// follow, its methods are not called concurrently.
//
// Its commits are numbered. The numbers grow, and none is used twice, also where a
// commit failed or the store was lost.
type store interface {
	load(ctx context.Context) (loaded, error)
	// next returns the number of the next commit, or a lower one than it will have.
	next() uint64
	// raise makes the numbers of all further commits higher than seq.
	raise(seq uint64)
	// raiseFence makes our fencing number, and that of who leads later, higher than
	// above. It returns errLost or ErrFenced without having written.
	raiseFence(ctx context.Context, above uint64) (fence uint64, err error)
	// acquire asks for leadership. The fencing number that it returns is higher
	// than any that was seen; holder is who leads instead of us, or empty when we do.
	acquire(ctx context.Context) (fence uint64, holder string, err error)
	// renew prolongs leadership and checks that the store still holds what was
	// committed: errLost if not, such as errHoles, ErrFenced if another has led since.
	renew(ctx context.Context) error
	// commit makes the changes of b, all or none, durable as far as the store is.
	// Doing so twice is the same as once. It returns errLost or ErrFenced without
	// having written; after any other error nobody knows whether it has.
	commit(ctx context.Context, b batch) error
	// replace makes c all that is kept; it is how a lost or fresh store is filled.
	// Until it has returned nil the store remains fresh. Leases that are left in it
	// stay, for nobody here has them.
	replace(ctx context.Context, c contents) error
	// leases calls visit for each lease that is kept, for some perhaps twice. The
	// bytes are visit's only until it returns.
	leases(ctx context.Context, visit func(name, value []byte)) error
	// countLeases returns how many leases are kept, and how many of those that b sets
	// are not among them.
	countLeases(ctx context.Context, b batch) (total, fresh int, err error)
	// follow waits, not longer than followWait, for commits of another leader and
	// returns them. After stale the caller has to load again.
	follow(ctx context.Context) (b batch, stale bool, err error)
	// durability is what becomes of what was committed when the store crashes.
	durability() Durability
	// release gives up leadership.
	release()
	// close gives up leadership and the store.
	close() error
}
