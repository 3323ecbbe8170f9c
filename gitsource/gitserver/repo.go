package gitserver

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
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

	clock int64 // of the next commit without Clock

	mu   sync.Mutex
	read map[string]snapshot // by branch, as ReadBranch read it last
}

// snapshot is what a commit holds.
type snapshot struct {
	commit string
	files  map[string]string
}

// Commit is one commit as ReadLog returns it.
type Commit struct {
	Hash, Author, Email, Message string
	Parents                      []string
}

// New makes an empty bare repository dir/name.git. It is no error if it exists.
func New(dir, name string) (*Repo, error) {
	r := &Repo{Dir: filepath.Join(dir, name+".git"), Author: "Test Author <author@example.com>", clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make repository: %w", err)
	}
	if _, err := run(nil, "init", "--quiet", "--bare", "--initial-branch", Branch, r.Dir); err != nil {
		return nil, fmt.Errorf("make repository: %w", err)
	}
	if err := r.configure(); err != nil {
		return nil, fmt.Errorf("make repository: %w", err)
	}
	return r, nil
}

// settings has a repository take pushes over HTTP, and keep its objects where they are.
const settings = "[http]\n\treceivepack = true\n[receive]\n\tautogc = false\n"

// configure appends settings to a repository that has not got them yet.
func (r *Repo) configure() error {
	file := filepath.Join(r.Dir, "config")
	now, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(now), settings) {
		return err
	}
	return os.WriteFile(file, append(now, settings...), 0o644) //nolint:gosec // as git makes it
}

// URL returns the file URL of the repository.
func (r *Repo) URL() string { return "file://" + r.Dir }

// Commit adds or replaces files on the branch and returns the new commit's hash.
func (r *Repo) Commit(files map[string]string, message string) (string, error) {
	return r.CommitTo(Branch, files, message)
}

// CommitTo is Commit for a branch by name, which is made if need be. When somebody else
// moves the branch meanwhile, it commits on top of that.
func (r *Repo) CommitTo(branch string, files map[string]string, message string) (string, error) {
	for {
		head := r.head(branch)
		commit, err := r.write(branch, message, head, func(b *bytes.Buffer) { put(b, files) })
		if err == nil || r.head(branch) == head {
			return commit, err
		}
	}
}

// Remove removes files or folders from the branch.
func (r *Repo) Remove(message string, paths ...string) (string, error) {
	return r.write(Branch, message, r.head(Branch), func(b *bytes.Buffer) {
		for _, p := range paths {
			fmt.Fprintf(b, "D %s\n", p)
		}
	})
}

// Move gives a file or folder another path.
func (r *Repo) Move(message, from, to string) (string, error) {
	return r.write(Branch, message, r.head(Branch), func(b *bytes.Buffer) { fmt.Fprintf(b, "R %s %s\n", from, to) })
}

// Clear commits a tree without any file.
func (r *Repo) Clear(message string) (string, error) {
	return r.write(Branch, message, r.head(Branch), func(b *bytes.Buffer) { b.WriteString("deleteall\n") })
}

// Replace commits a tree that has these files and no others.
func (r *Repo) Replace(files map[string]string, message string) (string, error) {
	return r.write(Branch, message, r.head(Branch), func(b *bytes.Buffer) {
		b.WriteString("deleteall\n")
		put(b, files)
	})
}

// Link commits an entry that is no file: mode 120000 makes a symbolic link whose
// target is content, mode 160000 a submodule at the commit that content names.
func (r *Repo) Link(path, mode, content, message string) (string, error) {
	return r.write(Branch, message, r.head(Branch), func(b *bytes.Buffer) {
		if mode == "160000" {
			fmt.Fprintf(b, "M %s %s %s\n", mode, content, path)
			return
		}
		fmt.Fprintf(b, "M %s inline %s\ndata %d\n%s\n", mode, path, len(content), content)
	})
}

// Blob stores a file's content, and returns its hash.
func (r *Repo) Blob(content string) (string, error) {
	hash, err := run(strings.NewReader(content), "-C", r.Dir, "hash-object", "-w", "--stdin")
	return strings.TrimSpace(hash), err
}

// CommitEntry commits an entry of a folder at the root that git lets nobody add, such as a file
// named "a/../b", and that a server takes nevertheless.
func (r *Repo) CommitEntry(dir, mode, name, object, message string) (string, error) {
	hash, err := hex.DecodeString(object)
	if err != nil {
		return "", err
	}
	old, err := r.Git("cat-file", "tree", Branch+":"+dir)
	if err != nil {
		return "", err
	}
	entry := strings.NewReader(old + mode + " " + name + "\x00" + string(hash))
	tree, err := run(entry, "-C", r.Dir, "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
	if err != nil {
		return "", err
	}
	return r.write(Branch, message, r.head(Branch), func(b *bytes.Buffer) {
		fmt.Fprintf(b, "M 040000 %s %s\n", strings.TrimSpace(tree), dir)
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
	return r.write(Branch, message, r.head(Branch), func(b *bytes.Buffer) {
		fmt.Fprintf(b, "M 100644 %s %s\n", strings.TrimSpace(blob), path)
		put(b, files)
	})
}

// ForcePush replaces the branch by one commit without a parent that holds files.
func (r *Repo) ForcePush(files map[string]string, message string) (string, error) {
	return r.write(Branch, message, "", func(b *bytes.Buffer) {
		b.WriteString("deleteall\n")
		put(b, files)
	})
}

// Merge commits files with two parents: the branch's head and other.
func (r *Repo) Merge(other string, files map[string]string, message string) (string, error) {
	return r.write(Branch, message, r.head(Branch), func(b *bytes.Buffer) {
		fmt.Fprintf(b, "merge %s\n", other)
		put(b, files)
	})
}

// SetBranch moves a branch to a commit, forwards or backwards.
func (r *Repo) SetBranch(branch, hash string) error {
	_, err := run(nil, "-C", r.Dir, "update-ref", "refs/heads/"+branch, hash)
	return err
}

// DeleteBranch deletes a branch.
func (r *Repo) DeleteBranch(branch string) error {
	_, err := run(nil, "-C", r.Dir, "update-ref", "-d", "refs/heads/"+branch)
	return err
}

// Head returns the hash of a branch's newest commit, "" if there is no branch.
func (r *Repo) Head(branch string) string { return r.head(branch) }

// maxRead is how large a file is that ReadBranch reads.
const maxRead = 16 << 20

// ReadBranch returns the content of every file of a branch, by path; it is nil
// if there is no branch. Files that are very large are left out. While the branch
// stays where it is, no process is started.
func (r *Repo) ReadBranch(branch string) (map[string]string, error) {
	head := r.head(branch)
	if head == "" {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.read[branch]; last.commit == head {
		return maps.Clone(last.files), nil
	}
	files, err := r.files(head)
	if err != nil {
		return nil, err
	}
	if r.read == nil {
		r.read = make(map[string]snapshot)
	}
	r.read[branch] = snapshot{head, files}
	return maps.Clone(files), nil
}

// files are the files of a commit.
func (r *Repo) files(commit string) (map[string]string, error) {
	list, err := run(nil, "-C", r.Dir, "ls-tree", "-r", "-l", "-z", commit)
	if err != nil {
		return nil, err
	}
	var paths []string
	var hashes bytes.Buffer
	for entry := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		meta, path, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(meta)
		if !ok || fields[1] != "blob" {
			continue
		}
		if size, err := strconv.Atoi(fields[3]); err == nil && size <= maxRead {
			paths = append(paths, path)
			fmt.Fprintln(&hashes, fields[2])
		}
	}
	out, err := run(&hashes, "-C", r.Dir, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	return contents(out, paths)
}

// contents splits the output of cat-file --batch.
func contents(out string, paths []string) (map[string]string, error) {
	files := make(map[string]string, len(paths))
	in := bufio.NewReader(strings.NewReader(out))
	for _, path := range paths {
		header, err := in.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		fields := strings.Fields(header)
		size, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		content := make([]byte, size+1) // and the newline after it
		if _, err := io.ReadFull(in, content); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		files[path] = string(content[:size])
	}
	return files, nil
}

// ReadLog returns the commits of a branch, newest first; nil if there is none.
func (r *Repo) ReadLog(branch string) ([]Commit, error) {
	if r.head(branch) == "" {
		return nil, nil
	}
	out, err := run(nil, "-C", r.Dir, "log", "-z", "--format=%H%x01%an%x01%ae%x01%P%x01%B", "refs/heads/"+branch)
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		f := strings.SplitN(entry, "\x01", 5)
		commits = append(commits, Commit{
			Hash: f[0], Author: f[1], Email: f[2], Parents: strings.Fields(f[3]), Message: strings.TrimRight(f[4], "\n"),
		})
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

// head reads the file in which git keeps a branch's head: tests look for it all the time,
// and a process for each look would be most of what they cost. Where there is no such
// file, or no hash in it, the branch may be packed or symbolic, and git is asked.
func (r *Repo) head(branch string) string {
	data, err := os.ReadFile(filepath.Join(r.Dir, "refs", "heads", filepath.FromSlash(branch)))
	if hash := strings.TrimSpace(string(data)); err == nil && isHash(hash) {
		return hash
	}
	out, err := run(nil, "-C", r.Dir, "rev-parse", "--quiet", "--verify", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// isHash reports whether s is the name of an object, in SHA-1 or SHA-256.
func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 40 || len(s) == 64)
}

// write makes one commit with git fast-import.
func (r *Repo) write(branch, message, from string, changes func(*bytes.Buffer)) (string, error) {
	r.clock++
	if r.Clock != nil {
		r.clock = r.Clock().Unix()
	}
	ref := "refs/heads/" + branch
	if r.Key != nil && branch == Branch {
		ref = "refs/unsigned" // nobody is to see it there
	}
	var in bytes.Buffer
	// A branch is reset first, so that its new tip need not descend from the old.
	fmt.Fprintf(&in, "reset %s\n\ncommit %s\n", ref, ref)
	fmt.Fprintf(&in, "author %s %d +0000\n", r.Author, r.clock)
	fmt.Fprintf(&in, "committer %s %d +0000\n", r.Author, r.clock)
	fmt.Fprintf(&in, "data %d\n%s\n", len(message), message)
	if from != "" {
		fmt.Fprintf(&in, "from %s\n", from)
	}
	changes(&in)
	in.WriteString("\n")
	if _, err := run(&in, "-C", r.Dir, "fast-import", "--quiet", "--force", "--date-format=raw"); err != nil {
		return "", fmt.Errorf("commit %q: %w", message, err)
	}
	if ref == "refs/unsigned" {
		commit, err := r.sign(ref, *r.Key)
		if err != nil {
			return "", err
		}
		return commit, r.SetBranch(branch, commit)
	}
	return r.head(branch), nil
}

func put(b *bytes.Buffer, files map[string]string) {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(b, "M 100644 inline %s\ndata %d\n%s\n", path, len(files[path]), files[path])
	}
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
