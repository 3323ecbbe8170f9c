package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolterrors "go.etcd.io/bbolt/errors"

	"ingot/registry/internal/disk"
)

const (
	// damagedMark is between the name of a damaged file and when it was found.
	damagedMark = ".damaged-"
	// maxDamaged is how many damaged files are kept, for people to look at.
	maxDamaged = 3
)

// openSound opens the file for this process alone, and has checked it when it returns.
// A damaged one is moved aside, and a new one made in its place.
func (s *Bolt) openSound(mode os.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, mode)
		if err != nil {
			return nil, err
		}
		err = lockBolt(f)
		if err == nil {
			err = s.soundOrMoved(f)
		}
		if err == nil {
			return f, nil
		}
		_ = f.Close() // and unlocked
		if !errors.Is(err, errMoved) {
			return nil, err
		}
	}
}

// errMoved says that the file which is open is no longer the one at its path.
var errMoved = errors.New("the file was moved aside")

// soundOrMoved returns nil when f can be used, and errMoved when it is to be opened
// anew: because it was damaged, and is out of the way now, or because another process
// replaced it before it was locked.
func (s *Bolt) soundOrMoved(f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Stat(s.path); err != nil || !os.SameFile(opened, named) {
		return errMoved
	}
	err = checkBolt(f, opened.Size())
	if !errors.Is(err, ErrDamagedFile) {
		return err
	}
	aside, moved := s.moveAside()
	if moved != nil {
		return errors.Join(err, moved)
	}
	s.log.Error("the store is damaged and was moved aside; starting with an empty one", "file", s.path, "aside", aside, "err", err)
	s.damage = append(s.damage, Damage{Err: fmt.Errorf("%s, which is now at %s: %w", s.path, aside, err)})
	return errMoved
}

// moveAside renames the damaged file. Of those that were moved before, the oldest are
// removed where there are too many.
func (s *Bolt) moveAside() (aside string, err error) {
	older, err := filepath.Glob(s.path + damagedMark + "*")
	if err != nil {
		return "", err
	}
	slices.Sort(older) // by time
	base := s.path + damagedMark + s.clock().UTC().Format("20060102T150405.000")
	aside = base
	for n := 2; slices.Contains(older, aside); n++ {
		aside = fmt.Sprintf("%s-%d", base, n)
	}
	if err := os.Rename(s.path, aside); err != nil {
		return "", err
	}
	for len(older) >= maxDamaged {
		if err := os.Remove(older[0]); err != nil {
			s.log.Warn("an old damaged store cannot be removed", "file", older[0], "err", err)
		}
		older = older[1:]
	}
	return aside, nil
}

// lockRetry is how long to wait before a file is tried again that another has locked.
const lockRetry = 50 * time.Millisecond

// lockBolt locks f as bbolt does, which finds it locked by itself then, or returns
// bbolt's ErrTimeout.
func lockBolt(f *os.File) error {
	for end := time.Now().Add(lockTimeout); !disk.Lock(f); time.Sleep(lockRetry) {
		if time.Now().After(end) {
			return bolterrors.ErrTimeout
		}
	}
	return nil
}
