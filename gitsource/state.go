package gitsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/model"
)

// stateVersion is the layout of the state file that this program writes.
const stateVersion = 1

// state is what a restart needs to know of the revision in force and cannot find
// in the repository again. It holds the content of what is in force beside the
// revision, so it does not depend on the object store. It may hold secrets, as
// the store does.
type state struct {
	Version int    `json:"version"`
	URL     string `json:"url"`
	Branch  string `json:"branch"`
	Path    string `json:"path"`

	// Head is the revision in force.
	Head      string   `json:"head"`
	Approvals []string `json:"approvals,omitempty"`
	// Rewritten is set while the revision in force is one that rewrote history.
	Rewritten *model.SourceState `json:"rewritten,omitempty"`
	Held      []heldObject       `json:"held,omitempty"`
	Blobs     map[string][]byte  `json:"blobs,omitempty"` // by hash
	Unread    []string           `json:"unread,omitempty"`
	Forgotten bool               `json:"forgotten,omitempty"`
}

// heldObject is an object in force that is not what the revision says.
type heldObject struct {
	Identity model.Identity `json:"identity"`
	Path     string         `json:"path"`
	Blob     string         `json:"blob"`
	Vanished bool           `json:"vanished,omitempty"`
}

// belongsTo reports whether the state is that of the same source.
func (s *state) belongsTo(url, branch, path string) bool {
	return s.Version == stateVersion && s.URL == url && s.Branch == branch && s.Path == path
}

// readState returns nil if there is none.
func readState(file string) (*state, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state of the source: %w", err)
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read state of the source %s: %w", file, err)
	}
	return &s, nil
}

// write replaces the state file as a whole, durably.
func (s *state) write(file string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write state of the source: %w", err)
	}
	if err := replaceFile(file, b); err != nil {
		return fmt.Errorf("write state of the source: %w", err)
	}
	return nil
}

func replaceFile(file string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// setForce notes what is held, with the content of each blob as contentOf gives
// it; a blob that cannot be had is left out, and its objects are lost by a restart.
func (s *state) setForce(f force, contentOf func(plumbing.Hash) ([]byte, error)) {
	s.Held, s.Blobs = nil, make(map[string][]byte)
	for id, p := range f.objects {
		if !p.held {
			continue
		}
		hash := p.blob.String()
		s.Held = append(s.Held, heldObject{Identity: id, Path: p.path, Blob: hash, Vanished: p.vanished})
		if _, ok := s.Blobs[hash]; ok {
			continue
		}
		if content, err := contentOf(p.blob); err == nil {
			s.Blobs[hash] = content
		}
	}
	slices.SortFunc(s.Held, func(a, b heldObject) int { return strings.Compare(a.Identity.String(), b.Identity.String()) })
	s.Unread = slices.Sorted(maps.Keys(f.unread))
	s.Forgotten = f.forgotten
}

// force returns what was held when the state was written. parse decodes a blob.
func (s *state) force(parse func(file string, content []byte) *decoded) force {
	f := force{
		objects:   make(map[model.Identity]placed),
		lost:      make(map[model.Identity]bool),
		paths:     make(map[string]bool),
		unread:    make(map[string]bool),
		forgotten: s.Forgotten,
	}
	for _, path := range s.Unread {
		f.unread[path] = true
	}
	files := make(map[heldObject]*decoded)
	for _, h := range s.Held {
		file := heldObject{Path: h.Path, Blob: h.Blob}
		if files[file] == nil {
			files[file] = parse(h.Path, s.Blobs[h.Blob])
		}
		i := slices.IndexFunc(files[file].objects, func(o model.Object) bool { return o.Identity() == h.Identity })
		if i < 0 {
			f.lost[h.Identity] = true
			f.unread[h.Path] = true
			continue
		}
		f.objects[h.Identity] = placed{
			object: files[file].objects[i], path: h.Path, blob: plumbing.NewHash(h.Blob), held: true, vanished: h.Vanished,
		}
	}
	return f
}
