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
const breakFor = model.RefusedPauseMax

// digest identifies credentials without revealing them.
type digest string

func digestOf(t model.BMCTarget) digest {
	sum := sha256.Sum256([]byte(t.Username + "\x00" + t.Password.Reveal()))
	return digest(hex.EncodeToString(sum[:8]))
}

// breaker keeps refused credentials from being tried again, because accounts get locked, and one account of a directory serves
// many BMCs. A BMC is not asked for 15 minutes. Once enough BMCs have refused credentials that no BMC ever accepted, none is.
// A BMC that refuses the credentials that it accepted before is starting, or its account is locked: it is asked at the pace
// of model.Acceptance, and no other BMC is concerned. Neither is one by the refusal of defaults, which BMCs share that have
// nothing else in common.
type breaker struct {
	now func() time.Time

	mu         sync.Mutex
	accepted   map[digest]time.Time              // when a BMC last accepted them, zero = before this process began
	acceptedBy map[model.BMCName]accepted        // by the BMC last
	refusedBy  map[digest]map[model.BMCName]bool // of those that no BMC accepted
	refused    map[refusedKey]time.Time          // until when
	again      map[refusedKey]bool               // that are tried once more all the same
	turns      map[digest]chan struct{}          // held by who logs in with what is not known to be right
}

// accepted are the credentials that a BMC accepted last, with its refusals since.
type accepted struct {
	creds digest
	model.Acceptance
}

// Credentials are tried on one BMC after the other where none accepted them for provenFor, for
// as long as one does not take more than turnLimit. Those that wrongOn of them refuse, and none
// accepts, are wrong as such: one alone may have an account of its own.
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
		now: now, accepted: make(map[digest]time.Time), acceptedBy: make(map[model.BMCName]accepted), refusedBy: make(map[digest]map[model.BMCName]bool),
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

// learn notes what the records have about credentials, unless more is known of them.
func (b *breaker) learn(d digest, name model.BMCName, was model.Acceptance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.accepted[d]; !known && (was.Here || was.Elsewhere) {
		b.accepted[d] = time.Time{}
	}
	if !was.Here || b.acceptedBy[name].creds == d {
		return
	}
	b.acceptedBy[name] = accepted{d, was}
	if until := was.Refused.AskAt(); !until.After(b.now().Add(breakFor)) { // else the clock was ahead
		b.refused[refusedKey{d, name}] = until
	}
}

// acceptance returns the refusals of credentials that the BMC accepted last, the zero value for others.
func (b *breaker) acceptance(d digest, name model.BMCName) model.Acceptance {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.acceptedBy[name]; a.creds == d {
		return a.Acceptance
	}
	return model.Acceptance{}
}

func (b *breaker) open(d digest, name model.BMCName, isDefault bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.again[refusedKey{d, name}] {
		return false
	}
	now, ofAll := b.now(), !isDefault && b.acceptedBy[name].creds != d
	return now.Before(b.refused[refusedKey{d, name}]) || ofAll && now.Before(b.refused[refusedKey{creds: d}])
}

// refuse notes that the BMC refused the credentials for certain, and returns until when it is not asked again.
func (b *breaker) refuse(d digest, name model.BMCName, isDefault bool) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep()
	now := b.now()
	until := now.Add(breakFor)
	delete(b.again, refusedKey{d, name})
	if a := b.acceptedBy[name]; a.creds == d {
		a.Refused = model.Refusals{Count: a.Refused.Count + 1, At: now}
		b.acceptedBy[name], until = a, a.Refused.AskAt()
	} else if _, ever := b.accepted[d]; !ever && !isDefault {
		if b.refusedBy[d] == nil {
			b.refusedBy[d] = make(map[model.BMCName]bool)
		}
		b.refusedBy[d][name] = true
		if len(b.refusedBy[d]) >= wrongOn {
			b.refused[refusedKey{creds: d}] = until
		}
	}
	b.refused[refusedKey{d, name}] = until
	return until
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
	b.accepted[d], b.acceptedBy[name] = b.now(), accepted{d, model.Acceptance{Here: true}}
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
