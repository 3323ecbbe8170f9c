package registry

import (
	"context"
	"errors"
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
	bucketProgress    bucket = "progress" // written by the boot service; uses by the endpoint too
	bucketPayload     bucket = "payload"  // sealed: written by reconcile
	bucketCredential  bucket = "credential"

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
	bucketProgress, bucketPayload, bucketCredential,
}

// fleetKey is the name of the one value in bucketFleet.
const fleetKey = "fleet"

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
	// ErrTicketSpent is returned for progress with a ticket that is no longer the
	// server's, or no longer open.
	ErrTicketSpent = errors.New("the boot ticket is spent")

	// errLost is returned by a store that does not hold what was committed to it.
	errLost = errors.New("the store was emptied, replaced or rolled back")
)

// followWait is how long follow waits, and so how long a standby takes to stop.
const followWait = 500 * time.Millisecond

// store keeps bytes durably. It knows nothing of what they mean. Apart from
// follow, its methods are not called concurrently.
type store interface {
	// load returns all that is kept but leases, and whether the store is fresh:
	// never written to, or lost since.
	load(ctx context.Context) (c contents, fresh bool, err error)
	// acquire asks for leadership. The fencing number that it returns is higher
	// than any that was seen; holder is who leads instead of us, or empty when we do.
	acquire(ctx context.Context) (fence uint64, holder string, err error)
	// renew prolongs leadership and checks that the store still holds what was
	// committed: errLost if not, ErrFenced if another has led since.
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
	// durable reports whether what was committed survives a crash of the store.
	durable() bool
	// close gives up leadership and the store.
	close() error
}
