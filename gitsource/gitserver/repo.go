package gitserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Branch is the branch that Commit, Remove and ForcePush write to.
const Branch = "main"

// Repo is a bare repository on disk.
type Repo struct {
	// Dir is the repository itself; its path is also a URL to fetch from.
	Dir string
	// Author signs the commits, "Name <email>".
	Author string
	// Clock dates the commits; nil = a fixed day, so that commits are reproducible.
	Clock func() time.Time
	// Key signs each commit of Branch from now on; nil = none is signed.
	Key *SigningKey

	// OnUpdate, if set, is called for each change of a ref that is made without the real git,
	// which runs no hook: with "prepared" before readers can see it, and "committed" after.
	OnUpdate func(state, ref, hash string)

	objects objects

	mu    sync.Mutex          // guards the fields below
	clock int64               // time of the last commit without Clock
	read  map[string]snapshot // by branch, as ReadBranch read it last
}

type snapshot struct {
	commit string
	files  map[string]string
	blobs  map[string]plumbing.Hash
}

// Commit is one commit as ReadLog returns it.
type Commit struct {
	Hash, Author, Email, Message string
	Parents                      []string
}

// ownSettings let a repository take pushes over HTTP, and keep its objects where they are.
const ownSettings = "[http]\n\treceivepack = true\n[receive]\n\tautogc = false\n"

// New makes an empty bare repository dir/name.git. It is no error if it exists.
func New(dir, name string) (*Repo, error) {
	r := &Repo{objects: objects{dir: filepath.Join(dir, name+".git")}, Dir: filepath.Join(dir, name+".git"), Author: "Test Author <author@example.com>", clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()}
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("make repository: %w", err)
	}
	return r, nil
}

// prepare adds the files of a bare repository that do not exist yet.
func (r *Repo) prepare() error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks", "info"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	head, config := filepath.Join(r.Dir, "HEAD"), filepath.Join(r.Dir, "config")
	if _, err := os.Stat(head); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(head, []byte("ref: "+branchPrefix+Branch+"\n"), 0o644); err != nil { //nolint:gosec // as git makes it
			return err
		}
	}
	now, err := os.ReadFile(config)
	if errors.Is(err, os.ErrNotExist) {
		now, err = []byte("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"), nil
	}
	if err != nil || strings.Contains(string(now), ownSettings) {
		return err
	}
	return os.WriteFile(config, append(now, ownSettings...), 0o644) //nolint:gosec // as git makes it
}

// URL returns the file URL of the repository.
func (r *Repo) URL() string { return "file://" + r.Dir }

// Commit adds or replaces files on the branch and returns the new commit's hash.
func (r *Repo) Commit(files map[string]string, message string) (string, error) {
	return r.CommitTo(Branch, files, message)
}

// CommitTo is Commit for a branch by name, which is created if it does not exist. If
// another writer moves the branch in the meantime, it commits on top of that.
func (r *Repo) CommitTo(branch string, files map[string]string, message string) (string, error) {
	return r.write(branch, message, func(e *edit) error { return e.root.putFiles(files) })
}

// Remove removes files or folders from the branch.
func (r *Repo) Remove(message string, paths ...string) (string, error) {
	return r.Change(nil, message, paths...)
}

// Change removes files or folders from the branch and adds or replaces others, in one commit.
func (r *Repo) Change(files map[string]string, message string, removed ...string) (string, error) {
	return r.write(Branch, message, func(e *edit) error {
		for _, p := range removed {
			if _, err := e.root.remove(p); err != nil {
				return err
			}
		}
		return e.root.putFiles(files)
	})
}

// Move gives a file or folder another path.
func (r *Repo) Move(message, from, to string) (string, error) {
	return r.write(Branch, message, func(e *edit) error {
		n, err := e.root.remove(from)
		if err != nil {
			return err
		}
		if n == nil {
			return fmt.Errorf("path %s not in branch", from)
		}
		return e.root.put(to, n)
	})
}

// Clear commits a tree without any file.
func (r *Repo) Clear(message string) (string, error) { return r.Replace(nil, message) }

// Replace commits a tree that has these files and no others.
func (r *Repo) Replace(files map[string]string, message string) (string, error) {
	return r.write(Branch, message, func(e *edit) error {
		clear(e.root.nodes)
		return e.root.putFiles(files)
	})
}

// Link commits an entry that is no file: mode 120000 makes a symbolic link whose
// target is content, mode 160000 a submodule at the commit that content names.
func (r *Repo) Link(path, mode, content, message string) (string, error) {
	return r.write(Branch, message, func(e *edit) error {
		hash := plumbing.NewHash(content)
		if mode != modeSubmodule {
			var err error
			if hash, err = r.objects.write(plumbing.BlobObject, []byte(content)); err != nil {
				return err
			}
		}
		return e.root.put(path, &node{mode: mode, hash: hash})
	})
}

// Blob stores a file's content, and returns its hash.
func (r *Repo) Blob(content string) (string, error) {
	hash, err := r.objects.write(plumbing.BlobObject, []byte(content))
	return hash.String(), err
}

// CommitEntry commits an entry of a folder at the root that git lets nobody add, such as a file
// named "a/../b", and that a server takes nevertheless.
func (r *Repo) CommitEntry(dir, mode, name, object, message string) (string, error) {
	return r.write(Branch, message, func(e *edit) error {
		n := e.root.nodes[dir]
		if n == nil {
			return fmt.Errorf("there is no folder %s", dir)
		}
		_, tree, err := r.objects.read(n.hash)
		if err != nil {
			return err
		}
		hash := plumbing.NewHash(object)
		n.hash, err = r.objects.write(plumbing.TreeObject, slices.Concat(tree, []byte(mode+" "+name+"\x00"), hash[:]))
		return err
	})
}

// CommitZeros commits files beside one of so many zeros, which takes next to no room.
func (r *Repo) CommitZeros(path string, size int64, files map[string]string, message string) (hash string, err error) {
	zeros, err := os.CreateTemp("", "zeros-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, zeros.Close(), os.Remove(zeros.Name())) }()
	if err := zeros.Truncate(size); err != nil {
		return "", err
	}
	blob, err := r.Git("-c", "core.looseCompression=1", "hash-object", "-w", zeros.Name())
	if err != nil {
		return "", err
	}
	if _, err := r.Git("config", "pack.compression", "1"); err != nil {
		return "", err
	}
	return r.write(Branch, message, func(e *edit) error {
		err := e.root.put(path, &node{mode: modeFile, hash: plumbing.NewHash(strings.TrimSpace(blob))})
		return errors.Join(err, e.root.putFiles(files))
	})
}

// ForcePush replaces the branch by one commit without a parent that holds files.
func (r *Repo) ForcePush(files map[string]string, message string) (string, error) {
	return r.write(Branch, message, func(e *edit) error {
		e.parents = nil
		clear(e.root.nodes)
		return e.root.putFiles(files)
	})
}

// Merge commits files with two parents: the branch's head and other.
func (r *Repo) Merge(other string, files map[string]string, message string) (string, error) {
	return r.write(Branch, message, func(e *edit) error {
		hash, err := r.resolve(other)
		if err != nil {
			return err
		}
		e.parents = append(e.parents, hash)
		return e.root.putFiles(files)
	})
}

// SetBranch moves a branch to a commit, forwards or backwards.
func (r *Repo) SetBranch(branch, commit string) error {
	hash, err := r.resolve(commit)
	if err != nil {
		return err
	}
	if _, err := r.objects.commit(hash); err != nil {
		return err
	}
	return r.moved(branch, func(string) (string, error) { return hash.String(), nil })
}

// DeleteBranch deletes a branch.
func (r *Repo) DeleteBranch(branch string) error {
	return r.moved(branch, func(old string) (string, error) {
		if old == "" {
			return "", fmt.Errorf("there is no branch %s", branch)
		}
		return "", nil
	})
}

// moved gives a branch the value that next makes of the current one. It asks again if
// another writer moves the branch in the meantime.
func (r *Repo) moved(branch string, next func(old string) (string, error)) error {
	for {
		old := r.Head(branch)
		hash, err := next(old)
		if err != nil {
			return err
		}
		if err := r.updateRef(branchPrefix+branch, old, hash); !errors.Is(err, errMoved) {
			return err
		}
	}
}

func (r *Repo) resolve(revision string) (plumbing.Hash, error) {
	if isHash(revision) {
		return plumbing.NewHash(revision), nil
	}
	hash, err := r.Git("rev-parse", "--verify", revision+"^{commit}")
	return plumbing.NewHash(strings.TrimSpace(hash)), err
}

// Head returns the hash of a branch's newest commit, "" if there is no branch.
func (r *Repo) Head(branch string) string { return r.refs().hash(branchPrefix + branch) }

// maxRead is how large a file is that ReadBranch reads.
const maxRead = 16 << 20

// ReadBranch returns the content of every file of a branch, by path; it is nil
// if there is no branch. Files that are very large are left out.
func (r *Repo) ReadBranch(branch string) (map[string]string, error) {
	head := r.Head(branch)
	if head == "" {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.read[branch]
	if last.commit == head {
		return maps.Clone(last.files), nil
	}
	now, err := r.snapshot(head, last)
	if err != nil {
		return nil, err
	}
	if r.read == nil {
		r.read = make(map[string]snapshot)
	}
	r.read[branch] = now
	return maps.Clone(now.files), nil
}

// snapshot reads a commit. It takes over files that are the same in the last snapshot.
func (r *Repo) snapshot(head string, last snapshot) (snapshot, error) {
	now := snapshot{head, make(map[string]string), make(map[string]plumbing.Hash)}
	c, err := r.objects.commit(plumbing.NewHash(head))
	if err != nil {
		return now, err
	}
	return now, r.objects.walk(c.TreeHash, "", func(path string, e entry) error {
		content, known := last.files[path]
		if known = known && last.blobs[path] == e.hash; !known && e.mode != modeSubmodule {
			_, size, err := r.objects.header(e.hash)
			if err != nil {
				return err
			}
			if known = size <= maxRead; known {
				_, raw, err := r.objects.read(e.hash)
				if err != nil {
					return err
				}
				content = string(raw)
			}
		}
		if known {
			now.files[path], now.blobs[path] = content, e.hash
		}
		return nil
	})
}

// ReadLog returns the commits of a branch, newest first; nil if there is none.
func (r *Repo) ReadLog(branch string) ([]Commit, error) {
	head := r.Head(branch)
	if head == "" {
		return nil, nil
	}
	var queue []*object.Commit // by date
	seen := make(map[plumbing.Hash]bool)
	add := func(h plumbing.Hash) error {
		c, err := r.objects.commit(h)
		if err != nil || seen[h] {
			return err
		}
		seen[h] = true
		at := slices.IndexFunc(queue, func(q *object.Commit) bool { return q.Committer.When.Before(c.Committer.When) })
		if at < 0 {
			at = len(queue)
		}
		queue = slices.Insert(queue, at, c)
		return nil
	}
	if err := add(plumbing.NewHash(head)); err != nil {
		return nil, err
	}
	var commits []Commit
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		entry := Commit{Hash: c.Hash.String(), Author: c.Author.Name, Email: c.Author.Email, Message: strings.TrimRight(c.Message, "\n")}
		for _, p := range c.ParentHashes {
			entry.Parents = append(entry.Parents, p.String())
			if err := add(p); err != nil {
				return nil, err
			}
		}
		commits = append(commits, entry)
	}
	return commits, nil
}

// Hook installs a server-side hook, a shell script without its first line.
func (r *Repo) Hook(name, script string) error {
	// A hook that runs cannot be written to.
	path := filepath.Join(r.Dir, "hooks", name)
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // a hook must be executable
		return err
	}
	return os.Rename(fresh, path)
}

// Git runs git in the repository and returns its output.
func (r *Repo) Git(args ...string) (string, error) {
	return run(nil, append([]string{"-C", r.Dir}, args...)...)
}

// edit is a commit that is being made.
type edit struct {
	root    *folder
	parents []plumbing.Hash
}

func (r *Repo) write(branch, message string, change func(*edit) error) (commit string, err error) {
	when := r.now()
	err = r.moved(branch, func(old string) (string, error) {
		commit, err = r.commitOn(old, fmt.Sprintf("%s %d +0000", r.Author, when), message, change)
		if err == nil && r.Key != nil && branch == Branch {
			commit, err = r.sign(commit, *r.Key)
		}
		return commit, err
	})
	if err != nil {
		return "", fmt.Errorf("commit %q: %w", message, err)
	}
	return commit, nil
}

// now returns the time of the next commit.
func (r *Repo) now() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	if r.Clock != nil {
		r.clock = r.Clock().Unix()
	}
	return r.clock
}

// commitOn stores a commit that changes another one, "" being none.
func (r *Repo) commitOn(old, author, message string, change func(*edit) error) (string, error) {
	var e edit
	var tree plumbing.Hash
	if old != "" {
		c, err := r.objects.commit(plumbing.NewHash(old))
		if err != nil {
			return "", err
		}
		tree, e.parents = c.TreeHash, []plumbing.Hash{c.Hash}
	}
	var err error
	if e.root, err = r.objects.newFolder(tree); err != nil {
		return "", err
	}
	if err = change(&e); err != nil {
		return "", err
	}
	if tree, err = e.root.write(); err != nil {
		return "", err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range e.parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %[1]s\ncommitter %[1]s\n\n%[2]s", author, message)
	hash, err := r.objects.write(plumbing.CommitObject, b.Bytes())
	return hash.String(), err
}

// run runs git without the user's configuration.
func run(stdin io.Reader, args ...string) (string, error) { return runIn(nil, stdin, args...) }

func runIn(env []string, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Env = append(append(os.Environ(), env...), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0")
	cmd.Stdin = stdin
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
