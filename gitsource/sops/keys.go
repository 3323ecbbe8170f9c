package sops

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"

	"filippo.io/age"
	"go.yaml.in/yaml/v3"

	"ingot/gitsource/smallfile"
	"ingot/model"
)

// Limits of a key file.
const (
	maxKeyFile    = 64 << 10 // bytes
	maxIdentities = 64
)

// Keys are the age identities of a file, which may change while the program runs.
type Keys struct {
	file string

	mu         sync.Mutex // guards what is below
	read       [sha256.Size]byte
	identities map[string]age.Identity // by recipient
}

// NewKeys returns the keys of a file as age-keygen writes it; "" is no key. The file is read
// by Reload.
func NewKeys(file string) *Keys { return &Keys{file: file} }

// Reload reads the file again and reports whether it holds others than before. Of a file
// that cannot be read the former identities stay.
func (k *Keys) Reload() (changed bool, err error) {
	if k.file == "" {
		return false, nil
	}
	text, err := smallfile.Read(k.file, maxKeyFile)
	if err != nil {
		return false, fmt.Errorf("read age key file %s: %w", k.file, smallfile.Cause(err))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	sum := sha256.Sum256(text)
	if k.identities != nil && sum == k.read {
		return false, nil
	}
	identities, err := parseIdentities(text)
	if err != nil {
		return false, fmt.Errorf("read age key file %s: %w", k.file, err)
	}
	k.identities, k.read = identities, sum
	return true, nil
}

// parseIdentities reads a line for each identity; others are empty or begin with #. Its
// errors repeat nothing of the file: the parsers' own would.
func parseIdentities(text []byte) (map[string]age.Identity, error) {
	identities := make(map[string]age.Identity)
	number := 0
	for line := range bytes.Lines(text) {
		number++
		s := strings.TrimSpace(string(line))
		if s == "" || s[0] == '#' {
			continue
		}
		recipient, identity, err := parseIdentity(s)
		if err != nil {
			return nil, fmt.Errorf("line %d is no identity of age: it begins with AGE-SECRET-KEY-1 or AGE-SECRET-KEY-PQ-1, as age-keygen writes it", number)
		}
		identities[recipient] = identity
		if len(identities) > maxIdentities {
			return nil, fmt.Errorf("it has more than %d identities", maxIdentities)
		}
	}
	if len(identities) == 0 {
		return nil, errors.New("it holds no identity: age-keygen makes one")
	}
	return identities, nil
}

func parseIdentity(s string) (recipient string, identity age.Identity, err error) {
	if strings.HasPrefix(s, "AGE-SECRET-KEY-PQ-1") {
		i, err := age.ParseHybridIdentity(s)
		if err != nil {
			return "", nil, err
		}
		return i.Recipient().String(), i, nil
	}
	i, err := age.ParseX25519Identity(s)
	if err != nil {
		return "", nil, err
	}
	return i.Recipient().String(), i, nil
}

// identity is the one of a recipient, nil if there is none.
func (k *Keys) identity(recipient string) age.Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.identities[recipient]
}

// Open decrypts the documents of a file in place, for model.DecodeOptions.
func (k *Keys) Open(documents []*yaml.Node) (model.Opened, *model.OpenError) {
	m, fault := readMetadata(documents)
	if fault != nil {
		return model.Opened{}, fault
	}
	key, fault := m.dataKey(k)
	if fault != nil {
		return model.Opened{}, fault
	}
	return open(documents, m, key)
}
