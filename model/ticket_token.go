package model

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"strconv"
	"strings"
)

// TokenKey makes the tokens of boot tickets. Tokens are derived, never stored:
// they survive restarts and a lost Redis, and are of no use to whoever reads either.
type TokenKey struct{ key Sensitive }

// NewTokenKey returns a key made from secret, which must be at least 32 bytes of
// randomness.
func NewTokenKey(secret []byte) TokenKey {
	return TokenKey{NewSensitive(string(secret))}
}

// Report returns the token that a server reports with. It stands in its Ignition alone.
func (k TokenKey) Report(t *Ticket) Sensitive { return k.token("boot ticket", t) }

// Config returns the token that a server fetches its configuration with in one of the
// boots that Progress counts. It stands on the kernel's command line, where every program
// of the machine reads it.
func (k TokenKey) Config(t *Ticket, boot int) Sensitive {
	return k.token("configuration of boot "+strconv.Itoa(boot), t)
}

// token returns a 128-bit token of a ticket as 26 lower-case letters and digits, fit for
// a URL path.
func (k TokenKey) token(use string, t *Ticket) Sensitive {
	mac := hmac.New(sha256.New, []byte(k.key.Reveal()))
	mac.Write([]byte(use + "\x00" + t.ID + "\x00" + t.UUID))
	enc := base32.StdEncoding.WithPadding(base32.NoPadding)
	return NewSensitive(strings.ToLower(enc.EncodeToString(mac.Sum(nil)[:16])))
}

// MayReport reports, in constant time, whether token is the one that t's server reports
// with.
func (k TokenKey) MayReport(t *Ticket, token string) bool {
	return subtle.ConstantTimeCompare([]byte(k.Report(t).Reveal()), []byte(token)) == 1
}
