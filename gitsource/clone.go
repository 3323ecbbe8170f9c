package gitsource

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// Clone is a repository on this machine of which revisions are compared. Nothing is written
// to it.
type Clone struct {
	store   *store
	fetched map[string]plumbing.Hash
	dir     string // is deleted by Close; "" = none is
}

// ErrUnknownRevision is a branch, tag or commit that a repository does not have.
var ErrUnknownRevision = errors.New("unknown revision")

// OpenClone opens the repository that a folder belongs to.
func OpenClone(dir string) (*Clone, error) {
	files, err := gitFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	st := filesystem.NewStorageWithOptions(files, cache.NewObjectLRU(objectCache), filesystem.Options{MaxOpenDescriptors: maxDescriptors})
	return &Clone{store: &store{dir: files.Root(), storage: st, left: make(map[plumbing.Hash]int64)}}, nil
}

// gitFiles are the files of the repository that a folder belongs to: those of .git, also
// where that is a file that names another folder (gitrepository-layout(5), gitdir and
// commondir), or those of a bare repository.
func gitFiles(dir string) (billy.Filesystem, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for at := from; ; at = filepath.Dir(at) {
		dot := filepath.Join(at, ".git")
		info, err := os.Stat(dot)
		switch {
		case err == nil && info.IsDir():
			return osfs.New(dot), nil
		case err == nil:
			return linkedFiles(at, dot)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case isBare(at):
			return osfs.New(at), nil
		case filepath.Dir(at) == at:
			return nil, fmt.Errorf("%s is in no Git repository: name the folder of a clone", from)
		}
	}
}

func isBare(dir string) bool {
	_, head := os.Stat(filepath.Join(dir, "HEAD"))
	_, objects := os.Stat(filepath.Join(dir, "objects"))
	return head == nil && objects == nil
}

// linkedFiles are those of a work tree whose .git is a file.
func linkedFiles(dir, dot string) (billy.Filesystem, error) {
	content, err := readSmall(dot)
	if err != nil {
		return nil, err
	}
	git, ok := strings.CutPrefix(strings.TrimSpace(string(content)), "gitdir: ")
	if !ok {
		return nil, fmt.Errorf("%s names no folder", dot)
	}
	if !filepath.IsAbs(git) {
		git = filepath.Join(dir, git)
	}
	own := osfs.New(git)
	content, err = readSmall(filepath.Join(git, "commondir"))
	switch common := strings.TrimSpace(string(content)); {
	case errors.Is(err, fs.ErrNotExist):
		return own, nil // that of a submodule
	case err != nil:
		return nil, err
	case filepath.IsAbs(common):
		return dotgit.NewRepositoryFilesystem(own, osfs.New(common)), nil
	default:
		return dotgit.NewRepositoryFilesystem(own, osfs.New(filepath.Join(git, common))), nil
	}
}

// FetchClone fetches branches of a repository elsewhere, with their recent history, into a
// folder of its own that Close deletes. A branch that there is none of is left out.
func FetchClone(ctx context.Context, url string, auth Auth, branches ...string) (_ *Clone, err error) {
	r, err := newRemote(url, Ref{Branch: branches[0]}, auth, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	defer r.close()
	ctx, cancel := r.within(ctx)
	defer cancel()
	session, err := r.uploadSession(ctx)
	if err != nil {
		return nil, err
	}
	defer closeSession(session)
	adv, _, err := r.advertised(ctx, session)
	if err != nil {
		return nil, err
	}
	c := &Clone{fetched: make(map[string]plumbing.Hash)}
	if c.dir, err = os.MkdirTemp("", "ingot-clone-*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if c.store, err = openStore(c.dir); err != nil {
		return nil, err
	}
	w := wanted{depth: searchDepth}
	if adv.Capabilities.Supports(capability.Filter) {
		w.filter = filterLarge
	}
	for _, b := range branches {
		if h, ok := adv.References[plumbing.NewBranchReferenceName(b).String()]; ok {
			c.fetched[b] = h
			w.commits = append(w.commits, h)
		}
	}
	if err := fetchWanted(ctx, session, adv, c.store, w); err != nil {
		return nil, r.explain(ctx, err)
	}
	return c, nil
}

// Close ends the use of the repository.
func (c *Clone) Close() {
	if c.store != nil {
		c.store.close()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// DefaultBranch is the branch that was checked out when the repository was cloned, "" if
// that is not known.
func (c *Clone) DefaultBranch() string {
	ref, err := c.store.storage.Reference(plumbing.NewRemoteHEADReferenceName("origin"))
	if err != nil || ref.Type() != plumbing.SymbolicReference {
		return ""
	}
	return strings.TrimPrefix(ref.Target().String(), "refs/remotes/origin/")
}

// ResolveBase finds the commit of a branch as origin has it, as far as that was fetched: what the
// clone has committed to it and not pushed is no part of it. Of what origin lacks it finds what
// Resolve does.
func (c *Clone) ResolveBase(name string) (string, error) {
	if h, ok := c.commitOf(plumbing.NewRemoteReferenceName("origin", name)); ok && c.fetched == nil {
		return h.String(), nil
	}
	return c.Resolve(name)
}

// Resolve finds the commit of a branch, of a tag, of HEAD or of a hash, which may be shortened,
// or one before it: HEAD~2 or topic^. Of a branch that the clone has itself and of the one that it
// fetched from origin, that counts which is the newer; where neither is, its own.
func (c *Clone) Resolve(name string) (string, error) {
	if h, ok := c.fetched[name]; ok {
		return h.String(), nil
	}
	if plumbing.IsHash(name) && c.store.has(plumbing.NewHash(name)) {
		return name, nil
	}
	if h, ok := c.commitOf(plumbing.HEAD); ok && name == plumbing.HEAD.String() {
		return h.String(), nil
	}
	own, isOwn := c.commitOf(plumbing.NewBranchReferenceName(name))
	there, isThere := c.commitOf(plumbing.NewRemoteReferenceName("origin", name))
	switch {
	case isOwn && isThere && own != there && c.store.meet(own, there).at(own), isThere && !isOwn:
		return there.String(), nil
	case isOwn:
		return own.String(), nil
	}
	for _, ref := range []plumbing.ReferenceName{plumbing.ReferenceName(name), plumbing.NewTagReferenceName(name), plumbing.ReferenceName("refs/remotes/" + name)} {
		if h, ok := c.commitOf(ref); ok && strings.HasPrefix(ref.String(), "refs/") { // other files of the repository are none
			return h.String(), nil
		}
	}
	if found := earlierName.FindStringSubmatch(name); found != nil {
		return c.earlier(found[1], found[2])
	}
	return c.shortened(name)
}

// earlierName matches how Git names a commit before another, see gitrevisions(7). Other parents than
// the first have to be named by their hash.
var earlierName = regexp.MustCompile(`^(.+?)((?:~[0-9]{0,4}|\^1?)+)$`)

// earlier finds the commit that lies the steps, as ~2 or ^^, before the one of that name.
func (c *Clone) earlier(name, steps string) (string, error) {
	hash, err := c.Resolve(name)
	if err != nil {
		return "", err
	}
	for _, step := range singleSteps.FindAllString(steps, -1) {
		n := 1
		if len(step) > 1 {
			n, _ = strconv.Atoi(step[1:]) // digits alone
		}
		for range n {
			commit, err := c.store.commit(plumbing.NewHash(hash))
			if err != nil || len(commit.ParentHashes) == 0 || !c.store.has(commit.ParentHashes[0]) {
				return "", fmt.Errorf("%w %q", ErrUnknownRevision, name+steps)
			}
			hash = commit.ParentHashes[0].String()
		}
	}
	return hash, nil
}

var singleSteps = regexp.MustCompile(`[~^][0-9]*`)

// leastHash is how many digits of a hash name a commit at least, as for Git.
const leastHash = 4

// shortened finds the one commit whose hash begins with these digits.
func (c *Clone) shortened(digits string) (string, error) {
	unknown := fmt.Errorf("%w %q", ErrUnknownRevision, digits)
	prefix, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil || len(digits) < leastHash || c.fetched != nil {
		return "", unknown
	}
	hashes, err := c.store.storage.HashesWithPrefix(prefix)
	if err != nil {
		return "", fmt.Errorf("look for commit %s: %w", digits, err)
	}
	var found []string
	for _, h := range hashes {
		if _, err := c.store.commit(h); err == nil && strings.HasPrefix(h.String(), strings.ToLower(digits)) {
			found = append(found, h.String())
		}
	}
	switch len(found) {
	case 0:
		return "", unknown
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%w: %d commits begin with it", unknown, len(found))
}

func (c *Clone) commitOf(name plumbing.ReferenceName) (plumbing.Hash, bool) {
	if name.Validate() != nil {
		return plumbing.ZeroHash, false
	}
	ref, err := storer.ResolveReference(c.store.storage, name)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	h := ref.Hash()
	if tag, err := object.GetTag(c.store.storage, h); err == nil {
		h = tag.Target
	}
	return h, c.store.has(h)
}

// Shallow reports whether the history of the clone is cut off.
func (c *Clone) Shallow() bool {
	boundary, err := c.store.storage.Shallow()
	return err == nil && len(boundary) > 0
}

// Snapshot reads the status branch as of a commit.
func (c *Clone) Snapshot(commit string) (Snapshot, error) {
	head := plumbing.NewHash(commit)
	at, err := c.store.commit(head)
	if err != nil {
		return Snapshot{}, fmt.Errorf("read commit %s: %w", head, err)
	}
	snap := Snapshot{Exists: true, Head: commit, Files: make(map[string][]byte), Skipped: make(map[string]error)}
	files, _ := listing(c.store, at.TreeHash, snap.Skipped)
	contents(c.store, files, &snap)
	return snap, nil
}
