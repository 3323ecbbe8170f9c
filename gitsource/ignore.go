package gitsource

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// IgnoreFile is the name of the files whose patterns, in the syntax of gitignore(5), say
// what at and below their folders is no manifest.
const IgnoreFile = ".ingotignore"

// maxPatterns is how many patterns count for a file, those of the folders above first: each is
// compared with each file.
const maxPatterns = 500

// Ignore is what the ignore files say from the root of a repository down to one of its
// folders. The zero value ignores nothing.
type Ignore struct {
	patterns []gitignore.Pattern
	id       plumbing.Hash // of all that the ignore files say
}

// With returns what counts below dir, a path from the root of the repository, whose
// ignore file has this content.
func (g Ignore) With(dir string, content []byte) Ignore {
	domain := segments(dir)
	all := slices.Clone(g.patterns)
	id := plumbing.ComputeHash(plumbing.BlobObject, slices.Concat(g.id[:], []byte(dir+"\x00"), content))
	for line := range strings.SplitSeq(string(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if len(all) == maxPatterns {
			break
		}
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "[[:") { // path.Match has no named classes
			all = append(all, gitignore.ParsePattern(asMatched(line), domain))
		}
	}
	return Ignore{all, id}
}

// asMatched is a pattern as the matcher reads it. That follows path.Match, which negates a class of characters by ^ alone, and
// it takes a pattern of only ** for none.
func asMatched(pattern string) string {
	if body := strings.TrimPrefix(pattern, "!"); strings.TrimRight(body, " ") == "/**" {
		return strings.TrimSuffix(pattern, body) + "/*"
	}
	return negated.Replace(pattern)
}

var negated = strings.NewReplacer(`\\`, `\\`, `\[`, `\[`, "[!", "[^")

// Ignores reports whether a file or folder is left out, by its path from the root of the
// repository. What lies in a folder that is left out is left out too.
func (g Ignore) Ignores(file string, folder bool) bool {
	return len(g.patterns) > 0 && gitignore.NewMatcher(g.patterns).Match(segments(file), folder)
}

func segments(file string) []string {
	if file == "." || file == "" {
		return nil
	}
	return strings.Split(file, "/")
}

// heldPaths are the files that have objects in force, with the folders that they lie in. An
// ignore file does not take those away: no commit that names them did.
type heldPaths struct {
	objects objectsInForce
	paths   map[string]bool // nil until one is asked for
}

// newHeldPaths returns the files that may hold one of the objects.
func newHeldPaths(objects objectsInForce) *heldPaths { return &heldPaths{objects: objects} }

// has reports whether an object in force may be in a file, or in one below a folder.
func (h *heldPaths) has(file string) bool {
	if h == nil {
		return false
	}
	if h.paths == nil {
		h.paths = make(map[string]bool, len(h.objects))
		for _, p := range h.objects {
			h.add(p)
		}
	}
	return h.paths[file] || h.paths[anywhere]
}

func (h *heldPaths) add(p located) {
	for _, file := range p.suspects() {
		for ; file != "." && !h.paths[file]; file = path.Dir(file) {
			h.paths[file] = true
		}
	}
}

// ignoreBelow returns what is ignored below a folder whose ignore file is the entry, if
// it has one. What is no regular file, or too large, is refused where it stands.
func ignoreBelow(s *store, g Ignore, dir string, file entry) (Ignore, error) {
	if !file.mode.IsFile() || file.mode == filemode.Symlink {
		return g, nil
	}
	size, err := s.size(file.hash)
	if err != nil || size > maxManifest {
		return g, err
	}
	content, err := s.blob(file.hash)
	if errors.Is(err, errNoFile) {
		return g, nil
	}
	if err != nil {
		return g, err
	}
	return g.With(dir, content), nil
}

// ignoreAbove returns what the folders above dir say is ignored.
func ignoreAbove(s *store, root plumbing.Hash, dir string) (g Ignore, err error) {
	for at, below := ".", segments(dir); len(below) > 0; below = below[1:] {
		hash, err := folder(s, root, at)
		if err != nil {
			return g, err
		}
		tree, err := s.tree(hash)
		if err != nil {
			return g, err
		}
		if i := slices.IndexFunc(tree, func(e object.TreeEntry) bool { return e.Name == IgnoreFile }); i >= 0 {
			if g, err = ignoreBelow(s, g, at, entry{hash: tree[i].Hash, mode: tree[i].Mode}); err != nil {
				return g, err
			}
		}
		at = path.Join(at, below[0])
	}
	return g, nil
}
