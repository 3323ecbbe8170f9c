package forge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"sync"

	"ingot/gitsource/smallfile"
	"ingot/model"
)

const (
	maxSecretFile = 64 << 10 // bytes
	maxSecrets    = 16
)

// tokenHeader is where GitLab sends the secret itself.
const tokenHeader = "X-Gitlab-Token" //nolint:gosec // the name of a header

// signatureHeaders are where the others send the HMAC-SHA256 of the body, in hexadecimal.
// The first one that a request has counts. The last is ours, for whatever else announces
// pushes.
var signatureHeaders = []struct{ name, prefix string }{
	{name: "X-Hub-Signature-256", prefix: "sha256="},
	{name: "X-Forgejo-Signature"},
	{name: "X-Gitea-Signature"},
	{name: "X-Gogs-Signature"},
	{name: "X-Hub-Signature", prefix: "sha256="}, // Bitbucket; GitHub sends SHA-1 in it, after the one above
	{name: "X-Signature-256", prefix: "sha256="},
}

// digestOf returns the HMAC-SHA256 in a request's header, or nil.
func digestOf(h http.Header) []byte {
	for _, s := range signatureHeaders {
		v := h.Get(s.name)
		if v == "" {
			continue
		}
		if digest, err := hex.DecodeString(strings.TrimPrefix(v, s.prefix)); err == nil && len(digest) == sha256.Size {
			return digest
		}
		return nil
	}
	return nil
}

// isToken reports whether the token is one of the secrets. It compares hashes with all of them, so that the time
// reveals nothing.
func isToken(all []model.Sensitive, token string) bool {
	found, got := false, sha256.Sum256([]byte(token))
	for _, secret := range all {
		want := sha256.Sum256([]byte(secret.Reveal()))
		found = subtle.ConstantTimeCompare(want[:], got[:]) == 1 || found
	}
	return found
}

// signatures compute the HMAC of a body with each secret, while the body arrives.
type signatures []hash.Hash

func newSignatures(all []model.Sensitive) signatures {
	s := make(signatures, len(all))
	for i, secret := range all {
		s[i] = hmac.New(sha256.New, []byte(secret.Reveal()))
	}
	return s
}

// Write implements io.Writer.
func (s signatures) Write(p []byte) (int, error) {
	for _, mac := range s {
		_, _ = mac.Write(p) // never fails
	}
	return len(p), nil
}

func (s signatures) have(digest []byte) bool {
	found := false
	for _, mac := range s {
		found = hmac.Equal(mac.Sum(nil), digest) || found
	}
	return found
}

// secrets are those of a file, one a line, which is read again for every request: a secret
// is rotated by adding the new one, and taking the old one out once the forge has the new.
type secrets struct {
	file string

	mu   sync.Mutex
	last []model.Sensitive // that could be read
}

func (s *secrets) read() ([]model.Sensitive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := readSecrets(s.file)
	if err != nil {
		return s.last, err
	}
	s.last = all
	return all, nil
}

// errNoSecret is a file of secrets that has none (yet).
var errNoSecret = errors.New("holds no secret; write one, a line of its own, and give the same to the forge")

// CheckSecrets returns why the secrets of a webhook cannot be used.
func CheckSecrets(file string) error {
	_, err := readSecrets(file)
	return err
}

func readSecrets(file string) ([]model.Sensitive, error) {
	content, err := readSmall(file)
	if err != nil {
		return nil, err
	}
	var all []model.Sensitive
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			all = append(all, model.NewSensitive(string(line)))
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s %w", file, errNoSecret)
	case len(all) > maxSecrets:
		return nil, fmt.Errorf("%s holds %d secrets, of at most %d", file, len(all), maxSecrets)
	}
	return all, nil
}

func readSmall(file string) ([]byte, error) { return smallfile.Read(file, maxSecretFile) }
