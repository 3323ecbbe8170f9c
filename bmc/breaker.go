package bmc

import (
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
// and on every other, before 15 minutes have passed: accounts get locked, and the
// one account of a directory serves many BMCs. Credentials that some BMC accepted
// are not wrong as such, so their refusal by another concerns that one alone, and
// so do defaults, which BMCs share that have nothing else in common.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	accepted map[digest]bool
	refused  map[refusedKey]time.Time // until when
	again    map[refusedKey]bool      // that are tried once more all the same
}

// refusedKey is credentials at one BMC, or at any for an empty name.
type refusedKey struct {
	creds digest
	bmc   model.BMCName
}

func newBreaker(now func() time.Time) *breaker {
	return &breaker{now: now, accepted: make(map[digest]bool), refused: make(map[refusedKey]time.Time), again: make(map[refusedKey]bool)}
}

// open reports whether the credentials are not to be tried on the BMC.
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
	if !b.accepted[d] && !isDefault {
		b.refused[refusedKey{creds: d}] = until
	}
	b.sweep()
}

// retry has the credentials tried on the BMC once more, whatever it, or another, said of
// them: a person says that the account is in order.
func (b *breaker) retry(d digest, name model.BMCName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.again[refusedKey{d, name}] = true
}

// accept notes that the BMC accepted the credentials.
func (b *breaker) accept(d digest, name model.BMCName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepted[d] = true
	delete(b.again, refusedKey{d, name})
	delete(b.refused, refusedKey{d, name})
	delete(b.refused, refusedKey{creds: d})
}

// count returns how many breakers are open.
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
