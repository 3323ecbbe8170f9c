package gitsource

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// leftFile is the file of a store that remembers what was too large for it, a hash and a
// size in a line. Without it a restart would take the store to be damaged.
func (s *store) leftFile() string { return filepath.Join(s.dir, "too-large") }

// leaveOut notes objects that are too large to be stored.
func (s *store) leaveOut(sizes map[plumbing.Hash]int64) error {
	if len(sizes) == 0 {
		return nil
	}
	f, err := os.OpenFile(s.leftFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note objects that are too large: %w", err)
	}
	w := bufio.NewWriter(f)
	for h, size := range sizes {
		s.left[h] = size
		fmt.Fprintln(w, h, size)
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("note objects that are too large: %w", err)
	}
	return nil
}

// readLeft reads what was noted. A line that is damaged is of an object that is found to
// be missing again.
func (s *store) readLeft() error {
	f, err := os.Open(s.leftFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open object store: %w", err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var name string
		var size int64
		if n, _ := fmt.Sscan(in.Text(), &name, &size); n == 2 && plumbing.IsHash(name) {
			s.left[plumbing.NewHash(name)] = size
		}
	}
	return nil
}
