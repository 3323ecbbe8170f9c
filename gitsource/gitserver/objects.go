package gitserver

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Limits of the object cache and of one object that is read into memory.
const (
	maxObject  = 64 << 20  // bytes
	maxCommits = 100_000   // in the cache
	maxEntries = 1_000_000 // of all trees in the cache
	maxMessage = 64 << 10  // bytes; a commit with more is not in the cache
)

var errTooLarge = errors.New("object is too large")

// objects reads and writes the objects of a bare repository. It reads and writes loose
// objects itself. Only the real git writes packs, and go-git reads them.
type objects struct {
	dir string // of the repository

	mu      sync.Mutex // guards the fields below
	packs   *filesystem.Storage
	opened  time.Time // modification time of the pack directory when packs was opened
	commits map[plumbing.Hash]*object.Commit
	trees   map[plumbing.Hash][]entry
	entries int // of all trees
	kinds   map[plumbing.Hash]plumbing.ObjectType
}

func (o *objects) file(h plumbing.Hash) string {
	name := h.String()
	return filepath.Join(o.dir, "objects", name[:2], name[2:])
}

func (o *objects) read(h plumbing.Hash) (kind plumbing.ObjectType, content []byte, err error) {
	err = o.open(h, func(t plumbing.ObjectType, size int64, r io.Reader) error {
		if size > maxObject {
			return fmt.Errorf("read %s: %w", h, errTooLarge)
		}
		kind, content = t, make([]byte, size)
		_, err := io.ReadFull(r, content)
		return err
	})
	return kind, content, err
}

func (o *objects) header(h plumbing.Hash) (kind plumbing.ObjectType, size int64, err error) {
	err = o.open(h, func(t plumbing.ObjectType, n int64, _ io.Reader) error {
		kind, size = t, n
		return nil
	})
	return kind, size, err
}

func (o *objects) has(h plumbing.Hash) bool {
	if _, err := os.Stat(o.file(h)); err == nil {
		return true
	}
	return o.inPacks(func(s *filesystem.Storage) error { return s.HasEncodedObject(h) }) == nil
}

func (o *objects) open(h plumbing.Hash, use func(plumbing.ObjectType, int64, io.Reader) error) error {
	f, err := os.Open(o.file(h))
	if errors.Is(err, os.ErrNotExist) {
		return o.inPacks(func(s *filesystem.Storage) error {
			obj, err := s.EncodedObject(plumbing.AnyObject, h)
			if err != nil {
				return fmt.Errorf("read %s: %w", h, err)
			}
			r, err := obj.Reader()
			if err != nil {
				return err
			}
			defer r.Close()
			return use(obj.Type(), obj.Size(), r)
		})
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := objfile.NewReader(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", h, err)
	}
	defer func() { _ = r.Close() }()
	kind, size, err := r.Header()
	if err != nil {
		return fmt.Errorf("read %s: %w", h, err)
	}
	return use(kind, size, r)
}

// settled is the age from which the modification time of a directory identifies its content.
const settled = time.Second

// inPacks calls use with a view of the packs that are in the repository now.
func (o *objects) inPacks(use func(*filesystem.Storage) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	info, err := os.Stat(filepath.Join(o.dir, "objects", "pack"))
	if err != nil {
		return err
	}
	if o.packs == nil || !info.ModTime().Equal(o.opened) || time.Since(o.opened) < settled {
		o.packs = filesystem.NewStorageWithOptions(osfs.New(o.dir), cache.NewObjectLRU(cache.MiByte),
			filesystem.Options{LargeObjectThreshold: maxRead}) // which is inflated only as far as it is read
		o.opened = info.ModTime()
	}
	return use(o.packs)
}

var deflaters = sync.Pool{New: func() any {
	w, _ := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed) // the level is valid
	return w
}}

func deflate(w io.Writer, data ...[]byte) error {
	z := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(z)
	z.Reset(w)
	for _, d := range data {
		if _, err := z.Write(d); err != nil {
			return err
		}
	}
	return z.Close()
}

func (o *objects) write(kind plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	h := plumbing.ComputeHash(kind, content)
	file := o.file(h)
	if _, err := os.Stat(file); err == nil {
		return h, nil
	}
	var b bytes.Buffer
	if err := deflate(&b, fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content); err != nil {
		return h, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return h, err
	}
	temp, err := os.CreateTemp(filepath.Dir(file), "tmp_obj_*")
	if err != nil {
		return h, err
	}
	_, err = temp.Write(b.Bytes())
	if err = errors.Join(err, temp.Chmod(0o444), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return h, errors.Join(err, os.Remove(temp.Name()))
	}
	return h, nil
}

func (o *objects) kind(h plumbing.Hash) (plumbing.ObjectType, error) {
	o.mu.Lock()
	kind, known := o.kinds[h]
	o.mu.Unlock()
	if known {
		return kind, nil
	}
	kind, _, err := o.header(h)
	if err != nil {
		return kind, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kinds == nil || len(o.kinds) > maxCommits {
		o.kinds = make(map[plumbing.Hash]plumbing.ObjectType)
	}
	o.kinds[h] = kind
	return kind, nil
}

func (o *objects) parsed(kind plumbing.ObjectType, h plumbing.Hash, into interface {
	Decode(plumbing.EncodedObject) error
}) error {
	t, content, err := o.read(h)
	if err != nil {
		return err
	}
	if t != kind {
		return fmt.Errorf("object %s is a %s, want a %s", h, t, kind)
	}
	var raw plumbing.MemoryObject
	raw.SetType(t)
	if _, err := raw.Write(content); err != nil {
		return err
	}
	return into.Decode(&raw)
}

// commit returns a commit, which the caller must not change.
func (o *objects) commit(h plumbing.Hash) (*object.Commit, error) {
	o.mu.Lock()
	c := o.commits[h]
	o.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c = new(object.Commit)
	if err := o.parsed(plumbing.CommitObject, h, c); err != nil || len(c.Message) > maxMessage {
		return c, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.commits == nil || len(o.commits) > maxCommits {
		o.commits = make(map[plumbing.Hash]*object.Commit)
	}
	o.commits[h] = c
	return c, nil
}

// peel follows annotated tags. It returns them and the object that they lead to.
func (o *objects) peel(h plumbing.Hash) (tags []plumbing.Hash, to plumbing.Hash, err error) {
	for {
		kind, err := o.kind(h)
		if err != nil || kind != plumbing.TagObject {
			return tags, h, err
		}
		var tag object.Tag
		if err := o.parsed(kind, h, &tag); err != nil {
			return nil, h, err
		}
		tags, h = append(tags, h), tag.Target
	}
}
