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

// looseRef returns the content of a ref's own file.
func (r *Repo) looseRef(name string) string {
	data, err := os.ReadFile(filepath.Join(r.Dir, filepath.FromSlash(name)))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// maxSymbolic is how many symbolic refs lead to a hash at most, as in git.
const maxSymbolic = 5

// ref returns the hash that a ref leads to, "" if there is none.
func (r *Repo) ref(name string) string {
	for range maxSymbolic {
		value := r.looseRef(name)
		target, symbolic := strings.CutPrefix(value, "ref: ")
		switch {
		case isHash(value):
			return value
		case !symbolic:
			return r.packedRefs()[name]
		}
		name = strings.TrimSpace(target)
	}
	return ""
}

// packedRefs returns the refs in the file that git pack-refs writes.
func (r *Repo) packedRefs() map[string]string {
	data, err := os.ReadFile(filepath.Join(r.Dir, "packed-refs"))
	if err != nil {
		return nil
	}
	refs := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && isHash(hash) {
			refs[name] = hash
		}
	}
	return refs
}

// refs returns every ref below refs/.
func (r *Repo) refs() (map[string]string, error) {
	refs := make(map[string]string)
	err := filepath.WalkDir(filepath.Join(r.Dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // git removes empty directories
		}
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		relative, err := filepath.Rel(r.Dir, path)
		name := filepath.ToSlash(relative)
		if hash := r.ref(name); hash != "" {
			refs[name] = hash
		}
		return err
	})
	// A ref that is packed during the walk is in this file by now.
	for name, hash := range r.packedRefs() {
		if refs[name] == "" {
			refs[name] = hash
		}
	}
	return refs, err
}

// lockPatience is how long an update waits for the lock of a ref.
const lockPatience = 2 * time.Second

// updateRef moves a ref from one hash to another, "" being no ref. It fails with errMoved
// if the ref is elsewhere. Unusual refs are left to the real git, which runs the hook.
func (r *Repo) updateRef(name, old, hash string) error {
	if r.OnUpdate == nil && r.hasHook("reference-transaction") || !r.plainRef(name, hash) {
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

// replaceRef is updateRef with the lock of the ref.
func (r *Repo) replaceRef(lock *os.File, name, old, hash string) (renamed bool, err error) {
	if r.ref(name) != old {
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

// plainRef reports whether an update of a ref touches its own file only.
func (r *Repo) plainRef(name, hash string) bool {
	if plumbing.ReferenceName(name).Validate() != nil || !strings.HasPrefix(name, "refs/") || strings.HasPrefix(r.looseRef(name), "ref:") {
		return false
	}
	if info, err := os.Stat(filepath.Join(r.Dir, filepath.FromSlash(name))); err == nil && info.IsDir() {
		return false
	}
	for packed := range r.packedRefs() {
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
	if now := r.ref(name); err != nil && now != strings.Trim(old, "0") {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return err
}

func (r *Repo) hasHook(name string) bool {
	info, err := os.Stat(filepath.Join(r.Dir, "hooks", name))
	return err == nil && info.Mode()&0o111 != 0
}
