package bmc

import (
	"errors"

	"ingot/model"
)

// NotCarriedOut reports whether a call that failed is certain to have changed nothing.
func NotCarriedOut(err error) bool {
	e, ok := errors.AsType[interface {
		error
		NotCarriedOut() bool
	}](err)
	return ok && e.NotCarriedOut()
}

// Fingerprint returns the SHA-256 of the certificate that the BMC showed last, in
// hexadecimal, or "" if it was not met yet or has none.
func (p *Pool) Fingerprint(name model.BMCName) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[name]; c != nil {
		return c.pin.fingerprint()
	}
	return ""
}

// Stats counts what was asked of one BMC since its client was made.
type Stats struct {
	Requests    uint64 // sent, logins and repetitions included
	Connections uint64 // opened
	Sessions    uint64 // opened
}

// Stats returns the BMC's counts; they are zero if it has no client.
func (p *Pool) Stats(name model.BMCName) Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[name]
	if c == nil {
		return Stats{}
	}
	return Stats{c.requests.Load(), c.connections.Load(), c.sessions.Load()}
}
