package ledger

import (
	"errors"
	"fmt"
	"os"
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

func (c Configuration) counts(file string, o model.Object) bool {
	for folder, namespace := range c.Folders {
		if strings.HasPrefix(file, folder+"/") {
			id := o.Identity()
			return id.Namespace == namespace && (id.Kind == model.KindServerClaim || id.Kind == model.KindSecret)
		}
	}
	return true
}

func (c Configuration) of(file string, f File) File {
	f.Objects = slices.DeleteFunc(slices.Clone(f.Objects), func(o model.Object) bool { return !c.counts(file, o) })
	return f
}

// pushLog is the file in a repository that the hook writes.
const pushLog = "pushes.log"

// hook notes each change of a branch with the time just before it could be seen: what
// a commit asks for is never younger than what was done because of it. It runs several
// times for each change that git makes, so it starts no process but for that one time.
const hook = `#!/bin/sh
while read old new ref; do
	case "$1 $ref" in
	"prepared refs/heads/"*) now=${now:-$(date +%s%N)} ;;
	"committed refs/heads/"*) now=0 ;; # it could be seen by now, so this is no time to go by
	*) continue ;;
	esac
	echo "$1 $now $new $ref" >>"$GIT_DIR/` + pushLog + `"
done
exit 0
`

// Watch has a bare repository note its pushes from now on.
func Watch(dir string) error {
	return os.WriteFile(filepath.Join(dir, "hooks", "reference-transaction"), []byte(hook), 0o755) //nolint:gosec // a hook must be executable
}

// Noter returns a function that notes a change of a ref as the hook of a watched repository
// does. It is for changes that are made without the real git.
func Noter(dir string) func(state, ref, hash string) {
	return func(state, ref, hash string) {
		if !strings.HasPrefix(ref, "refs/heads/") {
			return
		}
		var now int64
		if state == "prepared" {
			now = time.Now().UnixNano()
		}
		f, err := os.OpenFile(filepath.Join(dir, pushLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // as the hook makes it
		if err != nil {
			return // the repository was removed
		}
		defer f.Close()
		_, _ = fmt.Fprintf(f, "%s %d %s %s\n", state, now, hash, ref) // one write
	}
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
func (r *Reader) Revisions(pushes []Push, configurations []Configuration) (_ []Revision, err error) {
	defer func() { err = errors.Join(err, r.objects.close()) }()
	heads := make(map[string]string)
	var all []Revision
	var last source                // of the last revision that was not empty
	older := make(map[string]bool) // ancestors of followed commits: they change nothing
	was := make(map[source]bool)   // followed commits
	take := func(at time.Time, c Configuration, s source) error {
		same := s.branch == last.branch && s.path == last.path && s.url == last.url
		if s.commit == "" || s == last || same && older[s.commit] {
			return nil
		}
		rev, err := r.revision(at, s, last)
		if err != nil || len(rev.Files) == 0 {
			return err
		}
		rev.Descends = rev.Descends && !was[s]
		was[s] = true
		history, err := r.history(s.commit)
		if err != nil {
			return err
		}
		for hash := range history {
			older[hash] = older[hash] || hash != s.commit
		}
		for file, f := range rev.Files {
			rev.Files[file] = c.of(file, f)
		}
		all, last = append(all, rev), s
		return nil
	}
	follow := func(at time.Time, c Configuration) error {
		line, err := r.line(last.commit, heads[c.Branch])
		for _, commit := range line {
			err = errors.Join(err, take(at, c, source{branch: c.Branch, path: c.Path, url: c.URL, commit: commit}))
		}
		return err
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

// Reader reads the commits of a repository, each object of it once: none ever changes.
// It is not for concurrent use.
type Reader struct {
	objects objects
	commits map[string]*commit
	trees   map[string][]entry
	blobs   map[string]File // by path and hash
}

// NewReader returns a Reader of the repository in dir.
func NewReader(dir string) *Reader {
	return &Reader{
		objects: objects{dir: dir}, commits: make(map[string]*commit),
		trees: make(map[string][]entry), blobs: make(map[string]File),
	}
}

func (r *Reader) revision(at time.Time, s, last source) (rev Revision, err error) {
	rev = Revision{At: at, Commit: s.commit, Files: make(map[string]File)}
	now, err := r.history(s.commit)
	if err != nil {
		return rev, err
	}
	before, err := r.history(last.commit)
	if err != nil {
		return rev, err
	}
	same := s.branch == last.branch && s.path == last.path && s.url == last.url
	rev.Descends = same && now[last.commit] != nil
	for hash, c := range now {
		rev.Approves = rev.Approves || before[hash] == nil && c.approves()
	}
	folder := path.Clean("/" + s.path)[1:]
	if folder != "" {
		folder += "/"
	}
	return rev, r.files(now[s.commit].tree, "", folder, rev.Files)
}

// line returns the commits that follow old on the first-parent line of head, oldest first, or head alone.
func (r *Reader) line(old, head string) (line []string, err error) {
	for at := head; at != "" && at != old; {
		c, err := r.commit(at)
		if err != nil {
			return nil, err
		}
		line = append(line, at)
		if at = ""; len(c.parents) > 0 {
			at = c.parents[0]
		}
		if at == "" {
			return []string{head}, nil
		}
	}
	slices.Reverse(line)
	return line, nil
}

// history has a commit, and all that it descends from, by hash; "" has none.
func (r *Reader) history(hash string) (map[string]*commit, error) {
	all := make(map[string]*commit)
	for next := []string{hash}; len(next) > 0; next = next[1:] {
		if next[0] == "" || all[next[0]] != nil {
			continue
		}
		c, err := r.commit(next[0])
		if err != nil {
			return nil, err
		}
		all[next[0]] = c
		next = append(next, c.parents...)
	}
	return all, nil
}

// files reads the manifests below a folder. Those of a tree stand in dir.
func (r *Reader) files(tree, dir, folder string, into map[string]File) error {
	entries, err := r.tree(tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := dir + e.name
		switch {
		case e.mode == modeTree:
			err = r.files(e.hash, file+"/", folder, into)
		case e.mode == modeSubmodule || !strings.HasPrefix(file, folder) || !isManifest(e.name):
		default:
			into[file], err = r.manifest(file, e.hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isManifest reports whether a file of that name is read.
func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

func (r *Reader) manifest(file, hash string) (File, error) {
	if f, known := r.blobs[file+hash]; known {
		return f, nil
	}
	data, err := r.objects.read(hash)
	if err != nil {
		return File{}, err
	}
	f := decode(file, data)
	r.blobs[file+hash] = f
	return f, nil
}

func decode(file string, data []byte) (f File) {
	objects, problems := model.Decode(file, data, model.DecodeOptions{AllowPlaintextSecrets: true})
	for i, o := range objects {
		if b, is := o.(*model.ServerBootConfiguration); is {
			objects[i] = b.Claim() // what it asks for is judged like a claim
		}
	}
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
