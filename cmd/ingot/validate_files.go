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
	ignored int // files and folders that ignore files leave out
	seen    map[string]bool
	rules   map[string]gitsource.Ignore // by folder
}

// manifestFiles returns the files that paths name, without what ignore files leave out.
func manifestFiles(paths []string) (*manifestSearch, error) {
	found := &manifestSearch{seen: make(map[string]bool), rules: make(map[string]gitsource.Ignore)}
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

func (m *manifestSearch) add(file string) {
	if !m.seen[file] {
		m.seen[file] = true
		m.files = append(m.files, file)
	}
}

// at finds the file at path, or the manifests in the folder at path.
func (m *manifestSearch) at(path string) error {
	if path == "-" {
		m.add(path)
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
			return err
		}
		hidden := at != path && strings.HasPrefix(entry.Name(), ".")
		if !entry.IsDir() && (hidden || at != path && !isManifest(at)) {
			return nil
		}
		ignored, err := m.ignores(root, at, entry.IsDir())
		none = none && !ignored && entry.IsDir()
		switch {
		case err != nil:
			return err
		case ignored:
			m.ignored++
		case !entry.IsDir():
			m.add(filepath.Clean(at))
		}
		if entry.IsDir() && (hidden || ignored) {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && none {
		err = fmt.Errorf("%s holds no manifests: no file of it ends in .yaml, .yml or .json", path)
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
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return folder, nil
		}
	}
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

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

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
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", displayName(file), err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%s has more than %d bytes, which is all a manifest may have: split it", displayName(file), maxManifest)
	}
	return data, nil
}

// displayName is how problems name a file: with slashes, as Git does.
func displayName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return filepath.ToSlash(file)
}
