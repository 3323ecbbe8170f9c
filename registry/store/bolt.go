package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"ingot/registry/internal/disk"
)

// FileName is the name of the embedded store's file in the state folder.
const FileName = "ingot.db"

// lockTimeout is how long to wait for another process to let go of the file.
const lockTimeout = time.Second

// The bucket of a bbolt file that says what it is, and its keys.
var (
	boltMeta   = []byte("meta")
	boltFormat = []byte("format")
	boltFence  = []byte("fence")
	boltSeq    = []byte("seq") // number of the newest commit
)

// boltCount is the key of how many values a bucket has.
func boltCount(b Bucket) []byte { return []byte("count " + string(b)) }

// Bolt is the store of one machine: a file, locked by the leader.
type Bolt struct {
	path   string
	clock  func() time.Time
	log    *slog.Logger
	db     *bolt.DB
	opened os.FileInfo // what db has open, to notice when path becomes another file
	fence  uint64
	seq    uint64 // of the newest commit that was tried, or any that was seen
	damage []Damage
	// touched is whether pages of the file were used since they were given back.
	touched bool
}

// OpenBolt opens or makes the file in dir, which is made too.
func OpenBolt(dir string, clock func() time.Time, log *slog.Logger) (*Bolt, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make state.dir: %w", err)
	}
	s := &Bolt{path: filepath.Join(dir, FileName), clock: clock, log: log}
	if err := s.open(); err != nil {
		return nil, err
	}
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Bolt) open() error {
	var opened os.FileInfo
	db, err := bolt.Open(s.path, 0o600, &bolt.Options{
		Timeout:        lockTimeout,
		FreelistType:   bolt.FreelistMapType,
		NoFreelistSync: true, // recomputed at open; each commit writes less
		OpenFile: func(_ string, _ int, mode os.FileMode) (*os.File, error) {
			f, err := s.openSound(mode)
			if err == nil {
				opened, err = f.Stat()
			}
			return f, err
		},
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("another ingot uses %s: stop it, or give this one a state.dir of its own: %w", s.path, err)
	case err != nil:
		return fmt.Errorf("open %s: %w", s.path, err)
	}
	s.db, s.opened = db, opened
	return nil
}

// CheckFile returns why an embedded store's file, which nobody has open, cannot be used. It changes
// nothing.
func CheckFile(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // read only: nothing is lost
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	if err := checkBolt(f, info.Size()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	db, err := bolt.Open(path, 0, &bolt.Options{Timeout: lockTimeout, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return errors.Join((&Bolt{path: path, db: db}).checkFormat(), db.Close())
}

func (s *Bolt) checkFormat() error {
	return s.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(boltMeta)
		if meta == nil {
			return nil
		}
		return checkFormat(s.path, string(meta.Get(boltFormat)))
	})
}

// Load implements Data.
func (s *Bolt) Load(context.Context) (Loaded, error) {
	s.touched = true
	l := Loaded{Contents: NewContents(), Fresh: true, Damage: s.damage}
	err := s.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(boltMeta)
		if meta == nil || meta.Get(boltFormat) == nil {
			return nil
		}
		l.Fresh = false
		for _, b := range Buckets {
			if err := loadBucket(tx.Bucket([]byte(b)), l.Contents[b]); err != nil {
				return err
			}
		}
		s.Raise(number(meta.Get(boltSeq)))
		l.Count(func(b Bucket) int { return int(number(meta.Get(boltCount(b)))) })
		return nil
	})
	if err != nil {
		return Loaded{}, fmt.Errorf("read %s: %w", s.path, err)
	}
	s.damage = nil
	return l, nil
}

// Next implements Data.
func (s *Bolt) Next() uint64 { return s.seq + 1 }

// Raise implements Data.
func (s *Bolt) Raise(seq uint64) { s.seq = max(s.seq, seq) }

func (s *Bolt) update(change func(tx *bolt.Tx, meta *bolt.Bucket) error) error {
	s.touched = true
	err := s.db.Update(func(tx *bolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(boltMeta)
		if err != nil {
			return err
		}
		s.Raise(number(meta.Get(boltSeq)))
		if err := change(tx, meta); err != nil {
			return err
		}
		return meta.Put(boltSeq, bytesOf(s.seq))
	})
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	return nil
}

// RaiseFence implements Leadership.
func (s *Bolt) RaiseFence(_ context.Context, above uint64) (uint64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	err := s.update(func(_ *bolt.Tx, meta *bolt.Bucket) error {
		return meta.Put(boltFence, bytesOf(max(s.fence, above+1)))
	})
	if err != nil {
		return 0, err
	}
	s.fence = max(s.fence, above+1)
	return s.fence, nil
}

func loadBucket(from *bolt.Bucket, to map[string][]byte) error {
	if from == nil {
		return nil
	}
	return from.ForEach(func(k, v []byte) error {
		to[string(k)] = append([]byte(nil), v...) // v is bbolt's, and only for now
		return nil
	})
}

// Acquire succeeds always, because the process that has the file open has it alone.
func (s *Bolt) Acquire(context.Context) (uint64, string, error) {
	err := s.update(func(_ *bolt.Tx, meta *bolt.Bucket) error {
		s.fence = nextFence(max(number(meta.Get(boltFence)), s.fence), s.clock())
		return meta.Put(boltFence, bytesOf(s.fence))
	})
	if err != nil {
		return 0, "", err
	}
	return s.fence, "", nil
}

// Renew gives the memory back, too, that the file takes up since it was used last.
func (s *Bolt) Renew(context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	s.giveBack()
	return nil
}

// check returns ErrLost if the file at path is no longer the one that is open.
func (s *Bolt) check() error {
	named, err := os.Stat(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ErrLost
	case err != nil:
		return fmt.Errorf("look at %s: %w", s.path, err)
	case !os.SameFile(s.opened, named):
		return ErrLost
	}
	return nil
}

// Commit implements Data.
func (s *Bolt) Commit(_ context.Context, b Batch) error {
	if err := s.check(); err != nil || len(b) == 0 {
		return err
	}
	s.seq++ // whether or not it succeeds
	return s.update(func(tx *bolt.Tx, meta *bolt.Bucket) error { return applyBolt(tx, meta, b) })
}

func applyBolt(tx *bolt.Tx, meta *bolt.Bucket, b Batch) (err error) {
	var to *bolt.Bucket
	more := make(map[Bucket]int)
	for i, ch := range b {
		if i == 0 || ch.Bucket != b[i-1].Bucket {
			if to, err = tx.CreateBucketIfNotExists([]byte(ch.Bucket)); err != nil {
				return fmt.Errorf("%s: %w", ch.Bucket, err)
			}
		}
		was, is := to.Get([]byte(ch.Name)) != nil, ch.Value != nil
		switch {
		case is && !was:
			more[ch.Bucket]++
		case was && !is:
			more[ch.Bucket]--
		}
		if err := applyChange(to, ch); err != nil {
			return fmt.Errorf("%s %q: %w", ch.Bucket, ch.Name, err)
		}
	}
	for b, n := range more {
		count := int(number(meta.Get(boltCount(b)))) + n
		if err := meta.Put(boltCount(b), bytesOf(uint64(max(count, 0)))); err != nil {
			return fmt.Errorf("count %s: %w", b, err)
		}
	}
	return nil
}

func applyChange(to *bolt.Bucket, ch Change) error {
	if ch.Value == nil {
		return to.Delete([]byte(ch.Name))
	}
	return to.Put([]byte(ch.Name), ch.Value)
}

// Replace fills the file, and opens it again first if another one is at its path.
func (s *Bolt) Replace(_ context.Context, c Contents) error {
	if errors.Is(s.check(), ErrLost) {
		if err := s.reopen(); err != nil {
			return err
		}
	}
	s.seq++
	return s.update(func(tx *bolt.Tx, meta *bolt.Bucket) error {
		for _, b := range Buckets {
			if err := refill(tx, b, c[b]); err != nil {
				return err
			}
			if err := meta.Put(boltCount(b), bytesOf(uint64(len(c[b])))); err != nil {
				return err
			}
		}
		return errors.Join(meta.Put(boltFence, bytesOf(s.fence)), meta.Put(boltFormat, []byte(format)))
	})
}

// EachLease implements Leases.
func (s *Bolt) EachLease(ctx context.Context, visit func(name, value []byte)) error {
	s.touched = true
	return s.viewLeases(func(_, leases *bolt.Bucket) error {
		return leases.ForEach(func(name, value []byte) error {
			visit(name, value)
			return ctx.Err()
		})
	})
}

// CountLeases implements Leases.
func (s *Bolt) CountLeases(_ context.Context, b Batch) (total, fresh int, err error) {
	s.touched = true
	known := 0
	err = s.viewLeases(func(meta, leases *bolt.Bucket) error {
		total = int(number(meta.Get(boltCount(BucketLease))))
		for _, ch := range b {
			if ch.Value != nil && leases.Get([]byte(ch.Name)) != nil {
				known++
			}
		}
		return nil
	})
	for _, ch := range b {
		if ch.Value != nil {
			fresh++
		}
	}
	return total, fresh - known, err
}

// viewLeases calls view unless there are no leases.
func (s *Bolt) viewLeases(view func(meta, leases *bolt.Bucket) error) error {
	err := s.db.View(func(tx *bolt.Tx) error {
		if leases := tx.Bucket([]byte(BucketLease)); leases != nil {
			return view(tx.Bucket(boltMeta), leases)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read leases of %s: %w", s.path, err)
	}
	return nil
}

// giveBack takes the pages of the file out of this process's memory, if there were
// uses since it did so last. They stay in the system's cache, from where those that
// are used again come back. A failure costs nothing but memory.
func (s *Bolt) giveBack() {
	if !s.touched {
		return
	}
	s.touched = false
	_ = s.db.View(func(tx *bolt.Tx) error { // while which the file is not mapped elsewhere
		return disk.DropPages(s.db.Info().Data, tx.Size())
	})
}

// reopen opens what is at path now. The old database stays in use when that
// fails, so that the next attempt finds everything as it was.
func (s *Bolt) reopen() error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("make state.dir: %w", err)
	}
	oldDB := s.db
	if err := s.open(); err != nil {
		if errors.Is(err, bolterrors.ErrTimeout) {
			return fmt.Errorf("%w: %w", ErrFenced, err)
		}
		return err
	}
	if err := oldDB.Close(); err != nil {
		return fmt.Errorf("close the lost %s: %w", s.path, err)
	}
	return nil
}

func refill(tx *bolt.Tx, b Bucket, values map[string][]byte) error {
	name := []byte(b)
	if tx.Bucket(name) != nil {
		if err := tx.DeleteBucket(name); err != nil {
			return err
		}
	}
	to, err := tx.CreateBucket(name)
	if err != nil {
		return err
	}
	for k, v := range values {
		if err := to.Put([]byte(k), v); err != nil {
			return fmt.Errorf("%s %s: %w", b, k, err)
		}
	}
	return nil
}

// Follow waits in vain: nobody else can have the file open.
func (s *Bolt) Follow(ctx context.Context) (Batch, bool, error) {
	select {
	case <-ctx.Done():
	case <-time.After(FollowWait):
	}
	return nil, false, nil
}

// Confirm knows without asking: the file is locked by this process.
func (s *Bolt) Confirm(context.Context, uint64) error { return nil }

// Release does nothing: whoever has the file open leads.
func (s *Bolt) Release() {}

// Close implements Store.
func (s *Bolt) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	return nil
}

// nextFence returns the fencing number after last, the highest one known. Where
// none is known the store is new or was lost: then it is the time in seconds,
// which is higher than all numbers before the loss, unless there was more than
// one leader a second.
func nextFence(last uint64, now time.Time) uint64 {
	if last == 0 {
		return uint64(max(now.Unix(), 0)) + 1
	}
	return last + 1
}

func number(raw []byte) uint64 {
	if len(raw) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(raw)
}

func bytesOf(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
