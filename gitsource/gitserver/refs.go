package gitserver

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

const branchPrefix = "refs/heads/"

// States of a ref update, as the hook reference-transaction gets them.
const (
	statePrepared  = "prepared"
	stateCommitted = "committed"
)

// errMoved is the error of an update whose old value is not the current one.
var errMoved = errors.New("the ref has another value")

var noHash = plumbing.ZeroHash.String()

// isHash reports whether s is the name of an object.
func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == len(noHash)
}

// refs is the folder of a repository, as far as its refs are read.
type refs string

func (r *Repo) refs() refs { return refs(r.Dir) }

// loose returns the content of a ref's own file.
func (d refs) loose(name string) string {
	data, err := os.ReadFile(filepath.Join(string(d), filepath.FromSlash(name)))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// maxSymbolic is how many symbolic refs lead to a hash at most, as in git.
const maxSymbolic = 5

// hash returns the hash that a ref leads to, "" if there is none.
func (d refs) hash(name string) string {
	for range maxSymbolic {
		value := d.loose(name)
		target, symbolic := strings.CutPrefix(value, "ref: ")
		switch {
		case isHash(value):
			return value
		case !symbolic:
			return d.packed()[name]
		}
		name = strings.TrimSpace(target)
	}
	return ""
}

// packed returns the refs in the file that git pack-refs writes.
func (d refs) packed() map[string]string {
	data, err := os.ReadFile(filepath.Join(string(d), "packed-refs"))
	if err != nil {
		return nil
	}
	all := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && isHash(hash) {
			all[name] = hash
		}
	}
	return all
}

func (d refs) all() (map[string]string, error) {
	found := make(map[string]string)
	err := filepath.WalkDir(filepath.Join(string(d), "refs"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // git removes empty directories
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		relative, err := filepath.Rel(string(d), path)
		name := filepath.ToSlash(relative)
		if hash := d.hash(name); hash != "" {
			found[name] = hash
		}
		return err
	})
	// A ref that is packed during the walk is in this file by now.
	for name, hash := range d.packed() {
		if found[name] == "" {
			found[name] = hash
		}
	}
	return found, err
}

// lockPatience is how long an update waits for the lock of a ref.
const lockPatience = 2 * time.Second

// updateRef moves a ref from one hash to another, "" being no ref. It fails with errMoved
// if the ref is elsewhere. Unusual refs are left to the real git, which runs the hook.
func (r *Repo) updateRef(name, old, hash string) error {
	if r.OnUpdate == nil && hasHook(r.Dir, "reference-transaction") || !r.refs().isPlain(name, hash) {
		return r.updateByGit(name, old, hash)
	}
	file := filepath.Join(r.Dir, filepath.FromSlash(name))
	lock, err := lockFile(file + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	renamed, err := r.replaceRef(lock, name, old, hash)
	if !renamed {
		// After the rename, the name belongs to the next writer.
		err = errors.Join(err, os.Remove(lock.Name()))
	}
	return err
}

func (r *Repo) replaceRef(lock *os.File, name, old, hash string) (renamed bool, err error) {
	if r.refs().hash(name) != old {
		return false, errMoved
	}
	file := strings.TrimSuffix(lock.Name(), ".lock")
	if hash == "" {
		r.notify(statePrepared, name, noHash)
		if err = os.Remove(file); err == nil {
			r.notify(stateCommitted, name, noHash)
		}
		return false, err
	}
	if _, err := lock.WriteString(hash + "\n"); err != nil {
		return false, err
	}
	r.notify(statePrepared, name, hash)
	if err = os.Rename(lock.Name(), file); err == nil {
		r.notify(stateCommitted, name, hash)
	}
	return err == nil, err
}

func (r *Repo) notify(state, ref, hash string) {
	if r.OnUpdate != nil {
		r.OnUpdate(state, ref, hash)
	}
}

// isPlain reports whether an update of a ref touches its own file only.
func (d refs) isPlain(name, hash string) bool {
	if plumbing.ReferenceName(name).Validate() != nil || !strings.HasPrefix(name, "refs/") || strings.HasPrefix(d.loose(name), "ref:") {
		return false
	}
	if info, err := os.Stat(filepath.Join(string(d), filepath.FromSlash(name))); err == nil && info.IsDir() {
		return false
	}
	for packed := range d.packed() {
		if strings.HasPrefix(packed, name+"/") || strings.HasPrefix(name, packed+"/") || packed == name && hash == "" {
			return false
		}
	}
	return true
}

// lockFile creates a lock file, as git does, and waits for another writer to remove it.
func lockFile(name string) (*os.File, error) {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(time.Millisecond) {
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // as git makes it
		if err == nil || time.Now().After(deadline) || !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
}

// updateByGit is updateRef by the real git.
func (r *Repo) updateByGit(name, old, hash string) error {
	args := []string{"update-ref", name, hash}
	if hash == "" {
		args = []string{"update-ref", "-d", name}
	}
	if old != "" || hash != "" {
		if old == "" {
			old = noHash
		}
		args = append(args, old)
	}
	_, err := r.Git(args...)
	if now := r.refs().hash(name); err != nil && now != strings.Trim(old, "0") {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return err
}

func hasHook(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, "hooks", name))
	return err == nil && info.Mode()&0o111 != 0
}
