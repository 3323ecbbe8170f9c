package gitsource

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ingot/model"
)

const (
	maxManifest  = maxBlob
	maxManifests = 100_000 // files
	maxFolders   = 50      // one within the other
	// maxRead is how many bytes all manifests together may have.
	maxRead = 256 << 20
)

// Why a file is refused without being decoded, in the words of its problem.
const (
	IsSubmodule = "is a submodule, which is not followed: put the manifests into this repository"
	IsLink      = "is a symbolic link, which is not followed: put the manifest itself here"
	IsTooLarge  = "is larger than 1 MiB, which is all that a manifest may have: split it"
	IsPointer   = "is a pointer of Git LFS, whose content is not fetched: commit the manifest itself"
	isTooDeep   = "is in folders whose names, with its own, have more than 1024 bytes together: shorten them"
	isNoFile    = "is another folder or a commit under the name of a file, which Git makes of no file: remove it"
	hasSlash    = "is an entry of its folder whose name has a slash, which Git makes of no file: remove it"
)

// Why a file that defined objects defines nothing now.
const (
	isBlank  = "is empty"
	isHidden = "is hidden, because a name in its path begins with a dot"
	isFolder = "is a folder, and was a file"
)

// entry is one entry of the tree that concerns us.
type entry struct {
	path string
	hash plumbing.Hash
	mode filemode.FileMode
	// ignored is set when an ignore file leaves it out, hidden when its name does, though objects of it
	// are in force.
	ignored, hidden bool
	// misnamed is why its name is not looked below or into, "" for most.
	misnamed string
}

// maxPath is how long a path may be, in bytes: each file has its own.
const maxPath = 1024

// misnamed returns what is wrong with a name in a folder, and a path to call it by. One with a
// slash cannot be checked out, but servers take it: "x/../../ops/y.yaml" would be a file of
// another folder, that of another tenant.
func misnamed(dir, name string) (at, why string) {
	switch {
	case strings.Contains(name, "/"):
		name, why = url.PathEscape(name), hasSlash
	case len(dir)+1+len(name) > maxPath:
		why = isTooDeep
	default:
		return path.Join(dir, name), ""
	}
	return path.Join(dir, shorten(name)), why
}

// manifest is one file of a revision, decoded.
type manifest struct {
	path string
	blob plumbing.Hash
	*decoded
}

// decoded is what one blob holds. It is shared between revisions and not changed.
type decoded struct {
	objects  []model.Object
	refused  bool // some of them, because their tenant may not define them
	problems []model.Problem
	// opaque is set when the blob may define objects that nobody can name.
	opaque bool
	// mentions are the names in such a blob, see mentionsOf.
	mentions string
	// vacant is why the file defines nothing though it may have before, "" for most.
	vacant string
	// foreign is set when the blob is clearly something else than manifests.
	foreign bool
	size    int64 // bytes that were read
	// dataKey is what SOPS encrypted its secrets with, see model.Meta.
	dataKey string
	// overShare is set when it stands for all files of a tenant that has too much.
	overShare bool
}

func (d *decoded) faulty() bool { return model.HasErrors(d.problems) }

// hidden reports whether the file is one that is not read, and holds what another file had.
func (m manifest) hidden() bool { return m.vacant == isHidden }

// hides reports whether objects may be in the file that cannot be read: it is wrong, or
// a submodule or a link where a folder may have been.
func (m manifest) hides() bool { return m.faulty() || !isManifest(m.path) }

func isError(p model.Problem) bool { return p.Severity == model.SeverityError }

var (
	errPathMissing      = errors.New("path is missing")
	errTooManyManifests = fmt.Errorf("more than %d manifests", maxManifests)
	errTooMuchToRead    = fmt.Errorf("manifests of more than %d bytes together", maxRead)
)

// reader reads revisions out of a store and keeps what it read for the next one:
// a folder whose hash is the same is not listed again, a blob at the same path
// not decoded again, so that a file that did not change is the same *decoded in both.
type reader struct {
	decode  func(file string, data []byte) ([]model.Object, []model.Problem)
	count   func() // called for each blob that is decoded
	most    int64  // bytes that are read at most; 0 is maxRead
	files   int    // manifests that are read at most; 0 is maxManifests
	tenants model.Tenants

	folders map[folderKey][]entry
	last    []decodedEntry // of the revision that was read last, in order of path
}

type folderKey struct {
	path   string
	hash   plumbing.Hash
	ignore plumbing.Hash // what the folders above say is ignored
}

type decodedEntry struct {
	entry
	*decoded
}

func (e decodedEntry) comparePath(f decodedEntry) int { return strings.Compare(e.path, f.path) }

// known finds what was decoded already, of entries that are asked for in order of path.
type known []decodedEntry

// of returns what an entry holds, nil if that is not known.
func (k *known) of(e entry) *decoded {
	left := *k
	for len(left) > 0 && left[0].path < e.path {
		left = left[1:]
	}
	*k = left
	for _, l := range left {
		if l.path != e.path {
			break
		}
		if l.entry == e {
			return l.decoded
		}
	}
	return nil
}

// read returns the manifests below dir in a tree, in order of path. What is ignored, or is
// something else than manifests, is among them only if objects in force may be in it. It
// fails with errPathMissing, errTooManyManifests, errTooMuchToRead, errTreeTooLarge,
// errTreeMalformed or errNotReadable.
func (r *reader) read(s *store, root plumbing.Hash, dir string, before effective) ([]manifest, error) {
	held := newHeldPaths(before.objects)
	top, err := folder(s, root, dir)
	if err != nil {
		return nil, err
	}
	shares := &shares{
		tenants: r.tenants, files: cmp.Or(r.files, maxManifests), bytes: cmp.Or(r.most, maxRead),
		found: make(map[string]int), over: make(map[string]string),
	}
	ignore, err := ignoreAbove(s, root, dir)
	if err != nil {
		return nil, err
	}
	l := lister{
		store: s, shares: shares, held: held, old: r.folders, new: make(map[folderKey][]entry, len(r.folders)), barren: make(map[plumbing.Hash]bool),
		listed: make([]decodedEntry, 0, len(r.last)+spareEntries),
	}
	if err := l.list(entry{path: dir, hash: top, ignored: ignore.Ignores(dir, true)}, ignore, 0); err != nil {
		return nil, err
	}
	if l.found > shares.files {
		return nil, errTooManyManifests
	}
	now := l.withMoved(before.files)
	seen := known(r.last)
	for i := range now {
		now[i].decoded = seen.of(now[i].entry)
	}
	if err := shares.weigh(now, func(e decodedEntry) (int64, error) { return sizeOf(s, e.entry, e.decoded) }); err != nil {
		return nil, err
	}
	if len(shares.over) > 0 {
		now = slices.DeleteFunc(now, func(e decodedEntry) bool { return shares.isOver(e.path) })
	}
	manifests := append(make([]manifest, 0, len(now)), shares.unread(s, root)...)
	var size int64
	for i := range now {
		e := &now[i]
		if e.decoded == nil {
			if e.decoded, err = r.open(s, e.entry); err != nil {
				return nil, err
			}
		}
		if size += e.size; size > shares.bytes {
			return nil, errTooMuchToRead
		}
		if e.foreign && !held.has(e.path) {
			continue
		}
		manifests = append(manifests, manifest{e.path, e.hash, e.decoded})
	}
	r.folders, r.last = l.new, now
	return inOrder(manifests), nil
}

// spareEntries is for how many more entries than the revision before has there is room from
// the start.
const spareEntries = 256

// forgetFaulty has the files that are wrong decoded again, and reports whether there are any.
func (r *reader) forgetFaulty() bool {
	n := len(r.last)
	r.last = slices.DeleteFunc(r.last, func(e decodedEntry) bool { return e.faulty() })
	return len(r.last) < n
}

func inOrder(files []manifest) []manifest {
	return sorted(files, func(a, b manifest) int { return strings.Compare(a.path, b.path) })
}

// sorted returns a list in its order, the very same one if it is so already, as what Git lists
// is as good as always.
func sorted[E any](list []E, compare func(a, b E) int) []E {
	if slices.IsSortedFunc(list, compare) {
		return list
	}
	return slices.SortedStableFunc(slices.Values(list), compare)
}

func (r *reader) open(s *store, e entry) (*decoded, error) {
	if e.misnamed != "" {
		return refused(e.path, model.SeverityError, e.misnamed), nil
	}
	switch {
	case e.hidden:
		return &decoded{vacant: isHidden}, nil
	case e.mode == filemode.Dir:
		return &decoded{vacant: isFolder}, nil
	case e.ignored:
		d := refused(e.path, model.SeverityError, "is left out by "+IgnoreFile+", but what it defined is in force and stays so: "+
			"delete the file to remove its objects, or have it read again")
		d.opaque = false // only what is known to be in it
		return d, nil
	}
	switch e.mode {
	case filemode.Submodule:
		return refused(e.path, model.SeverityError, IsSubmodule), nil
	case filemode.Symlink:
		if !isManifest(e.path) {
			return refused(e.path, model.SeverityWarning, "is a symbolic link, which is not followed"), nil
		}
		return refused(e.path, model.SeverityError, IsLink), nil
	default:
	}
	size, err := s.size(e.hash)
	if err != nil {
		return nil, err
	}
	if size > maxManifest {
		return refused(e.path, model.SeverityError, IsTooLarge), nil
	}
	content, err := s.blob(e.hash)
	if errors.Is(err, errNoFile) {
		return refused(e.path, model.SeverityError, isNoFile), nil
	}
	if err != nil {
		return nil, err
	}
	d := r.parse(e.path, content)
	d.size = size
	return d, nil
}

// lfsPointer begins every pointer of Git LFS, see its specification.
var lfsPointer = []byte("version https://git-lfs.github.com/spec/")

// PointsToLFS reports whether the content of a file is a pointer of Git LFS.
func PointsToLFS(content []byte) bool { return bytes.HasPrefix(content, lfsPointer) }

func (r *reader) parse(file string, content []byte) *decoded {
	if PointsToLFS(content) {
		return refused(file, model.SeverityError, IsPointer)
	}
	r.count()
	objects, problems := r.decode(file, content)
	var dataKey string
	refused := false
	for _, o := range objects {
		if m := o.Metadata(); m.Refused == "" {
			dataKey = cmp.Or(dataKey, m.DataKey)
		} else {
			refused = true
		}
	}
	d := &decoded{
		objects: objects, refused: refused, problems: fewer(problems), dataKey: dataKey, opaque: slices.ContainsFunc(problems, isNameless) && likeManifest(content),
		foreign: len(objects) == 0 && model.Foreign(file, content),
	}
	if d.opaque {
		d.mentions = mentionsOf(content)
	}
	if len(objects)+len(problems) == 0 {
		d.vacant = isBlank
	}
	return d
}

// maxProblems is how many problems of one file are kept, but for what says of an object that it
// is wrong. Of 25,000 files with 200 each nobody reads all, and they take gigabytes.
const maxProblems = 20

// fewer are the first problems of a file, the first error of each other object, and how many more
// there are.
func fewer(problems []model.Problem) []model.Problem {
	if len(problems) <= maxProblems {
		return problems
	}
	kept := slices.Clone(problems[:maxProblems])
	told := make(map[string]bool)
	for i, p := range problems {
		switch isNew := isError(p) && !told[p.Object]; {
		case isNew && i >= maxProblems:
			kept = append(kept, p)
			fallthrough
		case isNew:
			told[p.Object] = true
		}
	}
	last := kept[len(kept)-1]
	if n := len(problems) - len(kept); n > 0 {
		kept = append(kept, model.Problem{
			Severity: model.SeverityWarning, File: last.File, Line: last.Line, Message: fmt.Sprintf("has %d more problems, which ingot validate shows", n),
		})
	}
	return slices.Clip(kept)
}

// isNameless reports whether a problem is an error that belongs to nothing known by
// name.
func isNameless(p model.Problem) bool { return isError(p) && p.Object == "" }

// likeManifest reports whether a file that cannot be read looks as if it were to be
// a manifest: it has a word that none goes without, or is no text.
func likeManifest(content []byte) bool {
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return true
	}
	lower := bytes.ToLower(content)
	return slices.ContainsFunc([]string{"kind", "apiversion", "metadata", "spec"}, func(word string) bool {
		return bytes.Contains(lower, []byte(word))
	})
}

func refused(file string, severity model.Severity, why string) *decoded {
	return &decoded{problems: []model.Problem{{Severity: severity, File: file, Message: why}}, opaque: severity == model.SeverityError}
}

// missingFolder is errPathMissing with the folders that are there.
type missingFolder struct{ there []string }

// Error implements error.
func (m *missingFolder) Error() string {
	const shown = 10
	switch n := len(m.there); {
	case n == 0:
		return "there are no folders"
	case n > shown:
		return fmt.Sprintf("there are %s and %d more", strings.Join(m.there[:shown], ", "), n-shown)
	}
	return "there are only " + strings.Join(m.there, ", ")
}

// Is makes it errPathMissing.
func (m *missingFolder) Is(target error) bool { return target == errPathMissing }

func foldersOf(entries []object.TreeEntry) (names []string) {
	for _, e := range entries {
		if e.Mode == filemode.Dir && len(names) < maxManifests {
			names = append(names, strings.Trim(fmt.Sprintf("%.80q", e.Name), `"`))
		}
	}
	return names
}

// folder finds the tree of dir below root; dir "." is root itself.
func folder(s *store, root plumbing.Hash, dir string) (plumbing.Hash, error) {
	if dir == "." {
		return root, nil
	}
	at := root
	for name := range strings.SplitSeq(dir, "/") {
		entries, err := s.tree(at)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		i := slices.IndexFunc(entries, func(e object.TreeEntry) bool { return e.Name == name && e.Mode == filemode.Dir })
		if i < 0 {
			return plumbing.ZeroHash, &missingFolder{foldersOf(entries)}
		}
		at = entries[i].Hash
	}
	return at, nil
}

// lister lists folders, those it knows from the last revision without reading.
type lister struct {
	store    *store
	shares   *shares
	held     *heldPaths
	old, new map[folderKey][]entry
	listed   []decodedEntry // that concern us, none decoded yet
	hidden   []entry        // that are not in it
	found    int
	skipped  int // folders and files that are ignored, or of tenants that are over their share
	// barren are the folders without entries that concern us, by content: one that
	// holds another ten times, and so on, is listed once.
	barren map[plumbing.Hash]bool
}

// list lists all entries below a folder that concern us.
func (l *lister) list(dir entry, ignore Ignore, depth int) error {
	switch {
	case l.shares.isOver(dir.path) && !l.shares.leads(dir.path):
		l.skipped++
		return nil
	case depth > maxFolders && l.shares.exceedBelow(dir.path, fmt.Sprintf("more than %d folders in one another", maxFolders)+theShare):
		l.skipped++
		return nil
	case depth > maxFolders || l.found > l.shares.files:
		return errTooManyManifests
	case l.barren[dir.hash]:
		return nil
	}
	skipped, listed := l.skipped, len(l.listed)
	own, ignore, err := l.own(dir, ignore)
	if err != nil {
		return err
	}
	for _, e := range own {
		e.ignored, e.hidden = e.ignored || dir.ignored, e.hidden || dir.hidden
		switch held := l.held.has(e.path); {
		case held || !e.ignored && !e.hidden:
		case e.ignored:
			l.skipped++
			continue
		default:
			l.hidden = append(l.hidden, e)
			continue
		}
		if err := l.entry(e, ignore, depth); err != nil {
			return err
		}
	}
	if len(l.listed) == listed && l.skipped == skipped {
		l.barren[dir.hash] = true
	}
	return nil
}

// entry lists an entry of a folder, or those below it.
func (l *lister) entry(e entry, ignore Ignore, depth int) error {
	switch {
	case e.mode == filemode.Dir && e.misnamed == "":
		if isManifest(e.path) && l.held.has(e.path) { // it may have been a file
			l.listed = append(l.listed, decodedEntry{entry: e})
		}
		return l.list(e, ignore, depth+1)
	case isIgnoreFile(e) && e.mode.IsFile() && e.mode != filemode.Symlink:
	case !l.shares.add(e.path, &l.found):
		l.skipped++
	default:
		l.listed = append(l.listed, decodedEntry{entry: e})
	}
	return nil
}

func isIgnoreFile(e entry) bool {
	return strings.HasSuffix(e.path, IgnoreFile) && path.Base(e.path) == IgnoreFile
}

// own returns a folder's own entries, and what is ignored in it. One of a tenant that cannot be
// listed has none.
func (l *lister) own(dir entry, above Ignore) (own []entry, ignore Ignore, err error) {
	key := folderKey{dir.path, dir.hash, above.id}
	own, known := l.old[key]
	if !known {
		own, err = l.children(dir.path, dir.hash)
		if l.refusesBelow(dir.path, err) {
			l.skipped++
			return nil, above, nil
		}
		if err != nil {
			return nil, above, err
		}
	}
	ignore = above
	if i := slices.IndexFunc(own, isIgnoreFile); i >= 0 {
		if ignore, err = ignoreBelow(l.store, above, dir.path, own[i]); err != nil {
			return nil, above, err
		}
	}
	if !known {
		for i, e := range own {
			own[i].ignored = ignore.Ignores(e.path, e.mode == filemode.Dir)
		}
	}
	l.new[key] = own
	return own, ignore, nil
}

// refusesBelow reports whether nothing is read of the tenants below a folder, because it cannot be listed.
func (l *lister) refusesBelow(dir string, err error) bool {
	switch {
	case errors.Is(err, errTreeTooLarge):
		return l.shares.exceedBelow(dir, fmt.Sprintf("a folder whose list has more than %d bytes", maxTree)+theShare)
	case errors.Is(err, errTreeMalformed):
		return l.shares.exceedBelow(dir, "a folder whose list is not as Git writes it")
	}
	return false
}

// withMoved returns the listed entries in order of path, with the hidden files that have the content of a
// manifest which is not where it was: moving it there removed nothing.
func (l *lister) withMoved(before []manifest) []decodedEntry {
	listed := sorted(l.listed, decodedEntry.comparePath)
	moved := make(map[plumbing.Hash]bool)
	for at, i := listed, 0; i < len(before) && len(l.hidden) > 0; i++ {
		for len(at) > 0 && at[0].path < before[i].path {
			at = at[1:]
		}
		if f := before[i]; (len(at) == 0 || at[0].path != f.path) && (f.vacant == "" || f.hidden()) {
			moved[f.blob] = true
		}
	}
	for n := 0; len(moved) > 0 && len(l.hidden) > 0 && n < maxHidden; n++ {
		e := l.hidden[len(l.hidden)-1]
		l.hidden = l.hidden[:len(l.hidden)-1]
		if moved[e.hash] {
			listed = append(listed, decodedEntry{entry: e})
		}
		if e.mode != filemode.Dir || e.misnamed != "" {
			continue
		}
		below, err := l.children(e.path, e.hash)
		if err != nil {
			continue // it is not read otherwise
		}
		for _, child := range below {
			child.hidden = true
			l.hidden = append(l.hidden, child)
		}
	}
	return sorted(listed, decodedEntry.comparePath)
}

// maxHidden is the maximum number of hidden files and folders that are searched for manifests.
const maxHidden = 10_000

// children returns a folder's own entries, without files that are not manifests.
func (l *lister) children(dir string, hash plumbing.Hash) ([]entry, error) {
	tree, err := l.store.tree(hash)
	if err != nil {
		return nil, err
	}
	var own []entry
	for _, t := range tree {
		regular := t.Mode.IsFile() && t.Mode != filemode.Symlink
		if t.Name != IgnoreFile && regular && !isManifest(t.Name) {
			continue
		}
		e := entry{hash: t.Hash, mode: t.Mode, hidden: t.Name != IgnoreFile && strings.HasPrefix(t.Name, ".")}
		e.path, e.misnamed = misnamed(dir, t.Name)
		own = append(own, e)
	}
	return slices.Clone(own), nil // kept as long as the folder stays, so without room to grow
}

func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
