package model

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// DigestKey makes digests of what machines boot. They are shown on the status branch,
// so a guess of the Ignition must not be confirmed by them: whoever lacks the key can
// compute none. Nor can anybody have them computed by a claim of his own: those of one
// namespace are like none of another. The zero value has no key, and leaves digests as they
// are.
type DigestKey struct {
	id        string // names the key
	key       Sensitive
	namespace string
}

// The forms of digests under a key begin with one of these: they are of one namespace, or,
// as they once were, the same for all.
const (
	namespaced = "n"
	shared     = "k"
)

// plainDigest begins a digest that anybody can compute.
const plainDigest = "sha256:"

// NewDigestKey returns a key made from secret, which must be at least 32 bytes of
// randomness.
func NewDigestKey(secret []byte) DigestKey {
	k := DigestKey{key: NewSensitive(string(secret))}
	k.id = hex.EncodeToString(k.mac("key id")[:4]) + ":"
	return k
}

// For returns the key for what the claims of a namespace boot.
func (k DigestKey) For(namespace string) DigestKey {
	k.namespace = namespace
	return k
}

// Sum returns the keyed form of a plain digest, so that digests of before there was a
// key keep their meaning without what they are of.
func (k DigestKey) Sum(plain string) string {
	if k.key.IsZero() {
		return plain
	}
	return namespaced + k.id + hex.EncodeToString(k.mac("boot digest\x00"+k.namespace+"\x00"+plain))
}

// Former returns the keyed form that a plain digest had when it was the same for all
// namespaces.
func (k DigestKey) Former(plain string) string {
	if k.key.IsZero() {
		return plain
	}
	return shared + k.id + hex.EncodeToString(k.mac("boot digest\x00"+plain))
}

// Made reports whether a digest is of a form that Sum returns.
func (k DigestKey) Made(digest string) bool {
	if k.key.IsZero() {
		return PlainDigest(digest)
	}
	return strings.HasPrefix(digest, namespaced+k.id)
}

// MadeFormerly reports whether a digest is of a form that Former returns under the key.
func (k DigestKey) MadeFormerly(digest string) bool {
	return !k.key.IsZero() && strings.HasPrefix(digest, shared+k.id)
}

// PlainDigest reports whether anybody can compute a digest who guesses what it is of.
func PlainDigest(digest string) bool { return strings.HasPrefix(digest, plainDigest) }

func (k DigestKey) mac(text string) []byte {
	mac := hmac.New(sha256.New, []byte(k.key.Reveal()))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
