package gitsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"ingot/model"
)

// Limits of the status branch as it is read. No file above maxStatusFile is written.
const (
	maxStatusFiles = 200_000
	maxStatusFile  = maxBlob
	maxStatusTotal = 1 << 30 // bytes
)

// Snapshot is the status branch at one commit.
type Snapshot struct {
	// Exists is false when there is no branch.
	Exists bool
	Head   string            // the commit
	Files  map[string][]byte // by path
	// Skipped are the files, and folders with all that is below them, that could not
	// be read, with why.
	Skipped map[string]error
	// Newest is what the newest commit of an Ingot says; the files are its files. A branch
	// without any has those of its head.
	Newest model.BranchHead
}

// Read returns the branch as it is now. What is wrong with one file is no error: it
// is named, and the others are returned. The next commit is put on top of the one that it read.
func (b *StatusBranch) Read(ctx context.Context) (Snapshot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	var snap Snapshot
	read := func(depth int) error {
		return b.fetched(ctx, fetchPlan{depth: depth, filter: filterLarge}, func(s *store, head plumbing.Hash) (err error) {
			snap, err = s.snapshot(head, depth)
			return err
		})
	}
	err := read(1)
	if errors.Is(err, errBelow) { // a person's commits are on top
		err = read(fetchDepth)
	}
	switch kind := kindOf(err); {
	case err == nil:
		b.accepted = plumbing.NewHash(snap.Head)
	case kind == failureBranch, kind == failureEmpty:
		b.accepted = plumbing.ZeroHash
		return Snapshot{}, nil
	default:
		return Snapshot{}, b.postponed(fmt.Errorf("read branch %s: %w", b.opts.Branch, err))
	}
	return snap, nil
}

// snapshot reads the newest commit of an Ingot at or below head, of which so many commits are there.
func (s *store) snapshot(head plumbing.Hash, depth int) (Snapshot, error) {
	snap := Snapshot{Exists: true, Head: head.String(), Files: make(map[string][]byte), Skipped: make(map[string]error)}
	at, err := s.commit(head)
	if err != nil {
		return snap, fmt.Errorf("read commit %s: %w", head, err)
	}
	c, says := s.newestHead(head)
	switch {
	case c == nil && depth == 1 && len(at.ParentHashes) > 0:
		return snap, errBelow
	case c == nil:
		c = at
	}
	files, _ := listing(s, c.TreeHash, snap.Skipped)
	contents(s, files, &snap)
	snap.Newest = says
	snap.Newest.Intact = says.Intact && len(snap.Skipped) == 0
	if w := writerIn(snap.Files[model.ReportFleet]); w.ID == says.Writer.ID {
		snap.Newest.Writer = w
	}
	return snap, nil
}

// fetchPlan is how much of the branch is fetched.
type fetchPlan struct {
	// depth is in commits; at most fetchDepth of them come from a server that cannot
	// leave out what filter does, for each brings its tree along.
	depth  int
	filter packp.Filter
	since  time.Time // instead of a depth
}

// Filters of fetches, see git-rev-list(1), "--filter".
var (
	filterLarge = packp.FilterBlobLimit(maxBlob+1, packp.BlobLimitPrefixNone) // files that are not read anyway
	filterTrees = packp.FilterTreeDepth(0)                                    // all but commits
)

func shallow(filter packp.Filter) fetchPlan { return fetchPlan{depth: 1, filter: filter} }

// fetched brings the branch's head into a store that lasts as long as fn.
func (b *StatusBranch) fetched(ctx context.Context, plan fetchPlan, fn func(*store, plumbing.Hash) error) error {
	session, err := b.remote.uploadSession(ctx)
	if err != nil {
		return err
	}
	defer closeSession(session)
	adv, head, err := b.remote.advertised(ctx, session)
	if err != nil {
		return err
	}
	return b.unpacked(ctx, session, adv, plan, []plumbing.Hash{head}, func(s *store) error { return fn(s, head) })
}

// unpacked fetches the commits wanted into a store that lasts as long as fn.
func (b *StatusBranch) unpacked(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs, plan fetchPlan, want []plumbing.Hash, fn func(*store) error) error {
	if b.opts.Dir != "" {
		if err := os.MkdirAll(b.opts.Dir, 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	dir, err := os.MkdirTemp(b.opts.Dir, "status-*")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	st, err := openStore(dir)
	if err != nil {
		return err
	}
	defer st.close()
	w := wanted{commits: want, depth: plan.depth, since: plan.since, filter: plan.filter}
	if !adv.Capabilities.Supports(capability.Filter) {
		w.depth, w.filter = min(w.depth, fetchDepth), ""
	}
	if err := fetchWanted(ctx, session, adv, st, w); err != nil {
		return b.remote.explain(ctx, err)
	}
	return fn(st)
}

// listing returns the hash of each file and of each folder by path, the root's
// being "". What is neither, or cannot be read, is named in skipped.
func listing(s *store, root plumbing.Hash, skipped map[string]error) (files, folders map[string]plumbing.Hash) {
	files, folders = make(map[string]plumbing.Hash), make(map[string]plumbing.Hash)
	var walk func(path string, tree plumbing.Hash, depth int)
	walk = func(path string, tree plumbing.Hash, depth int) {
		if depth > maxFolders {
			skipped[path] = fmt.Errorf("it lies more than %d folders deep", maxFolders)
			return
		}
		entries, err := s.tree(tree)
		if err != nil {
			skipped[path] = err
			return
		}
		folders[path] = tree
		for _, e := range entries {
			name := strings.TrimPrefix(path+"/"+e.Name, "/")
			switch {
			case len(files)+len(folders)+len(skipped) > maxStatusFiles:
				skipped[path] = fmt.Errorf("the branch holds more than %d files: %s and what follows is not read", maxStatusFiles, e.Name)
				return
			case e.Mode == filemode.Dir:
				walk(name, e.Hash, depth+1)
			case e.Mode == filemode.Regular:
				files[name] = e.Hash
			default: // not ours, and gone with the next commit
				skipped[name] = fmt.Errorf("it is no ordinary file: its mode is %s", e.Mode)
			}
		}
	}
	walk("", root, 0)
	return files, folders
}

func contents(s *store, files map[string]plumbing.Hash, snap *Snapshot) {
	var total int64
	for _, path := range slices.Sorted(maps.Keys(files)) {
		size, err := s.size(files[path])
		switch {
		case err != nil && errors.Is(err, plumbing.ErrObjectNotFound):
			err = fmt.Errorf("it has more than %d bytes, or the server does not have it", maxStatusFile)
		case err != nil:
		case size > maxStatusFile:
			err = fmt.Errorf("it has %d bytes, at most %d are read", size, maxStatusFile)
		case total+size > maxStatusTotal:
			err = fmt.Errorf("all files together have more than %d bytes", maxStatusTotal)
		default:
			total += size
			snap.Files[path], err = s.blob(files[path])
		}
		if err != nil {
			snap.Skipped[path] = err
			delete(snap.Files, path)
		}
	}
}
