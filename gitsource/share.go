package gitsource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"ingot/model"
)

// shareOf is the part of what is read of a revision that one tenant may have, a quarter:
// whoever has more delays nobody else.
const shareOf = 4

const theShare = ", which is this tenant's share"

// shares are what tenants have of a revision. A tenant that has more than its share, or
// what cannot be listed, is as if its folder could not be read.
type shares struct {
	tenants model.Tenants
	files   int   // that all may have
	bytes   int64 // that all may have
	found   map[string]int
	over    map[string]string // why, by the tenant's path
}

// bounded reports whether a tenant has a share. Who may define everything has none, nor
// has what lies below no path: it would be lost with its tenants' moved files.
func (s *shares) bounded(owner string) bool {
	t := s.tenants.At(owner)
	return t != nil && (!slices.Contains(t.Kinds, "*") || !slices.Contains(t.Namespaces, "*"))
}

// isOver reports whether a file's tenant has more than its share.
func (s *shares) isOver(file string) bool {
	return len(s.over) > 0 && s.over[s.tenants.Owner(file)] != ""
}

// exceed notes that a tenant has too much, and returns false if it has no share.
func (s *shares) exceed(owner, why string) bool {
	if !s.bounded(owner) {
		return false
	}
	if s.over[owner] == "" {
		s.over[owner] = why
	}
	return true
}

// exceedBelow is exceed for a folder that cannot be listed, with all tenants below it.
func (s *shares) exceedBelow(dir, why string) bool {
	owner := s.tenants.Owner(dir)
	elsewhere := func(t model.Tenant) bool { return t.Path != owner && !within(t.Path, dir) }
	below := slices.DeleteFunc(slices.Clone(s.tenants), elsewhere)
	free := func(t model.Tenant) bool { return !s.bounded(t.Path) }
	if owner == "" || slices.ContainsFunc(below, free) {
		return false
	}
	for _, t := range below {
		s.exceed(t.Path, why)
	}
	return true
}

// leads reports whether the folder of another tenant lies below a folder.
func (s *shares) leads(dir string) bool {
	return slices.ContainsFunc(s.tenants, func(t model.Tenant) bool { return t.Path != dir && within(t.Path, dir) })
}

// within reports whether a path is a folder or lies below it.
func within(path, dir string) bool {
	return dir == "." || path == dir || strings.HasPrefix(path, dir+"/")
}

// add counts a manifest, in all too, and reports whether it is within its tenant's share.
// What is not does not count for the limit of all.
func (s *shares) add(file string, all *int) bool {
	*all++
	if len(s.tenants) == 0 {
		return true
	}
	owner := s.tenants.Owner(file)
	s.found[owner]++
	if s.over[owner] == "" && s.found[owner] > s.files/shareOf {
		s.exceed(owner, fmt.Sprintf("more than %d manifests", s.files/shareOf)+theShare)
	}
	if s.over[owner] == "" {
		return true
	}
	*all -= s.found[owner]
	s.found[owner] = 0
	return false
}

// weigh finds the tenants whose manifests have more bytes than their share.
func (s *shares) weigh(entries []decodedEntry, sizeOf func(decodedEntry) (int64, error)) error {
	if len(s.tenants) == 0 {
		return nil
	}
	bytes := make(map[string]int64)
	for _, e := range entries {
		owner := s.tenants.Owner(e.path)
		if s.over[owner] != "" || !s.bounded(owner) {
			continue
		}
		n, err := sizeOf(e)
		if err != nil {
			return err
		}
		if bytes[owner] += n; bytes[owner] > s.bytes/shareOf {
			s.exceed(owner, fmt.Sprintf("manifests of more than %d bytes", s.bytes/shareOf)+theShare)
		}
	}
	return nil
}

// sizeOf is how many bytes would be read of an entry, which may be known.
func sizeOf(s *store, e entry, d *decoded) (int64, error) {
	if d != nil {
		return d.size, nil
	}
	if e.ignored || e.hidden || e.misnamed != "" || e.mode == filemode.Dir || e.mode == filemode.Submodule || e.mode == filemode.Symlink {
		return 0, nil
	}
	size, err := s.size(e.hash)
	if size > maxManifest {
		size = 0 // it is not read
	}
	return size, err
}

// unread stand for the folders of the tenants that are over their shares.
func (s *shares) unread(st *store, root plumbing.Hash) []manifest {
	var all []manifest
	for owner, why := range s.over {
		d := refused(owner, model.SeverityError,
			"holds "+why+": none of it is read, and what it had before stays in force")
		d.overShare, d.opaque = true, false // whose objects it hides is known
		tree, err := folder(st, root, owner)
		if err != nil {
			tree = root
		}
		all = append(all, manifest{owner, tree, d})
	}
	return all
}
