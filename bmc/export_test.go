package bmc

import (
	"errors"
	"time"

	"ingot/model"
)

func NotCarriedOut(err error) bool {
	e, ok := errors.AsType[interface {
		error
		NotCarriedOut() bool
	}](err)
	return ok && e.NotCarriedOut()
}

// Hasty returns the options for a BMC that need not be spared.
func (o CheckOptions) Hasty() CheckOptions {
	o.pace, o.readBack = -1, []time.Duration{time.Millisecond}
	return o
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
