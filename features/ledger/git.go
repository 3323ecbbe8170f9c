package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ingot/model"
)

// Push is one change of a branch of the repository.
type Push struct {
	At       time.Time
	Branch   string
	Old, New string // commits, "" where there is no branch
}

// Configuration is what an Ingot that was started follows.
type Configuration struct {
	At           time.Time
	Branch, Path string
	URL          string
	// Folders are those of tenants, with the namespace whose claims and Secrets are all
	// that files there may define. What else stands there is as if it did not.
	Folders map[string]string
}

// counts reports whether an object counts in a file.
func (c Configuration) counts(file string, o model.Object) bool {
	for folder, namespace := range c.Folders {
		if strings.HasPrefix(file, folder+"/") {
			id := o.Identity()
			return id.Namespace == namespace && (id.Kind == model.KindServerClaim || id.Kind == model.KindSecret)
		}
	}
	return true
}

// of is what of a file counts.
func (c Configuration) of(file string, f File) File {
	f.Objects = slices.DeleteFunc(slices.Clone(f.Objects), func(o model.Object) bool { return !c.counts(file, o) })
	return f
}

// pushLog is the file in a repository that the hook writes.
const pushLog = "pushes.log"

// hook notes each change of a branch with the time just before it could be seen: what
// a commit asks for is never younger than what was done because of it.
const hook = `#!/bin/sh
log="$GIT_DIR/` + pushLog + `"
while read old new ref; do
	case "$ref" in refs/heads/*) echo "$1 $(date +%s%N) $new $ref" >>"$log";; esac
done
exit 0
`

// Watch has a bare repository note its pushes from now on.
func Watch(dir string) error {
	return os.WriteFile(filepath.Join(dir, "hooks", "reference-transaction"), []byte(hook), 0o755) //nolint:gosec // a hook must be executable
}

// Pushes returns the pushes that a watched repository noted, oldest first.
func Pushes(dir string) ([]Push, error) {
	data, err := os.ReadFile(filepath.Join(dir, pushLog))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	heads := make(map[string]string)
	prepared := make(map[string]time.Time) // when the change of a branch to a commit was about to be seen
	var all []Push
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			continue
		}
		nanoseconds, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read pushes: %w", err)
		}
		branch, commit := strings.TrimPrefix(f[3], "refs/heads/"), strings.Trim(f[2], "0")
		if commit != "" {
			commit = f[2]
		}
		switch key := f[2] + f[3]; f[0] {
		case "prepared":
			prepared[key] = time.Unix(0, nanoseconds)
		case "committed":
			if heads[branch] != commit {
				all = append(all, Push{At: prepared[key], Branch: branch, Old: heads[branch], New: commit})
			}
			heads[branch] = commit
		}
	}
	return all, nil
}

// Revisions are the heads that a repository's configurations followed, one after the
// other. Before the first configuration it counts already.
func Revisions(dir string, pushes []Push, configurations []Configuration) ([]Revision, error) {
	r := reader{dir: dir, blobs: make(map[string]File)}
	heads := make(map[string]string)
	var all []Revision
	var last source // of the last revision that was not empty
	follow := func(at time.Time, c Configuration) error {
		s := source{branch: c.Branch, path: c.Path, url: c.URL, commit: heads[c.Branch]}
		if s.commit == "" || s == last {
			return nil
		}
		rev, err := r.revision(at, s, last)
		if err != nil || len(rev.Files) == 0 {
			return err
		}
		for file, f := range rev.Files {
			rev.Files[file] = c.of(file, f)
		}
		all, last = append(all, rev), s
		return nil
	}
	for i, c := range configurations {
		if i > 0 {
			if err := follow(c.At, c); err != nil {
				return nil, err
			}
		}
		for len(pushes) > 0 && (i+1 == len(configurations) || pushes[0].At.Before(configurations[i+1].At)) {
			p := pushes[0]
			pushes, heads[p.Branch] = pushes[1:], p.New
			if p.Branch != c.Branch {
				continue
			}
			if err := follow(p.At, c); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// source is a commit and where it was found.
type source struct{ branch, path, url, commit string }

// reader reads trees, each blob once.
type reader struct {
	dir   string
	blobs map[string]File // by path and hash
}

func (r *reader) revision(at time.Time, s, last source) (rev Revision, err error) {
	rev = Revision{At: at, Commit: s.commit, Files: make(map[string]File)}
	same := s.branch == last.branch && s.path == last.path && s.url == last.url
	rev.Descends = same && last.commit != "" && r.ancestor(last.commit, s.commit)
	if rev.Approves, err = r.approves(s.commit, last.commit); err != nil {
		return rev, err
	}
	return rev, r.files(s, rev.Files)
}

func (r *reader) ancestor(old, new string) bool {
	return exec.Command("git", "-C", r.dir, "merge-base", "--is-ancestor", old, new).Run() == nil
}

// approves reports whether a commit that is new carries an approval.
func (r *reader) approves(commit, last string) (bool, error) {
	args := []string{"log", "--format=%B", commit}
	if last != "" {
		args = append(args, "--not", last)
	}
	text, err := r.git(nil, args...)
	for line := range strings.Lines(text) {
		if token, ok := strings.CutPrefix(line, "Ingot-Approve:"); ok && strings.TrimSpace(token) != "" {
			return true, err
		}
	}
	return false, err
}

// files reads all manifests of a tree.
func (r *reader) files(s source, into map[string]File) error {
	args := []string{"ls-tree", "-r", "-z", s.commit}
	if folder := path.Clean("/" + s.path)[1:]; folder != "" {
		args = append(args, "--", folder+"/")
	}
	list, err := r.git(nil, args...)
	if err != nil {
		return err
	}
	var paths, hashes []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		meta, file, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(meta)
		if !ok || fields[1] != "blob" || strings.HasPrefix(path.Base(file), ".") || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file)) {
			continue
		}
		if known, ok := r.blobs[file+fields[2]]; ok {
			into[file] = known
			continue
		}
		paths, hashes = append(paths, file), append(hashes, fields[2])
	}
	contents, err := r.contents(hashes)
	for i, data := range contents {
		f := decode(paths[i], data)
		into[paths[i]], r.blobs[paths[i]+hashes[i]] = f, f
	}
	return err
}

// decode reads one manifest.
func decode(file string, data []byte) (f File) {
	objects, problems := model.Decode(file, data, model.DecodeOptions{AllowPlaintextSecrets: true})
	f.Objects = objects
	if !model.HasErrors(problems) {
		return f
	}
	f.Text = string(data) + "\n"
	for _, p := range problems {
		if id, ok := model.ParseIdentity(p.Object); ok && p.Severity == model.SeverityError {
			f.Named = append(f.Named, id)
		}
	}
	return f
}

// contents are the contents of blobs.
func (r *reader) contents(hashes []string) (all [][]byte, err error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	out, err := r.git(strings.NewReader(strings.Join(hashes, "\n")+"\n"), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(strings.NewReader(out))
	for range hashes {
		header, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(header)
		size, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			return nil, fmt.Errorf("git says %q of a blob", header)
		}
		data := make([]byte, size+1) // and the newline after it
		if _, err := io.ReadFull(in, data); err != nil {
			return nil, err
		}
		all = append(all, data[:size])
	}
	return all, nil
}

func (r *reader) git(stdin io.Reader, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", r.dir}, args...)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
