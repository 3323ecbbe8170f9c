package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"ingot/model"
)

// The bounds on checking passwords, each of which takes a good part of a second of CPU.
const (
	maxChecks = 2  // at a time
	maxQueue  = 64 // that wait or are checked
	checkWait = 10 * time.Second
	// maxFailures is how many passwords of one address may be wrong within failureTime.
	maxFailures  = 20
	failureTime  = time.Minute
	maxAddresses = 4096
	// A password that was right counts as that for provenTime without another check.
	provenTime = 10 * time.Minute
	maxProven  = 1024
	// maxPassword is how long a password may be, in bytes.
	maxPassword = 1024
)

// answer is what became of a user's password.
type answer int

const (
	answerWrong answer = iota
	answerRight
	answerTooMany
	answerBusy
)

// proof tells a user, a password and a hash from any others, and does not tell them.
type proof [sha256.Size]byte

// passwords checks the passwords of users.
type passwords struct {
	file   *reread[*users]
	clock  func() time.Time
	secret []byte        // of this process, that proofs are made with
	queue  chan struct{} // as many as wait or are checked
	checks chan struct{} // as many as are checked

	mu       sync.Mutex // guards what is below
	proven   map[proof]time.Time
	failures map[netip.Addr]failed
}

// failed counts the wrong passwords of an address.
type failed struct {
	since time.Time
	n     int
}

func newPasswords(file *reread[*users], clock func() time.Time) *passwords {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails, see crypto/rand
	return &passwords{
		file: file, clock: clock, secret: secret, queue: make(chan struct{}, maxQueue), checks: make(chan struct{}, maxChecks),
		proven: make(map[proof]time.Time), failures: make(map[netip.Addr]failed),
	}
}

// check checks the password of a user who asks from an address. Where it was not checked,
// it returns when to try again.
func (p *passwords) check(ctx context.Context, from netip.Addr, name, password string) (answer, time.Duration) {
	hash, known := p.file.get().hashOf(name)
	of := p.proofOf(name, password, hash)
	if p.isProven(of) {
		return answerRight, 0
	}
	if len(password) > maxPassword {
		return answerWrong, 0
	}
	from = model.OneClient(from)
	if wait := p.suspect(from); wait > 0 {
		return answerTooMany, wait
	}
	if !p.enter(ctx) {
		p.acquit(from)
		return answerBusy, time.Second
	}
	defer p.leave()
	// another request with the same password may have been first
	if p.isProven(of) || bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil && known {
		p.acquit(from)
		p.prove(of)
		return answerRight, 0
	}
	return answerWrong, 0
}

// proofOf makes a proof. The parts cannot run into one another.
func (p *passwords) proofOf(parts ...string) (of proof) {
	mac := hmac.New(sha256.New, p.secret)
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	mac.Sum(of[:0])
	return of
}

// enter waits until a password may be checked, and reports whether that is so.
func (p *passwords) enter(ctx context.Context) bool {
	select {
	case p.queue <- struct{}{}:
	default:
		return false
	}
	patience := time.NewTimer(checkWait)
	defer patience.Stop()
	select {
	case p.checks <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-patience.C:
	}
	<-p.queue
	return false
}

func (p *passwords) leave() {
	<-p.checks
	<-p.queue
}

func (p *passwords) isProven(of proof) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.proven[of]
	return ok && p.clock().Sub(at) < provenTime
}

// prove notes a password that was right. Only those who know one get here, so when there
// is no room it may cost them another check.
func (p *passwords) prove(of proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.proven) >= maxProven {
		clear(p.proven)
	}
	p.proven[of] = p.clock()
}

// suspect counts a password of an address as wrong, before it is checked: else an address
// could have any number of them checked at once. It returns how long the address has to
// wait if there were too many.
func (p *passwords) suspect(from netip.Addr) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	f := p.failures[from]
	if f.n == 0 || now.Sub(f.since) >= failureTime {
		f = failed{since: now}
	}
	if f.n >= maxFailures {
		return failureTime - now.Sub(f.since)
	}
	f.n++
	if _, there := p.failures[from]; !there && len(p.failures) >= maxAddresses {
		p.forget(now)
	}
	p.failures[from] = f
	return 0
}

// acquit takes back what suspect counted.
func (p *passwords) acquit(from netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failures[from]
	if f.n--; f.n <= 0 {
		delete(p.failures, from)
		return
	}
	p.failures[from] = f
}

// forget makes room for an address: of those whose time is over or, if there is none, of
// any. The caller holds mu.
func (p *passwords) forget(now time.Time) {
	for from, f := range p.failures {
		if now.Sub(f.since) >= failureTime {
			delete(p.failures, from)
		}
	}
	for from := range p.failures {
		if len(p.failures) < maxAddresses {
			return
		}
		delete(p.failures, from)
	}
}
