package gitsource

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// objectCache bounds go-git's cache of whole objects, which by default is far
// larger than what manifests need.
const objectCache = 16 * cache.MiByte

// refetchAfter is how many fetches that brought objects a store takes before it is
// replaced by one that is fetched afresh: each leaves a pack, and nothing else ever
// shrinks the store.
const refetchAfter = 50

// maxDescriptors is how many packs are kept open.
const maxDescriptors = 16

// store is a bare object store on disk. It is not safe for concurrent use.
type store struct {
	dir     string
	storage *filesystem.Storage
	cache   cache.Object // of storage
	// left are the sizes of objects that were too large to be stored.
	left map[plumbing.Hash]int64
	// fresh is set while all that is in the store was fetched by this process: a file that
	// is missing then was left out by the server, which is asked to where it can.
	fresh bool
}

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make object store: %w", err)
	}
	objects := cache.NewObjectLRU(objectCache)
	st := filesystem.NewStorageWithOptions(osfs.New(dir), objects,
		filesystem.Options{ExclusiveAccess: true, MaxOpenDescriptors: maxDescriptors})
	if err := st.Init(); err != nil {
		return nil, fmt.Errorf("make object store: %w", err)
	}
	s := &store{dir: dir, storage: st, cache: objects, left: make(map[plumbing.Hash]int64)}
	s.fresh = s.packs() == 0
	return s, s.readLeft()
}

// renewed closes and deletes the store and returns an empty one in its place.
func (s *store) renewed() (*store, error) {
	s.close()
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, fmt.Errorf("delete object store: %w", err)
	}
	return openStore(s.dir)
}

// replacedBy closes and deletes the store and puts another one in its place.
func (s *store) replacedBy(other *store) (*store, error) {
	s.close()
	other.close()
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, fmt.Errorf("delete object store: %w", err)
	}
	if err := os.Rename(other.dir, s.dir); err != nil {
		return nil, fmt.Errorf("replace object store: %w", err)
	}
	st, err := openStore(s.dir)
	if err == nil {
		st.fresh = other.fresh
	}
	return st, err
}

func (s *store) discard() error {
	s.close()
	return os.RemoveAll(s.dir)
}

// forget drops the objects that are held in memory, once a revision was read: what came of
// them is kept by whoever read it.
func (s *store) forget() { s.cache.Clear() }

func (s *store) close() { _ = s.storage.Close() }

// packs counts the packs in the store, one for each fetch that brought objects.
func (s *store) packs() int {
	files, _ := filepath.Glob(filepath.Join(s.dir, "objects", "pack", "*.pack"))
	return len(files)
}

func (s *store) has(h plumbing.Hash) bool {
	_, err := s.commit(h)
	return err == nil
}

// holds reports whether the store holds what is followed, with the object of its tag.
func (s *store) holds(t target) bool {
	if !t.tag.IsZero() {
		if _, err := s.storage.EncodedObject(plumbing.TagObject, t.tag); err != nil {
			return false
		}
	}
	return s.has(t.commit)
}

func (s *store) commit(h plumbing.Hash) (*object.Commit, error) {
	return object.GetCommit(s.storage, h)
}

// newest returns up to n commits from head backwards, for telling a server what
// we have.
func (s *store) newest(head plumbing.Hash, n int) []plumbing.Hash {
	if head.IsZero() {
		return nil
	}
	var out []plumbing.Hash
	s.visit(head, nil, func(c *object.Commit) bool {
		out = append(out, c.Hash)
		return len(out) < n
	})
	return out
}

// visit calls fn for head and its ancestors in the store, nearest first, except for commits in stop and what only they lead to.
// fn returns false to end it. It returns whether it met a commit in stop, and whether no other commit was missing.
func (s *store) visit(head plumbing.Hash, stop map[plumbing.Hash]bool, fn func(*object.Commit) bool) (met, whole bool) {
	whole = true
	seen := map[plumbing.Hash]bool{head: true}
	for queue := []plumbing.Hash{head}; len(queue) > 0; queue = queue[1:] {
		if stop[queue[0]] {
			met = true
			continue
		}
		c, err := s.commit(queue[0])
		if err != nil {
			whole = false
			continue
		}
		if !fn(c) {
			break
		}
		for _, parent := range c.ParentHashes {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return met, whole
}

func (s *store) ancestors(head plumbing.Hash) (all map[plumbing.Hash]bool, whole bool) {
	all = make(map[plumbing.Hash]bool)
	_, whole = s.visit(head, nil, func(c *object.Commit) bool {
		all[c.Hash] = true
		return true
	})
	return all, whole
}

// errNotReadable is an object that is missing or damaged: the store is to be
// fetched afresh.
var errNotReadable = errors.New("object store is damaged")

var errTreeTooLarge = fmt.Errorf("a folder's list has more than %d bytes", maxTree)

// Objects that are whole, and not what the folder that names them says. Servers take them, and
// send them again.
var (
	errTreeMalformed = errors.New("a folder's list is not as Git writes it")
	errNoFile        = errors.New("it is no file")
)

// isWhole reports whether the store has an object as it was made, whatever that is.
func (s *store) isWhole(h plumbing.Hash) bool {
	o, err := s.storage.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return false
	}
	content, err := s.content(o.Type(), h)
	return err == nil && plumbing.ComputeHash(o.Type(), content) == h
}

func (s *store) tree(h plumbing.Hash) ([]object.TreeEntry, error) {
	if _, left := s.left[h]; left {
		return nil, fmt.Errorf("%w: tree %s", errTreeTooLarge, h)
	}
	t, err := object.GetTree(s.storage, h)
	if err != nil && s.isWhole(h) {
		return nil, fmt.Errorf("%w: tree %s: %w", errTreeMalformed, h, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read tree %s: %w", errNotReadable, h, err)
	}
	return t.Entries, nil
}

// size returns the size of blob h in bytes, also of one that is too large to be stored.
func (s *store) size(h plumbing.Hash) (int64, error) {
	if n, left := s.left[h]; left {
		return n, nil
	}
	n, err := s.storage.EncodedObjectSize(h)
	if s.fresh && errors.Is(err, plumbing.ErrObjectNotFound) {
		return maxBlob + 1, s.leaveOut(map[plumbing.Hash]int64{h: maxBlob + 1})
	}
	if err != nil {
		return 0, fmt.Errorf("%w: read blob %s: %w", errNotReadable, h, err)
	}
	return n, nil
}

func (s *store) blob(h plumbing.Hash) ([]byte, error) {
	o, err := s.storage.EncodedObject(plumbing.BlobObject, h)
	if err != nil && s.isWhole(h) {
		return nil, fmt.Errorf("read blob %s: %w", h, errNoFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: read blob %s: %w", errNotReadable, h, err)
	}
	r, err := o.Reader()
	if err != nil {
		return nil, fmt.Errorf("%w: read blob %s: %w", errNotReadable, h, err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%w: read blob %s: %w", errNotReadable, h, err)
	}
	return content, nil
}
