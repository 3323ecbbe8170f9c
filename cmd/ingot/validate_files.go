package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ingot/gitsource"
)

// Limits of what is validated, those of a revision in Git.
const (
	maxManifest  = 1 << 20 // bytes of one file
	maxManifests = 100_000 // files
)

// manifestSearch finds the files to validate, in order and each once.
type manifestSearch struct {
	files   []string
	named   map[string]bool // those of files that are a path itself, not found in one
	refused []refusedPath
	ignored int                         // files and folders that ignore files leave out
	seen    map[string]bool             // by absolute path
	rules   map[string]gitsource.Ignore // by folder
}

// refusedPath is a folder that is not searched, with the reason.
type refusedPath struct{ path, why string }

// manifestFiles returns the files that paths name, without what ignore files leave out.
func manifestFiles(paths []string) (*manifestSearch, error) {
	found := &manifestSearch{named: make(map[string]bool), seen: make(map[string]bool), rules: make(map[string]gitsource.Ignore)}
	for _, at := range paths {
		if err := found.at(at); err != nil {
			return nil, err
		}
		if len(found.files) > maxManifests {
			return nil, fmt.Errorf("there are more than %d manifests: validate them by folder", maxManifests)
		}
	}
	return found, nil
}

func (m *manifestSearch) add(file string, named bool) {
	key := file
	if abs, err := filepath.Abs(file); err == nil && file != "-" {
		key = abs
	}
	if m.seen[key] {
		return
	}
	m.seen[key] = true
	m.files = append(m.files, file)
	m.named[file] = named
}

// at finds the file at path, or the manifests in the folder at path.
func (m *manifestSearch) at(path string) error {
	if path == "-" {
		m.add(path, true)
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s", path)
	case err != nil:
		return err
	}
	root, err := repositoryRoot(path, info.IsDir())
	if err != nil {
		return err
	}
	none := true
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			none = false
			m.refused = append(m.refused, refusedPath{at, unreadable(err)})
			return fs.SkipDir // nothing is in it, as far as we know
		}
		hidden := at != path && strings.HasPrefix(entry.Name(), ".")
		if !entry.IsDir() && (hidden || at != path && !isManifest(at)) {
			return nil
		}
		ignored, err := m.ignores(root, at, entry.IsDir())
		submodule := entry.IsDir() && at != path && !hidden && hasGit(at)
		none = none && !ignored && entry.IsDir() && !submodule
		switch {
		case err != nil:
			return err
		case ignored:
			m.ignored++
		case submodule:
			m.refused = append(m.refused, refusedPath{at, gitsource.IsSubmodule})
		case !entry.IsDir():
			m.add(filepath.Clean(at), at == path)
		}
		if entry.IsDir() && (hidden || ignored || submodule) {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && none {
		err = fmt.Errorf("%s has no manifests: no file in it ends in .yaml, .yml or .json", path)
	}
	return err
}

// repositoryRoot is the folder of the repository that path lies in; without one it is the
// folder at path, or that of the file. It is absolute.
func repositoryRoot(path string, isFolder bool) (string, error) {
	folder, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if !isFolder {
		folder = filepath.Dir(folder)
	}
	for at := folder; ; at = filepath.Dir(at) {
		if hasGit(at) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return folder, nil
		}
	}
}

// hasGit reports whether a folder is the root of a repository, or of a submodule.
func hasGit(folder string) bool {
	_, err := os.Lstat(filepath.Join(folder, ".git"))
	return err == nil
}

// ignores reports whether an ignore file leaves out what is at path.
func (m *manifestSearch) ignores(root, path string, folder bool) (bool, error) {
	path, err := filepath.Abs(path)
	if err != nil || path == root {
		return false, err
	}
	rules, err := m.rulesIn(root, filepath.Dir(path))
	if err != nil {
		return false, err
	}
	name, err := filepath.Rel(root, path)
	return err == nil && rules.Ignores(filepath.ToSlash(name), folder), err
}

// rulesIn are what the ignore files from root down to a folder in it say.
func (m *manifestSearch) rulesIn(root, folder string) (rules gitsource.Ignore, err error) {
	if known, ok := m.rules[folder]; ok {
		return known, nil
	}
	name, err := filepath.Rel(root, folder)
	if err != nil {
		return rules, err
	}
	if name != "." {
		if rules, err = m.rulesIn(root, filepath.Dir(folder)); err != nil {
			return rules, err
		}
	}
	file := filepath.Join(folder, gitsource.IgnoreFile)
	if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && info.Size() <= maxManifest {
		content, err := os.ReadFile(file)
		if err != nil {
			return rules, err
		}
		rules = rules.With(filepath.ToSlash(name), content)
	}
	m.rules[folder] = rules
	return rules, nil
}

func isManifest(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// notInGit says why a file is none that a revision can have as a manifest, "" for a regular one.
func notInGit(path string) string {
	info, err := os.Lstat(path)
	switch {
	case err != nil: // reading it says why
		return ""
	case info.Mode()&fs.ModeSymlink != 0:
		return gitsource.IsLink
	case !info.Mode().IsRegular():
		return "is no regular file, and Git holds no others: put the manifest itself here"
	}
	return ""
}

// errTooLarge is returned for a file that is larger than a manifest may be.
var errTooLarge = errors.New("too large for a manifest")

// readManifest reads a file, or in for the file "-".
func readManifest(file string, in io.Reader) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close() // read only: nothing is lost
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = errTooLarge
	}
	return data, err
}

// unreadable words an error of a file as a problem of that file, which need not be named again.
func unreadable(err error) string {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return "cannot be read: " + err.Error()
}

// displayName is how problems name a file: with slashes, as Git does.
func displayName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return filepath.ToSlash(file)
}
