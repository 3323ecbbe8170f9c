package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Limits of what is validated, those of a revision in Git.
const (
	maxManifest  = 1 << 20 // bytes of one file
	maxManifests = 100_000 // files
)

// manifestFiles returns the files that paths name, in order and each once.
func manifestFiles(paths []string) ([]string, error) {
	var files []string
	seen := make(map[string]bool)
	for _, path := range paths {
		found, err := manifestsAt(path)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if !seen[file] {
				seen[file] = true
				files = append(files, file)
			}
		}
		if len(files) > maxManifests {
			return nil, fmt.Errorf("there are more than %d manifests: validate them by folder", maxManifests)
		}
	}
	return files, nil
}

// manifestsAt returns the file at path, or the manifests in the folder at path.
func manifestsAt(path string) ([]string, error) {
	if path == "-" {
		return []string{"-"}, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s", path)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{filepath.Clean(path)}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		hidden := at != path && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case !hidden && !entry.IsDir() && isManifest(at):
			files = append(files, filepath.Clean(at))
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s holds no manifests: no file of it ends in .yaml, .yml or .json", path)
	}
	return files, err
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
