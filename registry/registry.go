package registry

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
	"ingot/model/fault"
	"ingot/registry/store"
)

// checkEvery is the longest time between two checks of the store.
const checkEvery = time.Second

// Options are the settings of a Registry. The zero value of a field selects its default.
type Options struct {
	// RedisURL is the Redis that has the records; empty selects a bbolt file in Dir.
	RedisURL string
	// RedisPasswordFile has the password of Redis, RedisCAFile the certificates of the CAs to
	// trust; both may be empty.
	RedisPasswordFile, RedisCAFile string
	// Dir is the state folder.
	Dir string
	// SealKey is the result of LoadSealKey: 32 bytes.
	SealKey []byte
	// Owner is the name of this process that others show. It must be unique; default "ingot/" and a random ID.
	Owner string
	// HasDied reports whether the process with this name ran on this machine and has ended. This process then leads at
	// once; nil waits until the lease has expired.
	HasDied func(owner string) bool
	// LeaderTTL is how long leadership in Redis outlives a dead leader; default 10 s.
	LeaderTTL time.Duration

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
}

func (o Options) withDefaults() Options {
	o.Owner = cmp.Or(o.Owner, "ingot/"+strings.ToLower(rand.Text()))
	o.LeaderTTL = cmp.Or(o.LeaderTTL, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// Registry is the stored state by its parts. It leads, or follows the leader.
type Registry struct {
	*Records
	Lead    *Lead
	Boots   *Boots
	Leases  *Leases
	Secrets *Secrets
	// TokenKey makes the tokens of boot tickets, DigestKey the digests of boot images.
	TokenKey  model.TokenKey
	DigestKey model.DigestKey

	options   Options
	sealCheck []byte     // stored to detect another seal key
	following sync.Mutex // held while the leader's changes are read
}

// Open opens the store and reads it. The caller closes the Registry. It can be read at once, and
// written after AwaitLead has returned.
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
	db := newDatabase(s, &o, newMetrics(o.Registerer))
	r := &Registry{
		Records: &Records{database: db, sealer: keys.sealer}, Lead: db.lead,
		Boots:   &Boots{database: db, clock: o.Clock, uses: pendingUses{tickets: make(map[ticketKey]*pendingTicket)}},
		Leases:  &Leases{database: db, clock: o.Clock, bound: maxLeases}, // until they were counted
		Secrets: &Secrets{database: db, sealer: keys.sealer}, TokenKey: keys.tokens, DigestKey: keys.digests,
		options: o, sealCheck: keys.check,
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
		URL: o.RedisURL, PasswordFile: o.RedisPasswordFile, CAFile: o.RedisCAFile, Owner: o.Owner, HasDied: o.HasDied, TTL: o.LeaderTTL,
		Clock: o.Clock, Log: o.Log,
	})
}

// start reads the store. No other process can open a file, so this one leads from the start.
func (r *Registry) start(ctx context.Context) (err error) {
	if r.options.RedisURL != "" {
		_, err = r.load(ctx)
	} else {
		_, err = r.tryLead(ctx)
	}
	return err
}

// Close gives up leadership and closes the store. Later calls do nothing.
func (r *Registry) Close() error {
	r.turn <- struct{}{}
	defer r.endTurn()
	r.following.Lock()
	defer r.following.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.Lead.setFence(0)
	return r.store.Close()
}

// AwaitLead waits until this process leads. With bbolt it leads after Open. Until then memory follows
// the leader. The error is ErrSealKey or ErrLeadershipLost if this process can never lead.
func (r *Registry) AwaitLead(ctx context.Context) error {
	seen := ""
	for r.Lead.Fence() == 0 {
		holder, err := r.tryLead(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrSealKey), errors.Is(err, ErrLeadershipLost):
			return err
		}
		r.Lead.note(err)
		switch {
		case err == nil && holder == "":
			return nil
		case err == nil && holder != seen:
			seen = holder
			r.log.Info("another ingot leads; waiting", "holder", holder)
		}
		if err := r.followFor(ctx, min(checkEvery, r.options.LeaderTTL/3)); err != nil {
			return err
		}
	}
	return nil
}

// tryLead requests leadership once, and returns the leader if it is another process.
func (r *Registry) tryLead(ctx context.Context) (holder string, err error) {
	if err := r.takeTurn(ctx); err != nil {
		return "", err
	}
	defer r.endTurn()
	r.following.Lock() // loading moves the position in the feed
	defer r.following.Unlock()
	if r.Lead.ended.Load() {
		return "", ErrLeadershipLost
	}
	if err := r.checkSealKey(); err != nil { // before the leader's fencing number is raised
		return "", err
	}
	requested := time.Now()
	fence, holder, err := r.acquire(ctx)
	if err != nil {
		return "", err
	}
	r.Lead.holder.Store(&holder)
	if holder != "" {
		return holder, nil
	}
	if err = r.takeOver(ctx); err != nil {
		return "", err
	}
	clear(r.uncertain)
	r.Lead.extend(requested)
	r.Lead.setFence(fence)
	r.log.Info("leading", "fence", fence)
	return "", nil
}

// takeOver makes memory and store equal.
func (r *Registry) takeOver(ctx context.Context) error {
	l, err := r.load(ctx)
	if err != nil {
		return err
	}
	if err := r.checkSealKey(); err != nil {
		r.store.Release()
		return err
	}
	// Numbers of commits begin with the time, so that none is used again after the loss of a store.
	r.store.Raise(uint64(max(r.options.Clock().UnixMilli(), 0)))
	switch {
	case l.Fresh && r.memory.empty():
		err = r.fill(ctx)
	case l.Fresh || l.Ahead:
		err = r.rewrite(ctx, store.ErrLost)
	}
	if err != nil {
		return err
	}
	return r.keepSealCheck(ctx)
}

func (r *Registry) acquire(ctx context.Context) (uint64, string, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	fault.Point(fault.BeforeCommit)
	defer fault.Point(fault.AfterCommit)
	return r.store.Acquire(ctx)
}

// checkSealKey compares the seal key with that of the store, if it is known.
func (r *Registry) checkSealKey() error {
	if stored := r.memory.sealed(sealCheckKey); stored != nil && !hmac.Equal(stored, r.sealCheck) {
		return ErrSealKey
	}
	return nil
}

// keepSealCheck stores the check value of the seal key, unless the store has one.
func (r *Registry) keepSealCheck(ctx context.Context) error {
	if r.memory.sealed(sealCheckKey) != nil {
		return nil
	}
	b := store.Batch{{Key: sealCheckKey, Value: r.sealCheck}}
	if err := r.commitOnce(context.WithoutCancel(ctx), b); err != nil {
		return err
	}
	r.memory.apply(b)
	return nil
}

// Run keeps leadership, notices when the store is lost, and writes the uses of tickets. While another
// process leads it follows that one's changes. It returns ErrLeadershipLost once another process leads
// after this one. A store that does not respond is not an error.
func (r *Registry) Run(ctx context.Context) error {
	var uses sync.WaitGroup
	defer uses.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	uses.Go(func() { r.Boots.keepUses(ctx) })
	ticker := time.NewTicker(min(checkEvery, r.options.LeaderTTL/3))
	defer ticker.Stop()
	for ctx.Err() == nil {
		if r.Lead.ended.Load() {
			return ErrLeadershipLost
		}
		if !r.Lead.led.Load() {
			r.follow(ctx, checkEvery)
			continue
		}
		if err := r.keep(ctx); errors.Is(err, store.ErrFenced) {
			return ErrLeadershipLost
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return nil
}

// keep renews leadership, and repairs the store where it differs from memory.
func (r *Registry) keep(ctx context.Context) error {
	if err := r.takeTurn(ctx); err != nil {
		return nil
	}
	defer r.endTurn()
	if r.Lead.Fence() == 0 {
		return store.ErrFenced
	}
	requested := time.Now()
	err := r.renew(ctx)
	switch {
	case errors.Is(err, store.ErrHoles) && r.Damage() != nil:
		err = nil // the holes show what is missing, until Adopt fills them
	case errors.Is(err, store.ErrLost):
		err = r.rewrite(ctx, err)
	}
	if err == nil {
		err = r.repairUncertain(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	if r.Lead.note(err); err == nil {
		r.Lead.extend(requested)
	}
	return err
}

func (r *Registry) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return r.store.Renew(ctx)
}

func (r *Registry) followFor(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		r.follow(ctx, d)
	}
	return ctx.Err()
}

// follow applies the leader's next commits to memory, or waits for retry after a failure. A failure only
// delays memory: the store is loaded before this process leads.
func (r *Registry) follow(ctx context.Context, retry time.Duration) {
	if err := r.followOnce(ctx); err != nil && ctx.Err() == nil {
		r.Lead.note(err)
		pause(ctx, retry)
	}
}

func (r *Registry) followOnce(ctx context.Context) error {
	r.following.Lock()
	defer r.following.Unlock()
	if r.Lead.Fence() != 0 {
		pause(ctx, store.FollowWait)
		return nil
	}
	b, stale, err := r.store.Follow(ctx)
	if err == nil && stale {
		_, err = r.load(ctx)
		return err
	}
	r.apply(b)
	return err
}

// Confirm asks the store whether another process leads after this one. It is the last check before a
// request to a BMC: in a virtual machine that was paused the lease seems valid, because no clock
// advanced. It may be called concurrently.
func (r *Registry) Confirm(ctx context.Context) error {
	fence := r.Lead.Fence()
	if fence == 0 {
		return store.ErrFenced
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return r.store.Confirm(ctx, fence)
}

// maxFence bounds fencing numbers, which begin with the Unix time and increase by one for each lead.
const maxFence = 1 << 53

// RaiseFence makes the fencing number higher than above, which the status branch shows, unless it is
// already. It is called after AwaitLead and before the first save, because a store that was rolled
// back or lost repeats numbers.
func (r *Registry) RaiseFence(ctx context.Context, above uint64) error {
	if above > maxFence {
		return fmt.Errorf("fencing number %d is too high to be from an Ingot; set the status branch back to an earlier commit", above)
	}
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.endTurn()
	switch fence := r.Lead.Fence(); {
	case fence == 0:
		return store.ErrFenced
	case fence > above:
		return nil
	}
	if err := r.raiseFence(ctx, above); err != nil {
		r.Lead.note(err)
		return fmt.Errorf("raise the fencing number above %d: %w", above, err)
	}
	return nil
}

// raiseFence is RaiseFence for a caller that has the turn.
func (r *Registry) raiseFence(ctx context.Context, above uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
	defer cancel()
	requested := time.Now()
	fault.Point(fault.BeforeCommit)
	fence, err := r.store.RaiseFence(ctx, above)
	if errors.Is(err, store.ErrLost) {
		if err = r.rewrite(ctx, err); err == nil {
			fence, err = r.store.RaiseFence(ctx, above)
		}
	}
	if err != nil {
		return err
	}
	fault.Point(fault.AfterCommit)
	r.Lead.extend(requested)
	r.Lead.setFence(fence)
	r.log.Info("fencing number raised", "fence", fence, "above", above)
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
