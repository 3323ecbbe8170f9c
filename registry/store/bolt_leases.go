package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"

	"ingot/registry/journal"
	"ingot/registry/lease"
)

// moveLeases moves the leases that an older ingot kept in the file to the journal.
// They stay in the file until they are durable there; after a crash in between they
// are moved again.
func (s *Bolt) moveLeases(ctx context.Context) error {
	old, err := s.oldLeases()
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	if old == nil {
		return nil
	}
	kept := len(old)
	if err := s.mergeLeases(ctx, old); err != nil {
		return fmt.Errorf("move the leases of %s: %w", s.path, err)
	}
	err = s.update(false, func(tx *bolt.Tx, _ *bolt.Bucket) error { return tx.DeleteBucket([]byte(BucketLease)) })
	if err != nil {
		return err
	}
	s.log.Info("leases were moved to their journal", "leases", kept, "file", filepath.Join(filepath.Dir(s.path), journal.FileName))
	return nil
}

// mergeLeases takes leases from elsewhere into the journal, save for those that are newer
// there.
func (s *Bolt) mergeLeases(ctx context.Context, from map[string][]byte) error {
	err := s.journal.All(ctx, func(name, value []byte) {
		if other, both := from[string(name)]; both && !lease.IsNewer(name, other, value) {
			delete(from, string(name))
		}
	})
	if err != nil {
		return err
	}
	for group := range slices.Chunk(slices.Collect(maps.Keys(from)), LeaseGroup) {
		err := s.journal.Append(func(yield func(string, []byte) bool) {
			for _, name := range group {
				if !yield(name, from[name]) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lost reports a lost journal in the words of the store.
func lost(err error) error {
	if errors.Is(err, journal.ErrLost) {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// oldLeases returns the leases that are in the file, nil if there never were any.
func (s *Bolt) oldLeases() (old map[string][]byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		from := tx.Bucket([]byte(BucketLease))
		if from == nil {
			return nil
		}
		old = make(map[string][]byte)
		return loadBucket(from, old)
	})
	return old, err
}
