package imagecache

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"ingot/model"
)

// Key says which blob is wanted.
type Key struct {
	Digest string // sha256:<hex> or sha512:<hex>, in lower case
	Size   int64  // in bytes, as the manifest says it
	// From is where the blob comes from (host/repository), for logs and errors. It
	// is no part of a blob's identity.
	From string
}

// identity is what makes two requests the same. The size belongs to it: a manifest
// that lies about the size of somebody else's blob spoils its own fetch alone.
type identity struct {
	digest string
	size   int64
}

// check refuses what is no digest, for a file is named after it.
func (k Key) check() error {
	switch {
	case !model.IsImageDigest(k.Digest):
		return fmt.Errorf("image blob: digest %.200q is neither sha256:<64 hex digits> nor sha512:<128 hex digits> in lower case", k.Digest)
	case k.Size <= 0:
		return fmt.Errorf("image blob %s: its manifest gives it a size of %d bytes; it must have at least one", k.Digest, k.Size)
	}
	return nil
}

func (k Key) identity() identity { return identity{k.Digest, k.Size} }

// String names the blob for people.
func (k Key) String() string {
	if k.From == "" {
		return k.Digest
	}
	return k.From + "@" + k.Digest
}

// sum is a hash under way.
type sum struct {
	hash.Hash
	want string
}

func newSum(digest string) sum {
	algorithm, want, _ := strings.Cut(digest, ":")
	if algorithm == "sha512" {
		return sum{sha512.New(), want}
	}
	return sum{sha256.New(), want}
}

// add hashes more bytes; a hash takes everything.
func (s sum) add(p []byte) { _, _ = s.Write(p) }

func (s sum) right() bool { return hex.EncodeToString(s.Sum(nil)) == s.want }
