package gitsource

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxBehind bounds the files that are named for one object, as a commit may break or
// move all manifests at once. Of more than these it is said that they are anywhere.
const maxBehind = 100

// anywhere stands for any faulty file.
const anywhere = "*"

// bounded returns the files in order, each once.
func bounded(files []string) []string {
	files = slices.Compact(slices.Sorted(slices.Values(files)))
	if len(files) > maxBehind || slices.Contains(files, anywhere) {
		return []string{anywhere}
	}
	return files
}

// keepFromFaultyFiles holds the objects of files that cannot be read in whole, also
// when such a file moved.
func (a *assembler) keepFromFaultyFiles() {
	for id, p := range a.prev.objects.all() {
		if _, absent := a.prev.absent[id]; absent || a.candidates[id] != nil {
			continue
		}
		if behind := a.suspectsOf(p); len(behind) > 0 {
			a.keepLastGood(id, behind...)
		}
	}
}

// suspectsOf returns the faulty files of this revision that may hold an object: those
// that held it before, or that took the place of its folder, and all with the same
// content as one of them has now or had before.
func (a *assembler) suspectsOf(p located) []string {
	if len(a.faulty) == 0 {
		return nil
	}
	behind := a.unreadOf(p)
	for _, file := range p.suspects() {
		if file == anywhere {
			return a.anywhereOf(p.owner())
		}
		if owner := a.tenants.Owner(file); a.unread[owner] {
			behind = append(behind, file, owner)
		}
		// What is not read of a tenant hides nothing of another's within its folder.
		hides := func(path string) bool { return a.faulty[path] && (path == file || !a.unread[path]) }
		if top, found := above(hides, file); found {
			behind = append(behind, file, top)
			behind = append(behind, a.ownCopies(p, a.effective.blobAt(top))...)
		}
		behind = append(behind, a.ownCopies(p, a.prev.blobAt(file))...)
	}
	return behind
}

// unreadOf are the tenants of whom nothing is read that may have an object known by name
// alone: whose it is, or whoever has its owner's folder now.
func (a *assembler) unreadOf(p located) []string {
	var owners []string
	for owner := range a.unread {
		if p.object == nil && (a.tenants.At(p.owner()) == nil || within(owner, p.owner())) {
			owners = append(owners, owner)
		}
	}
	return owners
}

// anywhereOf is anywhere while a tenant has a faulty file.
func (a *assembler) anywhereOf(owner string) []string {
	for file := range a.faulty {
		if a.tenants.Owner(file) == owner {
			return []string{anywhere}
		}
	}
	return nil
}

// ownCopies are the faulty files of a content that belong to the tenant whose p is:
// what another one cannot define is not in his files.
func (a *assembler) ownCopies(p located, blob plumbing.Hash) []string {
	return slices.DeleteFunc(slices.Clone(a.copies[blob]), func(file string) bool {
		return file != anywhere && a.tenants.Owner(file) != p.owner()
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
