package gitsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/gitsource/smallfile"
	"ingot/model"
	"ingot/model/fault"
)

// stateVersion is the number of the format of the state file. A file with another number is ignored.
const stateVersion = 1

// maxHeads is how many revisions a state file remembers.
const maxHeads = 100

// state spares a restart what it would have to fetch, and keeps the last good
// version of what Git no longer has in a good one. It is a cache: which revision was
// applied is a record, and kept elsewhere. It may hold secrets, as the store does.
type state struct {
	Version int `json:"version"`
	// Heads are the revisions that were in force, newest last.
	Heads     []model.Applied   `json:"heads"`
	Approvals []string          `json:"approvals,omitempty"`
	Held      []model.LastGood  `json:"held,omitempty"`
	Blobs     map[string][]byte `json:"blobs,omitempty"` // by hash
	// Verified is the newest revision that came into force with a signature.
	Verified *verified `json:"verified,omitempty"`
}

// verified is a revision whose signatures were verified when it came into force: it stays
// so when its keys expire or are taken away.
type verified struct {
	Head   model.Applied `json:"head"`
	Signer string        `json:"signer"`
	Tag    string        `json:"tag,omitempty"` // the hash of the annotated tag
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
	if s.Version != stateVersion {
		return nil, nil
	}
	return &s, nil
}

// write replaces the state file as a whole, durably.
func (s *state) write(file string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write state of the source: %w", err)
	}
	fault.Point(fault.BeforeState)
	if err := smallfile.Replace(file, b); err != nil {
		return fmt.Errorf("write state of the source: %w", err)
	}
	fault.Point(fault.AfterState)
	return nil
}

// head is the revision in force when the state was written.
func (s *state) head() model.Applied {
	if s == nil || len(s.Heads) == 0 {
		return model.Applied{}
	}
	return s.Heads[len(s.Heads)-1]
}

func (s *state) verified(a model.Applied) (verified, bool) {
	if s == nil || s.Verified == nil || s.Verified.Head != a {
		return verified{}, false
	}
	return *s.Verified, true
}

// setEffective notes what is held, with the content of each blob as contentOf gives
// it; of a blob that cannot be had a restart knows the names at most.
func (s *state) setEffective(f effective, contentOf func(plumbing.Hash) ([]byte, error)) {
	s.Held, s.Blobs = f.lastGood(), make(map[string][]byte)
	for _, h := range s.Held {
		if _, ok := s.Blobs[h.Blob]; ok {
			continue
		}
		if content, err := contentOf(plumbing.NewHash(h.Blob)); err == nil {
			s.Blobs[h.Blob] = content
		}
	}
}

// lastGood are the objects in force that are not what the revision says and whose content is known.
func (f effective) lastGood() []model.LastGood {
	var all []model.LastGood
	for id := range f.unsettled {
		if p := f.objects[id]; p.lastGood && p.object != nil {
			r := p.rarely()
			all = append(all, model.LastGood{Identity: id, Path: p.path, Blob: p.blob.String(), Since: r.since, Behind: r.behind})
		}
	}
	slices.SortFunc(all, func(a, b model.LastGood) int { return strings.Compare(a.Identity.String(), b.Identity.String()) })
	return all
}

// held returns what was held already when a revision was in force: nothing of one
// that the state does not remember, for that may have had newer versions. parse
// decodes a blob.
func (s *state) held(at model.Applied, parse func(file string, content []byte) *decoded) objectsInForce {
	out := make(objectsInForce)
	if s == nil {
		return out
	}
	later := make(map[model.Revision]bool)
	known := false
	for _, head := range slices.Backward(s.Heads) {
		if known = head == at; known {
			break
		}
		later[head.Revision()] = true
	}
	if !known {
		return out
	}
	delete(later, at.Revision())
	held := slices.DeleteFunc(slices.Clone(s.Held), func(h model.LastGood) bool { return later[h.Since] })
	return objectsOf(held, func(h model.LastGood) *decoded {
		if content, ok := s.Blobs[h.Blob]; ok {
			return parse(h.Path, content)
		}
		return nil
	})
}

// objectsOf are objects as they stand in what is read of their files, nil if that cannot be had.
func objectsOf(held []model.LastGood, read func(model.LastGood) *decoded) objectsInForce {
	out := make(objectsInForce)
	files := make(map[[2]string]*decoded)
	for _, h := range held {
		file := [2]string{h.Path, h.Blob}
		if _, known := files[file]; !known {
			files[file] = read(h)
		}
		if files[file] == nil {
			continue
		}
		i := slices.IndexFunc(files[file].objects, func(o model.Object) bool { return o.Identity() == h.Identity })
		if i >= 0 {
			out[h.Identity] = located{
				object: files[file].objects[i], path: h.Path, blob: plumbing.NewHash(h.Blob), lastGood: true, rare: &rarely{since: h.Since, behind: h.Behind},
			}
		}
	}
	return out
}
