package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// The bounds on checking passwords, each of which takes a good part of a second of CPU.
const (
	maxChecks = 2 // at the same time
	checkWait = 10 * time.Second
	// A password that was right needs no other check for provenTime.
	provenTime = 10 * time.Minute
	maxProven  = 1024
	// maxPassword is the maximum length of a password in bytes.
	maxPassword = 1024
)

type answer int

const (
	answerWrong answer = iota
	answerRight
	answerBusy
)

// proof tells a user, a password and a hash from any others, and does not tell them.
type proof [sha256.Size]byte

type passwords struct {
	file   *reread[*users]
	clock  func() time.Time
	secret []byte        // of this process, that proofs are made with
	checks chan struct{} // one entry for each check under way

	mu     sync.Mutex // guards proven
	proven map[proof]time.Time
}

func newPasswords(file *reread[*users], clock func() time.Time) *passwords {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails, see crypto/rand
	return &passwords{
		file: file, clock: clock, secret: secret, checks: make(chan struct{}, maxChecks), proven: make(map[proof]time.Time),
	}
}

func (p *passwords) check(ctx context.Context, name, password string) answer {
	hash, known := p.file.get().hashOf(name)
	of := p.proofOf(name, password, hash)
	if p.isProven(of) {
		return answerRight
	}
	if len(password) > maxPassword {
		return answerWrong
	}
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	select {
	case p.checks <- struct{}{}:
	case <-ctx.Done():
		return answerBusy
	}
	defer func() { <-p.checks }()
	// another request with the same password may have been first
	if p.isProven(of) || bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil && known {
		p.prove(of)
		return answerRight
	}
	return answerWrong
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
