package gitsource

import (
	"bytes"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/gitsource/signing"
)

// signer signs the commits that we make, if it has a key. One that cannot sign makes no
// commit: none goes out unsigned in silence.
type signer struct {
	file    string
	content []byte // that key was read from
	key     *signing.PrivateKey
}

// CheckSigningKey returns why commits cannot be signed with the key of a file.
func CheckSigningKey(file string) error { return (&signer{file: file}).read() }

// read reads the key if its file has changed.
func (s *signer) read() error {
	if s.file == "" {
		return nil
	}
	content, err := readSmall(s.file)
	if err != nil {
		return fmt.Errorf("status.signingKeyFile: %w", err)
	}
	if s.key != nil && bytes.Equal(content, s.content) {
		return nil
	}
	key, err := signing.ParsePrivateKey(content)
	if err != nil {
		return fmt.Errorf("status.signingKeyFile %s: %w", s.file, err)
	}
	s.key, s.content = key, content
	return nil
}

func (s *signer) commit(content []byte) ([]byte, plumbing.Hash, error) {
	if err := s.read(); err != nil {
		return nil, plumbing.ZeroHash, err
	}
	if s.key != nil {
		var err error
		if content, err = s.key.Commit(content); err != nil {
			return nil, plumbing.ZeroHash, err
		}
	}
	return content, hashObject("commit", content), nil
}
