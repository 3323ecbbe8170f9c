package gitsource

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/model"
)

// maxBehind bounds the files that are named for one object, as a commit may break or
// move all manifests at once. Of more than these it is said that they are anywhere.
const maxBehind = 100

// anywhere stands for any faulty file.
const anywhere = "*"

func bounded(files []string) []string {
	files = slices.Compact(slices.Sorted(slices.Values(files)))
	if len(files) > maxBehind || slices.Contains(files, anywhere) {
		return []string{anywhere}
	}
	return files
}

// suspects are the files of a step that may hold objects which cannot be read there.
type suspects struct {
	owners        model.Tenants
	before, after []manifest // all files, in order of path
	// faulty are the files that may hide objects; fresh are those of them that
	// may hold unknown objects and whose content came with this revision, by the
	// tenant whose those are.
	faulty map[string]bool
	fresh  map[string][]string
	// vacant are the files that define nothing, and why that may be a mistake.
	vacant map[string]string
	// unnamed are the files that may hold unknown objects, with names in them; mentions are
	// those by name, nil until one is asked for. lacks returns the names that are looked for.
	unnamed  []manifest
	mentions map[mention][]string
	lacks    func() map[string]bool
	// mistaken are the files with objects that cannot be used and came with this revision, which may
	// be what others of their kind are called by now.
	mistaken map[successors][]string
	// unread are the tenants whose folders are not read, because they have too much.
	unread map[string]bool
	// copies are the faulty files, by their content: an object that may be in one of them may be
	// in the others, wherever the file was moved or copied from.
	copies map[plumbing.Hash][]string
	// blobs are the contents of the files before; nil until one is asked for.
	blobs map[plumbing.Hash]bool
}

func newSuspects(tenants model.Tenants, before, after []manifest, lacks func() map[string]bool) suspects {
	return suspects{
		owners: tenants, before: before, after: after, lacks: lacks,
		faulty:   make(map[string]bool),
		fresh:    make(map[string][]string),
		vacant:   make(map[string]string),
		mistaken: make(map[successors][]string),
		unread:   make(map[string]bool),
		copies:   make(map[plumbing.Hash][]string),
	}
}

func (s *suspects) note(f manifest) {
	if f.vacant != "" {
		s.vacant[f.path] = f.vacant
	}
	if f.overShare {
		s.unread[f.path] = true
	}
	if f.hides() {
		s.faulty[f.path] = true
	}
	if f.hides() || f.hidden() {
		s.copies[f.blob] = append(s.copies[f.blob], f.path)
	}
	if f.mentions != "" {
		s.unnamed = append(s.unnamed, f)
	}
	if f.opaque && !s.knew(f.blob) {
		owner := s.owners.Owner(f.path)
		s.fresh[owner] = append(s.fresh[owner], f.path)
	}
}

// bound shortens the lists once all files are noted.
func (s *suspects) bound() {
	for owner, files := range s.fresh {
		s.fresh[owner] = bounded(files)
	}
	for blob, files := range s.copies {
		s.copies[blob] = bounded(files)
	}
}

// knew reports whether the revision before had a file of a content.
func (s *suspects) knew(blob plumbing.Hash) bool {
	if s.blobs == nil {
		s.blobs = make(map[plumbing.Hash]bool, len(s.before))
		for _, f := range s.before {
			s.blobs[f.blob] = true
		}
	}
	return s.blobs[blob]
}

// blobAt is the content of the file at a path, zero if there is none.
func blobAt(files []manifest, path string) plumbing.Hash {
	i, found := slices.BinarySearchFunc(files, path, func(m manifest, path string) int { return strings.Compare(m.path, path) })
	if !found {
		return plumbing.ZeroHash
	}
	return files[i].blob
}

// freshOf are the files that cannot be used as they are and may have what an object's file had: those
// that are new, and those that have its name. One that is known by name alone may belong to any tenant by now: the
// records name a tenant of before the restart.
func (s *suspects) freshOf(id model.Identity, p located) []string {
	if p.object != nil {
		return bounded(slices.Concat(s.fresh[p.owner()], s.mentioning(id, p.owner()), s.succeeding(id, p)))
	}
	all := slices.Concat(s.mentioning(id, ""), s.succeeding(id, p))
	for _, owner := range slices.Sorted(maps.Keys(s.fresh)) {
		all = append(all, s.fresh[owner]...)
	}
	return bounded(all)
}

// keepFromFaultyFiles holds the objects of files that cannot be read in whole, also
// when such a file moved.
func (a *assembler) keepFromFaultyFiles() {
	for id := range a.scope {
		p, was := a.prev.objects[id]
		if _, absent := a.prev.absent[id]; !was || absent || a.candidates[id] != nil {
			continue
		}
		if behind := a.suspectsOf(p); len(behind) > 0 {
			a.keepLastGood(id, behind...)
		}
	}
}

// suspectsOf returns the files of this revision that may hold an object: faulty ones that
// held it before, or that took the place of its folder, and all with the same
// content as one of them has now or had before; and those that held it and are vacant.
func (s *suspects) suspectsOf(p located) []string {
	if len(s.faulty)+len(s.vacant) == 0 {
		return nil
	}
	behind := s.unreadOf(p)
	for _, file := range p.suspects() {
		if s.vacant[file] != "" {
			behind = append(behind, file)
		}
		if file == anywhere {
			return s.anywhereOf(p.owner())
		}
		if owner := s.owners.Owner(file); s.unread[owner] {
			behind = append(behind, file, owner)
		}
		// What is not read of a tenant hides nothing of another's within its folder.
		hides := func(path string) bool { return s.faulty[path] && (path == file || !s.unread[path]) }
		if top, found := above(hides, file); found {
			behind = append(behind, file, top)
			behind = append(behind, s.ownCopies(p, blobAt(s.after, top))...)
		}
		behind = append(behind, s.ownCopies(p, blobAt(s.before, file))...)
	}
	return behind
}

// unreadOf are the tenants of whom nothing is read that may have an object known by name
// alone: whose it is, or whoever has its owner's folder now.
func (s *suspects) unreadOf(p located) []string {
	var owners []string
	for owner := range s.unread {
		if p.object == nil && (s.owners.At(p.owner()) == nil || within(owner, p.owner())) {
			owners = append(owners, owner)
		}
	}
	return owners
}

// anywhereOf is anywhere while a tenant has a faulty file.
func (s *suspects) anywhereOf(owner string) []string {
	for file := range s.faulty {
		if s.owners.Owner(file) == owner {
			return []string{anywhere}
		}
	}
	return nil
}

// ownCopies are the faulty files of a content that belong to the tenant whose p is:
// what another one cannot define is not in his files.
func (s *suspects) ownCopies(p located, blob plumbing.Hash) []string {
	return slices.DeleteFunc(slices.Clone(s.copies[blob]), func(file string) bool {
		return file != anywhere && s.owners.Owner(file) != p.owner()
	})
}

// above returns which path that is asked for is the file or a folder that it lies in.
func above(is func(path string) bool, file string) (string, bool) {
	for {
		if is(file) {
			return file, true
		}
		i := strings.LastIndexByte(file, '/')
		if i < 0 {
			return "", false
		}
		file = file[:i]
	}
}
