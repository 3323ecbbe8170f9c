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

// Prefixes of digests: keyedPrefix of one under a key, plainPrefix of one that anybody can
// compute.
const (
	keyedPrefix = "n"
	plainPrefix = "sha256:"
)

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

// Sum returns the keyed form of a plain digest.
func (k DigestKey) Sum(plain string) string {
	if k.key.IsZero() {
		return plain
	}
	return keyedPrefix + k.id + hex.EncodeToString(k.mac("boot digest\x00"+k.namespace+"\x00"+plain))
}

// Made reports whether a digest is of a form that Sum returns.
func (k DigestKey) Made(digest string) bool {
	if k.key.IsZero() {
		return strings.HasPrefix(digest, plainPrefix)
	}
	return strings.HasPrefix(digest, keyedPrefix+k.id)
}

// Credentials returns a fingerprint of credentials, "" without a key. A record has it, so a guess of the password must not be
// confirmed by it. A plan makes one for each BMC, so it is a hash that begins with the key, cut in half against length
// extension, which takes half the time of an HMAC. If it is the known one, that is returned, and nothing is allocated.
func (k DigestKey) Credentials(user string, password Sensitive, known string) string {
	if k.key.IsZero() {
		return ""
	}
	text := append(make([]byte, 0, 192), k.key.Reveal()...)
	text = append(append(text, "bmc credentials\x00"...), user...)
	sum := sha256.Sum256(append(append(text, 0), password.Reveal()...))
	var digits [sha256.Size]byte
	hex.Encode(digits[:], sum[:16])
	if string(digits[:]) == known {
		return known
	}
	return string(digits[:])
}

func (k DigestKey) mac(text string) []byte {
	mac := hmac.New(sha256.New, []byte(k.key.Reveal()))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
