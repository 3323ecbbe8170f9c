package gitsource

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

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
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			all = append(all, gitignore.ParsePattern(asMatched(line), domain))
		}
	}
	return Ignore{all, id}
}

// asMatched is a pattern as the matcher reads it. That follows path.Match, whose classes of characters are not those
// of gitignore(5), and it takes a pattern of only ** for none.
func asMatched(pattern string) string {
	if body := strings.TrimPrefix(pattern, "!"); strings.TrimRight(body, " ") == "/**" {
		return strings.TrimSuffix(pattern, body) + "/*"
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			b.WriteString(pattern[i : i+2])
			i++
		case c == '[':
			class, size := asMatchedClass(pattern[i:])
			b.WriteString(class)
			i += size - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// namedClasses are the classes of characters that have a name, as path.Match has them; without the slash, which
// no class matches.
var namedClasses = map[string]string{
	"alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \t", "cntrl": "\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~",
	"lower": "a-z", "print": " -~", "punct": "!-.:-@\\[-`{-~", "space": "\t-\r ", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
}

// noMatch is a pattern that matches nothing.
const noMatch = "["

// asMatchedClass is the class of characters that a pattern begins with, as path.Match has it, and how long it is in
// the pattern. What git takes for wrong matches nothing, and it is all that is left of the pattern.
func asMatchedClass(pattern string) (class string, size int) {
	var b strings.Builder
	b.WriteByte('[')
	at := 1
	if strings.HasPrefix(pattern[at:], "!") || strings.HasPrefix(pattern[at:], "^") {
		b.WriteByte('^')
		at++
	}
	for first := at; at < len(pattern) && (at == first || pattern[at] != ']'); {
		item, size := namedClass(pattern[at:])
		if size == 0 {
			item, size = characters(pattern[at:])
		}
		if item == "" {
			return noMatch, len(pattern)
		}
		b.WriteString(item)
		at += size
	}
	if at >= len(pattern) {
		return noMatch, len(pattern)
	}
	return b.String() + "]", at + 1
}

// namedClass is the named class that an item of a class of characters begins with, "" for a name that there is not;
// size is 0 if it is none.
func namedClass(item string) (class string, size int) {
	name, ok := strings.CutPrefix(item, "[:")
	end := strings.IndexByte(name, ']')
	if !ok || end < 1 || name[end-1] != ':' {
		return "", 0
	}
	return namedClasses[name[:end-1]], len("[:") + end + 1
}

// characters are the character, or the range of some, that an item of a class of characters begins with, "" if it
// is cut off.
func characters(item string) (class string, size int) {
	class, size = character(item)
	if rest := item[size:]; class != "" && len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
		last, more := character(rest[1:])
		if last == "" {
			return "", 0
		}
		return class + class + "-" + last, size + 1 + more // the first matches, even if the last is before it
	}
	return class, size
}

// character is the first character of a text that is not empty, which a backslash may precede; "" if nothing follows on that.
func character(text string) (class string, size int) {
	if text[0] == '\\' {
		if text = text[1:]; text == "" {
			return "", 0
		}
		size = 1
	}
	_, n := utf8.DecodeRuneInString(text)
	return `\` + text[:n], size + n
}

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
