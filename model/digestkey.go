package model

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// DigestKey makes digests of what machines boot. They are shown on the status branch,
// so a guess of the Ignition must not be confirmed by them: whoever lacks the key can
// compute none. The zero value has no key, and leaves digests as they are.
type DigestKey struct {
	prefix string // names the key
	key    Sensitive
}

// plainDigest begins a digest that anybody can compute.
const plainDigest = "sha256:"

// NewDigestKey returns a key made from secret, which must be at least 32 bytes of
// randomness.
func NewDigestKey(secret []byte) DigestKey {
	k := DigestKey{key: NewSensitive(string(secret))}
	k.prefix = "k" + hex.EncodeToString(k.mac("key id")[:4]) + ":"
	return k
}

// Sum returns the keyed form of a plain digest, so that digests of before there was a
// key keep their meaning without what they are of.
func (k DigestKey) Sum(plain string) string {
	if k.key.IsZero() {
		return plain
	}
	return k.prefix + hex.EncodeToString(k.mac("boot digest\x00"+plain))
}

// Made reports whether a digest is of a form that Sum returns.
func (k DigestKey) Made(digest string) bool {
	if k.key.IsZero() {
		return PlainDigest(digest)
	}
	return strings.HasPrefix(digest, k.prefix)
}

// PlainDigest reports whether anybody can compute a digest who guesses what it is of.
func PlainDigest(digest string) bool { return strings.HasPrefix(digest, plainDigest) }

func (k DigestKey) mac(text string) []byte {
	mac := hmac.New(sha256.New, []byte(k.key.Reveal()))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
