package inventory

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/model/must"
)

// tree is a machine in a folder: contents by path, or "-> target" for a link.
type tree map[string]string

func (files tree) host(t *testing.T) *Host {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		full := filepath.Join(root, path)
		must.Do(t, os.MkdirAll(filepath.Dir(full), 0o755))
		var err error
		if target, link := strings.CutPrefix(content, "-> "); link {
			err = os.Symlink(target, full)
		} else {
			err = os.WriteFile(full, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return &Host{
		Root:       root,
		Interfaces: func() ([]Interface, error) { return nil, nil },
		Serial:     func(string) (string, error) { return "", errors.New("no such disk") },
		Log:        slog.New(slog.DiscardHandler),
	}
}

func with(trees ...tree) tree {
	all := make(tree)
	for _, files := range trees {
		maps.Copy(all, files)
	}
	return all
}
