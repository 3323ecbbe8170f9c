package registry

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ingot/model"
	"ingot/registry/store"
)

// SealKeySize is the size of a seal key in bytes.
const SealKeySize = 32

// Labels of the keys that are derived from the seal key.
const (
	labelSeal   = "ingot: sealed values, AES-256-GCM"
	labelToken  = "ingot: tokens of boot tickets"
	labelCheck  = "ingot: check value of the seal key"
	labelDigest = "ingot: digests of what is booted"
)

// LoadSealKey reads the key that secrets in the store are sealed with and that
// boot tokens are made from: 32 bytes, as they are, in hexadecimal or in base64.
// A file that others than its owner may read is refused. If create is set and
// there is no file, one is made, with mode 0600 and whole from the first moment.
func LoadSealKey(path string, create bool) ([]byte, error) {
	if create {
		if err := createSealKey(path); err != nil {
			return nil, fmt.Errorf("make seal key: %w", err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read seal key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("seal key %s has mode %04o, so others than its owner may read it: chmod 600 it, and make a new key if it was seen", path, mode)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read seal key: %w", err)
	}
	sealKey, err := parseSealKey(raw)
	if err != nil {
		return nil, fmt.Errorf("seal key %s: %w", path, err)
	}
	return sealKey, nil
}

func parseSealKey(raw []byte) ([]byte, error) {
	if len(raw) == SealKeySize {
		return raw, nil
	}
	text := strings.TrimSpace(string(raw))
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if b, err := decode(text); err == nil && len(b) == SealKeySize {
			return b, nil
		}
	}
	return nil, errors.New("must hold 32 bytes, as they are, in hexadecimal or in base64; `openssl rand -hex 32` makes a key")
}

// createSealKey makes a key unless there is one, also when two do so at once.
func createSealKey(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".seal-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // at worst a key that nobody uses stays behind
	sealKey := make([]byte, SealKeySize)
	_, _ = rand.Read(sealKey) // never fails
	_, errWrite := f.WriteString(hex.EncodeToString(sealKey) + "\n")
	if err := errors.Join(errWrite, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// sealer seals values so that they can be opened under the same key and name
// only.
type sealer struct{ aead cipher.AEAD }

// derivedKeys are the keys in use, and check, which tells whether another seal key is
// the same and says nothing of it otherwise.
type derivedKeys struct {
	sealer  sealer
	tokens  model.TokenKey
	digests model.DigestKey
	check   []byte
}

func deriveKeys(sealKey []byte) (derivedKeys, error) {
	if len(sealKey) != SealKeySize {
		return derivedKeys{}, fmt.Errorf("seal key: %d bytes, need %d", len(sealKey), SealKeySize)
	}
	forSeals, errSeal := hkdf.Key(sha256.New, sealKey, nil, labelSeal, 32)
	forTokens, errToken := hkdf.Key(sha256.New, sealKey, nil, labelToken, 32)
	forDigests, errDigest := hkdf.Key(sha256.New, sealKey, nil, labelDigest, 32)
	check, errCheck := hkdf.Key(sha256.New, sealKey, nil, labelCheck, 32)
	if err := errors.Join(errSeal, errToken, errDigest, errCheck); err != nil {
		return derivedKeys{}, fmt.Errorf("derive keys: %w", err)
	}
	block, err := aes.NewCipher(forSeals)
	if err != nil {
		return derivedKeys{}, fmt.Errorf("derive keys: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return derivedKeys{}, fmt.Errorf("derive keys: %w", err)
	}
	return derivedKeys{
		sealer{aead}, model.NewTokenKey(forTokens), model.NewDigestKey(forDigests), []byte(hex.EncodeToString(check)),
	}, nil
}

func (s sealer) seal(k store.Key, plain []byte) []byte {
	return s.aead.Seal(nil, nil, plain, associated(k))
}

// open returns a sealed value, or ErrNotFound if sealed is nil.
func (s sealer) open(k store.Key, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, ErrNotFound
	}
	plain, err := s.aead.Open(nil, nil, sealed, associated(k))
	if err != nil {
		return nil, fmt.Errorf("%s %s: sealed with another key than redis.sealKeyFile, or damaged", k.Bucket, k.Name)
	}
	return plain, nil
}

func associated(k store.Key) []byte { return []byte(string(k.Bucket) + "\x00" + k.Name) }

// ErrSealKey is returned by AwaitLead, and with bbolt by Open, if the store was sealed with another key.
// This process could open none of it, and would make other tokens than those that machines have.
var ErrSealKey = errors.New("what is stored was sealed with another key: redis.sealKeyFile must be the same file for every ingot that uses this store; compare it with theirs, or put the one back that it was before")
