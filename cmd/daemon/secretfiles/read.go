package secretfiles

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
)

const (
	maxFiles = 20_000
	maxValue = 1 << 20  // bytes of one file
	maxTotal = 16 << 20 // bytes of all files
)

type contents struct {
	values map[model.Identity]map[string]model.Sensitive
	// places are where objects stand, as people find them; several if in both layouts.
	places map[model.Identity][]string
	// faults are why an object cannot be used as it stands.
	faults map[model.Identity]string
	// odd is what stands there and is no secret, by path.
	odd map[string]string
	// open are files that anybody on this machine can read or change.
	open []string
	sum  [sha256.Size]byte // of all of it
}

// reading is a folder while it is read.
type reading struct {
	contents
	dir   string
	hash  hash.Hash
	files int
	bytes int64
}

// read reads a folder. It fails if the folder cannot be read as a whole.
func read(dir string) (contents, error) {
	r := &reading{dir: dir, hash: sha256.New(), contents: contents{
		values: make(map[model.Identity]map[string]model.Sensitive), places: make(map[model.Identity][]string),
		faults: make(map[model.Identity]string), odd: make(map[string]string),
	}}
	info, err := os.Stat(dir)
	if err != nil {
		return contents{}, reason(err)
	}
	err = r.entries("", entered(true, info), func(path string, info fs.FileInfo, public bool) error {
		if info.IsDir() {
			return r.folder(path, entered(public, info))
		}
		return r.flat(path, info, public)
	})
	if err != nil {
		return contents{}, err
	}
	r.summarize()
	return r.contents, nil
}

// summarize adds to the sum what values are not in it.
func (r *reading) summarize() {
	var lines []string
	for id, places := range r.places {
		lines = append(lines, fmt.Sprint(id, places, r.faults[id]))
	}
	for path, what := range r.odd {
		lines = append(lines, path+what)
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintf(r.hash, "\x00%s", line)
	}
	r.hash.Sum(r.sum[:0])
}

// entered reports whether everybody who gets to a folder gets into it.
func entered(public bool, info fs.FileInfo) bool { return public && info.Mode().Perm()&0o001 != 0 }

// entries visits what a folder holds, symbolic links followed.
func (r *reading) entries(path string, public bool, visit func(path string, info fs.FileInfo, public bool) error) error {
	all, err := os.ReadDir(filepath.Join(r.dir, path))
	if err != nil && path == "" {
		return reason(err)
	}
	if err != nil {
		r.odd[path] = "cannot be read: " + reason(err).Error()
		return nil
	}
	for _, e := range all {
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "lost+found" {
			continue
		}
		if r.files++; r.files > maxFiles {
			return fmt.Errorf("it holds more than %d files", maxFiles)
		}
		at := filepath.Join(path, e.Name())
		info, err := os.Stat(filepath.Join(r.dir, at))
		if err != nil { // a link leads nowhere, or it has gone just now
			r.odd[at] = "cannot be read: " + reason(err).Error()
			continue
		}
		if err := visit(at, info, public); err != nil {
			return err
		}
	}
	return nil
}

// folder reads <name>/<key> and <namespace>/<name>/<key>.
func (r *reading) folder(path string, public bool) error {
	return r.entries(path, public, func(at string, info fs.FileInfo, public bool) error {
		name := filepath.Base(at)
		if !info.IsDir() {
			return r.key(model.Identity{Kind: model.KindBMCSecret, Name: path}, path, name, at, info, public)
		}
		id := model.Identity{Kind: model.KindSecret, Namespace: path, Name: name}
		r.place(id, at)
		return r.entries(at, entered(public, info), func(file string, info fs.FileInfo, public bool) error {
			if info.IsDir() {
				r.odd[file] = "is a folder where a key was expected: the layout is <namespace>/<name>/<key>"
				return nil
			}
			return r.key(id, at, filepath.Base(file), file, info, public)
		})
	})
}

// flat reads <name>_<key> and <namespace>_<name>_<key>. Other files are not ours: systemd has
// one folder for all credentials of a service.
func (r *reading) flat(path string, info fs.FileInfo, public bool) error {
	parts := strings.SplitN(path, "_", 3)
	switch len(parts) {
	case 2:
		id := model.Identity{Kind: model.KindBMCSecret, Name: parts[0]}
		return r.key(id, parts[0]+"_…", parts[1], path, info, public)
	case 3:
		id := model.Identity{Kind: model.KindSecret, Namespace: parts[0], Name: parts[1]}
		return r.key(id, parts[0]+"_"+parts[1]+"_…", parts[2], path, info, public)
	}
	return nil
}

func (r *reading) place(id model.Identity, place string) {
	if !slices.Contains(r.places[id], place) {
		r.places[id] = append(r.places[id], place)
	}
}

func (r *reading) key(id model.Identity, place, key, file string, info fs.FileInfo, public bool) error {
	if !model.IsSecretKey(key) {
		r.odd[file] = `is left out: the name of a key has letters, digits, "-", "_" and "."`
		return nil
	}
	r.place(id, place)
	if !info.Mode().IsRegular() {
		r.faults[id] = "key " + key + " is no file"
		return nil
	}
	if public && info.Mode().Perm()&0o006 != 0 {
		r.open = append(r.open, file)
	}
	value, err := readValue(filepath.Join(r.dir, file))
	if err != nil {
		r.faults[id] = fmt.Sprintf("key %s cannot be read: %v", key, err)
		return nil
	}
	if r.bytes += int64(len(value)); r.bytes > maxTotal {
		return fmt.Errorf("it holds more than %d bytes", maxTotal)
	}
	if id.Kind == model.KindBMCSecret { // people write it with an editor, and no password ends so
		value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	}
	fmt.Fprintf(r.hash, "\x00%s %v %d %s", file, info.Mode().Perm(), len(value), value)
	if r.values[id] == nil {
		r.values[id] = make(map[string]model.Sensitive)
	}
	r.values[id][key] = model.NewSensitive(value)
	return nil
}

func readValue(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", reason(err)
	}
	defer f.Close() // read only: nothing is lost
	value, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	if err != nil {
		return "", reason(err)
	}
	if len(value) > maxValue {
		return "", fmt.Errorf("it has more than %d bytes", maxValue)
	}
	return string(value), nil
}

// reason is an error without the path, which the caller names.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// publicProblem warns of files that anybody can read or change.
func (c contents) publicProblem(dir string) []model.Problem {
	if len(c.open) == 0 {
		return nil
	}
	return []model.Problem{{Severity: model.SeverityWarning, File: filepath.Join(dir, c.open[0]), Rule: model.RuleSecret, Message: fmt.Sprintf(
		"can be read or changed by anybody on this machine, one of %s of that kind: chmod o-rwx %s", text.Plural(len(c.open), "file"), dir)}}
}
