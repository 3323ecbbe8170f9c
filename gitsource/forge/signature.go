package forge

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
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
	{name: "X-Signature-256", prefix: "sha256="},
}

// proof is what a request shows to have been made by somebody who knows a secret.
type proof struct {
	token  model.Sensitive // zero = there is none
	digest []byte          // of the body
}

// proofOf returns the proof in a request's header, false if there is none.
func proofOf(h http.Header) (proof, bool) {
	if token := h.Get(tokenHeader); token != "" {
		return proof{token: model.NewSensitive(token)}, true
	}
	for _, s := range signatureHeaders {
		v := h.Get(s.name)
		if v == "" {
			continue
		}
		digest, err := hex.DecodeString(strings.TrimPrefix(v, s.prefix))
		return proof{digest: digest}, err == nil && len(digest) == sha256.Size
	}
	return proof{}, false
}

// ofBody reports whether the proof can be checked only with the body at hand.
func (p proof) ofBody() bool { return p.token.IsZero() }

// by reports whether whoever knows the secret made the proof for a body. It takes the same
// time for any that is wrong.
func (p proof) by(secret model.Sensitive, body []byte) bool {
	if !p.token.IsZero() {
		// of the same length, whatever that of the token
		want, got := sha256.Sum256([]byte(secret.Reveal())), sha256.Sum256([]byte(p.token.Reveal()))
		return subtle.ConstantTimeCompare(want[:], got[:]) == 1
	}
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write(body)
	return hmac.Equal(mac.Sum(nil), p.digest)
}

// secrets are those of a file, one a line, which is read again for every request: a secret
// is rotated by adding the new one, and taking the old one out once the forge has the new.
type secrets struct {
	file string

	mu   sync.Mutex
	last []model.Sensitive // that could be read
}

// read returns the secrets, with an error those that were read last.
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

// known reports whether the proof is made with one of the secrets. It looks at all of them.
func known(all []model.Sensitive, p proof, body []byte) bool {
	found := false
	for _, secret := range all {
		found = p.by(secret, body) || found
	}
	return found
}
