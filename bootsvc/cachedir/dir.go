// Package cachedir is the folder that the caches of images share, and the bytes that they may take of its disk. The
// least recently used entry is evicted first, whichever cache it belongs to.
package cachedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"ingot/model"
)

const (
	// lockName is the file that the process which uses the folder holds a lock on.
	lockName = ".lock"
	// partEnding is the ending of incomplete entries, and of those being removed. The next process removes them.
	partEnding = ".part"
)

// Options are the options of Open.
type Options struct {
	// Path is the folder, which is made if necessary. One process at a time uses it.
	Path string
	// MaxBytes is the maximum size of all entries; zero or less means that only the disk limits it.
	MaxBytes int64
	// KeepFree is how many bytes of the disk are left to others, at most a twentieth of it.
	KeepFree int64
	// Pinned reports whether entries with a digest must not be evicted, because a server is about to boot them; nil
	// means none. It is called from several goroutines, and must not call the Dir.
	Pinned func(digest string) bool

	Registerer prometheus.Registerer
}

// Dir is the folder of the caches. It is safe for concurrent use. Nothing in it is opened through a symbolic link, and
// only its owner may read it: images can contain secrets.
type Dir struct {
	path   string
	lock   *os.File
	max    int64
	free   func() (int64, error) // how many bytes of the disk may be taken
	pinned func(digest string) bool
	serial atomic.Uint64 // of names with partEnding

	sizeGauge prometheus.Gauge
	evictions prometheus.Counter

	mu      sync.Mutex
	entries map[string]*Entry // that are complete, by name
	size    int64             // of all entries, also of those that are not complete
}

// Open opens the folder, and removes what former processes left incomplete.
func Open(o Options) (*Dir, error) {
	if err := errors.Join(os.MkdirAll(o.Path, 0o700), os.Chmod(o.Path, 0o700)); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(o.Path, lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("folder %s is in use by another process, give each its own: %w", o.Path, err)
	}
	d := &Dir{
		path: o.Path, lock: lock, max: o.MaxBytes, pinned: o.Pinned, entries: make(map[string]*Entry),
		free:      func() (int64, error) { return free(o.Path, o.KeepFree) },
		sizeGauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ingot_image_cache_size_bytes", Help: "Disk space used by cached images, including those in preparation."}),
		evictions: prometheus.NewCounter(prometheus.CounterOpts{Name: "ingot_image_cache_evictions_total", Help: "Cached images removed to make room."}),
	}
	if d.pinned == nil {
		d.pinned = func(string) bool { return false }
	}
	limit := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ingot_image_cache_limit_bytes", Help: "Maximum disk space of cached images; 0 = limited only by the disk."})
	limit.Set(float64(max(0, o.MaxBytes)))
	if o.Registerer != nil {
		o.Registerer.MustRegister(d.sizeGauge, limit, d.evictions)
	}
	if err := d.clear(); err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// Close lets other processes use the folder.
func (d *Dir) Close() { d.lock.Close() }

// clear removes what former processes left incomplete.
func (d *Dir) clear() error {
	found, err := os.ReadDir(d.path)
	for _, f := range found {
		name, _, _ := strings.Cut(f.Name(), ".")
		if _, ours := digestIn(name); ours && strings.HasSuffix(f.Name(), partEnding) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.path, f.Name())))
		}
	}
	return err
}

// Kind is what one cache keeps in a Dir.
type Kind struct {
	// Ending is the ending of its names, which begin with a digest.
	Ending string
	// Measure returns the size of an entry that a former process completed, and whether it can be used.
	Measure func(digest, path string, info fs.FileInfo) (size int64, ok bool)
	// Evicted is called after an entry was evicted, without locks of the Dir.
	Evicted func(*Entry)
}

// Load returns the entries of a kind that former processes completed. Those that cannot be used are removed.
func (d *Dir) Load(k *Kind) ([]*Entry, error) {
	found, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var loaded []*Entry
	for _, f := range found {
		name, ends := strings.CutSuffix(f.Name(), k.Ending)
		digest, ours := digestIn(name)
		if !ends || !ours {
			continue
		}
		e := d.New(k, digest)
		info, err := f.Info()
		if err == nil {
			var ok bool
			if e.size, ok = k.Measure(digest, e.Path(), info); ok {
				e.used, e.noted = info.ModTime(), info.ModTime()
				d.add(e)
				loaded = append(loaded, e)
				continue
			}
		}
		if err := os.RemoveAll(e.Path()); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// add makes e one of the complete entries; mu is held, and the size of e is not counted yet.
func (d *Dir) add(e *Entry) {
	d.entries[e.name] = e
	d.resize(e.size)
}

// resize counts more bytes, or less; mu is held.
func (d *Dir) resize(by int64) {
	d.size += by
	d.sizeGauge.Set(float64(d.size))
}

// digestIn returns the digest that an entry is named after.
func digestIn(name string) (string, bool) {
	digest := strings.Replace(name, "-", ":", 1)
	return digest, model.IsImageDigest(digest)
}

// share is the part of a small disk that is left to others.
const share = 20

// free returns how many bytes of the disk of dir may be taken if keep bytes are left to others. It is negative if others
// have used some of these.
func free(dir string, keep int64) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail)*s.Bsize - min(keep, int64(s.Blocks/share)*s.Bsize), nil
}

// part returns a new path for an incomplete entry, or one that is being removed.
func (d *Dir) part(name string) string {
	return filepath.Join(d.path, name+"."+strconv.FormatUint(d.serial.Add(1), 10)+partEnding)
}

func (d *Dir) sync() error {
	dir, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// noteEvery is how often the use of an entry is noted on disk, for the order of eviction after a restart.
const noteEvery = time.Minute
