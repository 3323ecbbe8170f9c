package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
	"ingot/registry/store"
)

const (
	// commitTimeout bounds one commit: whoever saves learns soon that Redis is down.
	commitTimeout = 2 * time.Second
	// loadTimeout bounds reading or writing everything.
	loadTimeout = 30 * time.Second
	// checkEvery is how often the store is looked at at least.
	checkEvery = time.Second
)

// DefaultPrefix is common to all keys in Redis, unless Options have another.
const DefaultPrefix = "ingot"

// Options are what a Registry needs. The zero value of a field means its default.
type Options struct {
	// RedisURL is where records are kept; empty means a bbolt file in Dir.
	RedisURL string
	// RedisPasswordFile holds the password of Redis, RedisCAFile certificates that it is
	// trusted by; "" = none.
	RedisPasswordFile, RedisCAFile string
	// Prefix is common to all keys in Redis; default DefaultPrefix.
	Prefix string
	// Dir is the state folder.
	Dir string
	// SealKey is what LoadSealKey returned: 32 bytes.
	SealKey []byte
	// Owner names this process to the others, for people; default "ingot".
	Owner string
	// LeaderTTL is how long leadership in Redis outlives a dead leader; default 10 s.
	LeaderTTL time.Duration

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
}

func (o Options) withDefaults() Options {
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	o.Owner = cmp.Or(o.Owner, "ingot")
	o.LeaderTTL = cmp.Or(o.LeaderTTL, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// Registry is all that is known, durable through its store.
type Registry struct {
	options Options
	log     *slog.Logger
	store   store.Store
	memory  *memory
	sealer  sealer
	tokens  model.TokenKey
	digests model.DigestKey
	// sealCheck is what the store keeps to tell other seal keys by.
	sealCheck []byte
	metrics   *metrics
	uses      *pendingUses

	turn      chan struct{} // held by the one who uses the store
	following sync.Mutex    // held by the one who waits at the feed
	queue     queue
	uncertain map[store.Key]bool // by turn: what a commit that failed may have written
	closed    bool               // by turn
	// leaseBound is, by turn, a number that there are not more leases than.
	leaseBound int

	// unread are, by turn, stored records that cannot be read: they stay as they are
	// until others take their place.
	unread store.Batch

	fence       atomic.Uint64 // 0 while another leads
	led         atomic.Bool   // we lead, or did
	ended       atomic.Bool   // we shall not lead any more
	leaderUntil atomic.Pointer[time.Time]
	holder      atomic.Pointer[string] // who leads instead of us, as far as is known
	health      atomic.Pointer[error]
	damage      atomic.Pointer[[]store.Damage]
	changed     chan struct{}
	// keepsSequence is set while what is saved counts as no decision.
	keepsSequence atomic.Bool
	// leaseEpoch counts how often the store was lost.
	leaseEpoch atomic.Uint64
}

// Open opens the store and reads it. The Registry is to be closed in the end. It
// reads at once; it writes after Lead has returned, with bbolt at once too.
func Open(ctx context.Context, o Options) (*Registry, error) {
	o = o.withDefaults()
	keys, err := deriveKeys(o.SealKey)
	if err != nil {
		return nil, err
	}
	s, err := openStore(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open registry: %w", err)
	}
	r := &Registry{
		options: o, log: o.Log, store: s, memory: newMemory(), sealer: keys.sealer, tokens: keys.tokens, digests: keys.digests, sealCheck: keys.check,
		metrics: newMetrics(o.Registerer), uses: newPendingUses(),
		turn: make(chan struct{}, 1), uncertain: make(map[store.Key]bool), changed: make(chan struct{}, 1),
		leaseBound: MaxLeases, // until it is known
	}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open registry: %w", err), s.Close())
	}
	return r, nil
}

func openStore(ctx context.Context, o Options) (store.Store, error) {
	if o.RedisURL == "" {
		return store.OpenBolt(o.Dir, o.Clock, o.Log)
	}
	return store.OpenRedis(ctx, store.RedisConfig{
		URL: o.RedisURL, PasswordFile: o.RedisPasswordFile, CAFile: o.RedisCAFile, Prefix: o.Prefix, Owner: o.Owner, TTL: o.LeaderTTL,
		Clock: o.Clock, Log: o.Log,
	})
}

// start reads the store. A file is ours alone, so there we lead from the start.
func (r *Registry) start(ctx context.Context) (err error) {
	if r.options.RedisURL == "" {
		_, err = r.tryLead(ctx)
	} else {
		_, err = r.reload(ctx)
	}
	return err
}

// Close gives up leadership and the store. Nothing can be saved after it. To
// close again does nothing.
func (r *Registry) Close() error {
	r.turn <- struct{}{}
	defer r.endTurn()
	r.following.Lock()
	defer r.following.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.setFence(0)
	return r.store.Close()
}

// Observed returns all that is known but what Git asks for. It is a snapshot
// that nobody changes, the same pointer for as long as nothing changed.
func (r *Registry) Observed() *model.Observed { return r.memory.observed() }

// Changed has a value after something changed, by whomever, since the last value
// was taken.
func (r *Registry) Changed() <-chan struct{} { return r.changed }

// Empty reports whether there is no record of the fleet: nothing was ever
// planned with this store, or it was lost while nobody ran.
func (r *Registry) Empty() bool {
	return !r.memory.has(store.Key{Bucket: store.BucketFleet, Name: fleetKey})
}

// Fence returns the fencing number of our leadership, higher than that of all
// leaders before, or 0 while we do not lead.
func (r *Registry) Fence() uint64 { return r.fence.Load() }

// Leading reports whether nobody else can lead now. It turns false when the
// store has not answered for the time of a lease, and true when it answers again
// and nobody led meanwhile.
func (r *Registry) Leading() bool {
	end := r.leaderUntil.Load()
	return r.Fence() != 0 && end != nil && time.Now().Before(*end)
}

// Healthy returns nil, or why the store cannot be used at present: it does not answer,
// or another leads; LeadState says which.
func (r *Registry) Healthy() error {
	if err := r.health.Load(); err != nil {
		return *err
	}
	return nil
}

// TokenKey makes the tokens of boot tickets.
func (r *Registry) TokenKey() model.TokenKey { return r.tokens }

// DigestKey makes the digests of what machines boot.
func (r *Registry) DigestKey() model.DigestKey { return r.digests }

// Changes is what one Save does: all of it or nothing.
type Changes struct {
	Fleet       *model.FleetRecord
	Servers     []*model.ServerRecord
	BMCs        []*model.BMCRecord
	Claims      []*model.ClaimRecord
	BMCFacts    []*model.BMCFacts
	ServerFacts []*model.ServerFacts
	Endpoints   []*model.EndpointRecord
	// Payloads are what boot tickets hand out, by ticket. They are kept sealed; see
	// CheckPayload for how large they may be.
	Payloads map[string]model.Sensitive

	// DeleteClaims names claims whose record is forgotten.
	DeleteClaims []model.ClaimName
	// DeleteEndpoints names endpoints whose record is forgotten. What DHCP says of the
	// device stays.
	DeleteEndpoints []string
	// DeleteServers names servers of which everything is forgotten, DeleteBMCFacts BMCs of which
	// what was read is.
	DeleteServers  []model.ServerName
	DeleteBMCFacts []model.BMCName
}

// Save writes c durably. Unchanged values are not written. The values are neither changed nor
// kept: the caller may change them afterwards. Nothing was written after
// ErrFenced; after other errors it may have been, and the store is brought back
// to what Observed shows as soon as it answers.
func (r *Registry) Save(ctx context.Context, c Changes) error {
	b, err := c.encode()
	if err != nil {
		return fmt.Errorf("save records: %w", err)
	}
	for id, payload := range c.Payloads {
		if err := CheckPayload(id, payload); err != nil {
			return err
		}
	}
	err = r.write(ctx, func(d *draft) (store.Batch, error) {
		return slices.Concat(b, endedWipes(d, c.Servers), r.sealedPayloads(d, c.Payloads), gonePayloads(d, c.DeleteServers)), nil
	})
	if err != nil {
		return fmt.Errorf("save records: %w", err)
	}
	return nil
}

// endedWipes are the changes that forget how far wipes are whose ticket is not open
// any more in the records that are saved.
func endedWipes(d *draft, servers []*model.ServerRecord) store.Batch {
	var e encoder
	for _, rec := range servers {
		k := store.Key{Bucket: store.BucketWipeProgress, Name: string(rec.Name)}
		wipe := drafted[model.WipeProgress](d, k)
		if wipe != nil && !(rec.Boot.Ticket.Open() && rec.Boot.Ticket.ID == wipe.Ticket) {
			e.drop(k.Name, k.Bucket)
		}
	}
	return e.batch
}

// serverBuckets are those of what is known of servers, by their names.
var serverBuckets = []store.Bucket{
	store.BucketServer, store.BucketServerFacts, store.BucketProbe, store.BucketBootState, store.BucketWipe,
	store.BucketWipeProgress, store.BucketProgress,
}

// gonePayloads are the changes that forget what the tickets of servers that are forgotten serve.
func gonePayloads(d *draft, servers []model.ServerName) store.Batch {
	var e encoder
	for _, name := range servers {
		rec := drafted[model.ServerRecord](d, store.Key{Bucket: store.BucketServer, Name: string(name)})
		if rec != nil && rec.Boot.Ticket != nil {
			e.drop(rec.Boot.Ticket.ID, store.BucketPayload)
		}
	}
	return e.batch
}

func (c Changes) encode() (store.Batch, error) {
	var e encoder
	if c.Fleet != nil {
		e.set(store.BucketFleet, fleetKey, c.Fleet)
	}
	for _, v := range c.Servers {
		e.set(store.BucketServer, string(v.Name), v)
	}
	for _, v := range c.BMCs {
		e.set(store.BucketBMC, string(v.Name), v)
	}
	for _, v := range c.Claims {
		e.set(store.BucketClaim, string(v.Name), v)
	}
	for _, v := range c.BMCFacts {
		e.set(store.BucketBMCFacts, string(v.Name), v)
	}
	for _, v := range c.ServerFacts {
		e.set(store.BucketServerFacts, string(v.Name), v)
	}
	for _, v := range c.Endpoints {
		e.set(store.BucketEndpoint, v.Name, v)
	}
	for _, name := range c.DeleteClaims {
		e.drop(string(name), store.BucketClaim)
	}
	for _, name := range c.DeleteEndpoints {
		e.drop(name, store.BucketEndpoint)
	}
	for _, name := range c.DeleteServers {
		e.drop(string(name), serverBuckets...)
	}
	for _, name := range c.DeleteBMCFacts {
		e.drop(string(name), store.BucketBMCFacts)
	}
	return e.batch, e.err
}

// encoder makes a batch of values.
type encoder struct {
	batch store.Batch
	err   error // the first one
}

func (e *encoder) set(b store.Bucket, name string, v any) {
	k := store.Key{Bucket: b, Name: name}
	raw, err := encode(k, v)
	switch {
	case e.err != nil:
	case err != nil:
		e.err = err
	case name == "":
		e.err = fmt.Errorf("encode %s: it has no name", b)
	}
	e.batch = append(e.batch, store.Change{Key: k, Value: raw})
}

// encode returns the bytes that v is stored as.
func encode(k store.Key, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", k.Bucket, k.Name, err)
	}
	return raw, nil
}

func (e *encoder) drop(name string, from ...store.Bucket) {
	for _, b := range from {
		e.batch = append(e.batch, store.Change{Key: store.Key{Bucket: b, Name: name}})
	}
}

// wake says that something changed.
func (r *Registry) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}
