package bmc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"ingot/model"
)

// breakFor is how long refused credentials are not tried again.
const breakFor = 15 * time.Minute

// digest identifies credentials without revealing them.
type digest string

func digestOf(t model.BMCTarget) digest {
	sum := sha256.Sum256([]byte(t.Username + "\x00" + t.Password.Reveal()))
	return digest(hex.EncodeToString(sum[:8]))
}

// breaker keeps credentials that were refused from being tried again, on this BMC
// and, once enough of them refused, on every other, before 15 minutes have passed: accounts
// get locked, and the one account of a directory serves many BMCs. Credentials that some BMC
// accepted are not wrong as such, so their refusal by another concerns that one alone,
// unless it accepted them before; and so do defaults, which BMCs share that have nothing
// else in common.
type breaker struct {
	now func() time.Time

	mu         sync.Mutex
	accepted   map[digest]time.Time              // when they were last
	acceptedBy map[model.BMCName]digest          // by the BMC last
	refusedBy  map[digest]map[model.BMCName]bool // for which they are wrong, since any accepted them
	refused    map[refusedKey]time.Time          // until when
	again      map[refusedKey]bool               // that are tried once more all the same
	turns      map[digest]chan struct{}          // held by who logs in with what is not known to be right
}

// Credentials are tried on one BMC after the other where none accepted them for provenFor, for
// as long as one does not take more than turnLimit. Those that wrongOn of them refuse are wrong
// as such: one alone may have an account of its own.
const (
	provenFor = time.Minute
	turnLimit = 5 * time.Second
	wrongOn   = 2
)

// refusedKey is credentials at one BMC, or at any for an empty name.
type refusedKey struct {
	creds digest
	bmc   model.BMCName
}

func newBreaker(now func() time.Time) *breaker {
	return &breaker{
		now: now, accepted: make(map[digest]time.Time), acceptedBy: make(map[model.BMCName]digest), refusedBy: make(map[digest]map[model.BMCName]bool),
		refused: make(map[refusedKey]time.Time), again: make(map[refusedKey]bool), turns: make(map[digest]chan struct{}),
	}
}

// turn waits until nobody else finds out whether the credentials are right, so that wrong ones are
// not tried on all BMCs at once.
func (b *breaker) turn(ctx context.Context, d digest) (end func(), err error) {
	b.mu.Lock()
	turn := b.turns[d]
	if turn == nil {
		turn = make(chan struct{}, 1)
		b.turns[d] = turn
	}
	b.mu.Unlock()
	late := time.NewTimer(turnLimit)
	defer late.Stop()
	for {
		if b.proven(d) {
			return func() {}, nil
		}
		select {
		case turn <- struct{}{}:
			if b.proven(d) {
				<-turn
				continue
			}
			return func() { <-turn }, nil
		case <-late.C:
			return func() {}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// proven reports whether some BMC accepted the credentials a moment ago.
func (b *breaker) proven(d digest) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, ok := b.accepted[d]
	return ok && b.now().Before(at.Add(provenFor))
}

func (b *breaker) open(d digest, name model.BMCName, isDefault bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.again[refusedKey{d, name}] {
		return false
	}
	now := b.now()
	return now.Before(b.refused[refusedKey{d, name}]) || !isDefault && now.Before(b.refused[refusedKey{creds: d}])
}

// refuse notes that the BMC refused the credentials for certain.
func (b *breaker) refuse(d digest, name model.BMCName, isDefault bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.again, refusedKey{d, name})
	until := b.now().Add(breakFor)
	b.refused[refusedKey{d, name}] = until
	if !isDefault && b.isWrong(d, name) {
		b.refused[refusedKey{creds: d}] = until
	}
	b.sweep()
}

// isWrong reports whether credentials that a BMC refuses are wrong on others, too: as many refuse
// them that accepted them before, or none accepted them ever. The caller holds mu.
func (b *breaker) isWrong(d digest, name model.BMCName) bool {
	if _, ever := b.accepted[d]; !ever || b.acceptedBy[name] == d {
		delete(b.acceptedBy, name)
		if b.refusedBy[d] == nil {
			b.refusedBy[d] = make(map[model.BMCName]bool)
		}
		b.refusedBy[d][name] = true
	}
	return len(b.refusedBy[d]) >= wrongOn
}

// retry has the credentials tried on the BMC once more, whatever it, or another, said of
// them: a person says that the account is in order.
func (b *breaker) retry(d digest, name model.BMCName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.again[refusedKey{d, name}] = true
}

func (b *breaker) accept(d digest, name model.BMCName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepted[d], b.acceptedBy[name] = b.now(), d
	delete(b.refusedBy, d)
	delete(b.again, refusedKey{d, name})
	delete(b.refused, refusedKey{d, name})
	delete(b.refused, refusedKey{creds: d})
}

// forget drops what is known of a BMC that is gone.
func (b *breaker) forget(name model.BMCName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.acceptedBy, name)
	for _, bmcs := range b.refusedBy {
		delete(bmcs, name)
	}
}

func (b *breaker) count() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep()
	n := 0
	for key := range b.refused {
		if key.bmc != "" {
			n++
		}
	}
	return float64(n)
}

// sweep forgets what is over. The caller holds mu.
func (b *breaker) sweep() {
	now := b.now()
	for key, until := range b.refused {
		if !now.Before(until) {
			delete(b.refused, key)
		}
	}
}
