package gitsource

import (
	"regexp"
	"slices"
	"strings"

	"ingot/model"
)

// maxMentions bounds the names that are looked for in one file.
const maxMentions = 1000

// nameField finds what looks like a name, in YAML of any style, or what may have become of it.
var nameField = regexp.MustCompile(`(?i)\bname["']?[ \t]*:[ \t]*[\["']*([a-z0-9][a-z0-9.-]*)`)

// ownWord is what manifests of the kinds that servers depend on do not go without.
var ownWord = regexp.MustCompile(`(?i)server|` + regexp.QuoteMeta(model.Group))

// mentionsOf are the names that stand in a file that cannot be read, each once and in a line of its
// own: of objects that it may define, among others.
func mentionsOf(content []byte) string {
	if !ownWord.Match(content) {
		return ""
	}
	var names []string
	for _, m := range nameField.FindAllSubmatch(content, maxMentions) {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

type mention struct{ name, tenant string }

// findMentions finds the files that cannot be read and have a name in them that is of consequence: of
// an object that the revision lacks, or that was removed before.
func (s *suspects) findMentions() map[mention][]string {
	found := make(map[mention][]string)
	if len(s.unnamed) == 0 {
		return found
	}
	lacking := s.lacks()
	for _, f := range s.unnamed {
		owner := s.owners.Owner(f.path)
		for name := range strings.SplitSeq(f.mentions, "\n") {
			if lacking[name] {
				found[mention{name, owner}] = more(found[mention{name, owner}], f.path)
			}
		}
	}
	return found
}

// lacks returns the names of the objects that the revision lacks or that were removed before.
func (a *assembler) lacks() map[string]bool {
	names := make(map[string]bool)
	lack := func(id model.Identity) {
		if depended(id.Kind) && a.candidates[id] == nil {
			names[id.Name] = true
		}
	}
	for id := range a.scope {
		if _, was := a.prev.objects[id]; was {
			lack(id)
		}
	}
	for id := range a.prev.removed {
		lack(id)
	}
	return names
}

// more is a list of files with another one, as far as it is of use.
func more(files []string, file string) []string {
	if len(files) > maxBehind {
		return files // see bounded
	}
	return append(files, file)
}

// mentioning are the files that cannot be read and in which an object of a tenant may stand, for its
// name does; "" is anybody's.
func (s *suspects) mentioning(id model.Identity, tenant string) []string {
	if s.mentions == nil {
		s.mentions = s.findMentions()
	}
	if !depended(id.Kind) || len(s.mentions) == 0 {
		return nil
	}
	files := s.mentions[mention{id.Name, tenant}]
	for i := range s.owners {
		if tenant == "" {
			files = append(slices.Clip(files), s.mentions[mention{id.Name, s.owners[i].Path}]...)
		}
	}
	return files
}

// depended reports whether a server's user loses something once an object of a kind is removed.
func depended(kind model.Kind) bool { return protected(kind) || kind == model.KindServerReadinessRule }

// holdMentioned has what was removed before count as quarantined while it may stand in a file again
// that cannot be read.
func (a *assembler) holdMentioned() {
	if len(a.unnamed) == 0 {
		return
	}
	for id, all := range a.prev.removed {
		if a.settled(id) || a.candidates[id] != nil {
			continue
		}
		for _, r := range all {
			if len(a.mentioning(id, r.Tenant)) > 0 {
				a.quarantined[id] = append(a.quarantined[id], r.Tenant)
			}
		}
	}
}

// successors are what an object may be called by now, or who may have its name.
type successors struct {
	kind              model.Kind
	namespace, tenant string
}

// noteMistaken notes a file in which an object cannot be used that was not in force. Had its file no
// mistake, what vanished with the same revision might go on by that name.
func (s *suspects) noteMistaken(id model.Identity, owner, file string) {
	if !depended(id.Kind) || s.knew(blobAt(s.after, file)) {
		return
	}
	of := successors{id.Kind, id.Namespace, owner}
	s.mistaken[of] = more(s.mistaken[of], file)
}

// succeeding are the files in which what an object is called by now may stand, with a mistake.
func (s *suspects) succeeding(id model.Identity, p located) []string {
	if p.object != nil {
		return s.mistaken[successors{id.Kind, id.Namespace, p.owner()}]
	}
	var files []string
	for of, all := range s.mistaken {
		if of.kind == id.Kind && of.namespace == id.Namespace {
			files = append(files, all...)
		}
	}
	return files
}
