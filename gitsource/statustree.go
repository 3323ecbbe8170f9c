package gitsource

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/model"
)

// statusTree is the tree of the status branch, in memory: what it should be, and
// beside it what the server is known to hold. Contents are not kept: a document
// can be rendered again.
type statusTree struct {
	root  *dirNode
	files map[string]*fileNode
	round int // of update, to find the files that are gone
}

type node interface {
	id() plumbing.Hash
}

type fileNode struct {
	path   string
	parent *dirNode
	doc    *model.Document
	hash   plumbing.Hash
	pushed plumbing.Hash // of the file at this path on the server; zero if there is none
	round  int
	draft  *draft // nil once it was pushed
}

type draft struct {
	doc     *model.Document
	hash    plumbing.Hash
	content []byte
	cut     error // says what was left out of content
	err     error // why there is no content
}

func (f *fileNode) write(doc *model.Document) {
	d := &draft{doc: doc}
	f.draft = d
	if doc == nil {
		d.err = fmt.Errorf("write %s: there is no document", f.path)
		return
	}
	if d.content, d.err = render(doc); len(d.content) > maxStatusFile {
		d.content, d.cut = cutDown(doc, len(d.content))
		if d.content == nil {
			d.err = d.cut
		}
	}
	if d.err != nil {
		d.err = fmt.Errorf("write %s: %w", f.path, d.err)
		return
	}
	d.hash = hashObject("blob", d.content)
}

func (f *fileNode) current() ([]byte, error) {
	if f.draft == nil || f.draft.hash != f.hash {
		f.write(f.doc)
	}
	switch d := f.draft; {
	case d.err != nil:
		return nil, d.err
	case d.hash != f.hash:
		return nil, fmt.Errorf("write %s: the document changed after it was handed over", f.path)
	default:
		return d.content, nil
	}
}

type dirNode struct {
	path    string
	parent  *dirNode
	entries map[string]node
	order   []string // of entries, as Git sorts; nil when to be made anew
	stale   bool     // hash is to be computed anew
	hash    plumbing.Hash
	content []byte // the tree object

	pushed        plumbing.Hash // of the folder at this path on the server
	pushedContent []byte        // its tree object, if it is known
}

func (f *fileNode) id() plumbing.Hash { return f.hash }
func (d *dirNode) id() plumbing.Hash  { return d.hash }

func newStatusTree() *statusTree {
	return &statusTree{root: newDir("", nil), files: make(map[string]*fileNode)}
}

func newDir(path string, parent *dirNode) *dirNode {
	return &dirNode{path: path, parent: parent, entries: make(map[string]node), stale: true}
}

// Limits of a path on the status branch.
const (
	maxSegment = 255 // bytes
	maxNesting = 10
)

// validPath refuses names that would be a surprise in somebody's checkout.
func validPath(path string) error {
	segments := strings.Split(path, "/")
	if len(segments) > maxNesting {
		return fmt.Errorf("%q has more than %d folders", path, maxNesting)
	}
	for _, s := range segments {
		if s == "" || s[0] == '.' || len(s) > maxSegment || strings.Contains(s, "..") ||
			strings.IndexFunc(s, func(r rune) bool { return !nameRune(r) }) >= 0 {
			return fmt.Errorf("%q is no name for a file of the status branch: letters, digits, '.', '_' and '-' are allowed, no leading '.', no '..'", path)
		}
	}
	return nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// update makes the tree that of docs and returns how many files changed. Only
// documents that are not the ones of the last time are rendered. One that cannot
// be written is skipped, for the reason given: its file stays as it was. One that is
// too large is cut down to what has to be kept.
func (t *statusTree) update(docs map[string]*model.Document) (int, map[string]error) {
	t.round++
	kept := 0
	for path := range docs {
		if f := t.files[path]; f != nil {
			f.round = t.round
			kept++
		}
	}
	changed := 0
	if len(t.files) > kept { // before any are added: a file may become a folder
		changed += t.sweep()
	}
	type edit struct {
		f   *fileNode
		doc *model.Document
	}
	var edits []edit
	skipped := make(map[string]error)
	for path, doc := range docs {
		f := t.files[path]
		if f == nil {
			var err error
			if f, err = t.add(path); err != nil {
				skipped[path] = err
				continue
			}
		}
		if f.doc != doc || doc == nil {
			edits = append(edits, edit{f, doc})
		}
	}
	inParallel(edits, func(e edit) { e.f.write(e.doc) })
	for _, e := range edits {
		f, d := e.f, e.f.draft
		switch {
		case d.err != nil:
			skipped[f.path] = d.err
			if f.hash.IsZero() {
				delete(t.files, f.path)
				f.parent.remove(base(f.path))
			}
		case d.hash == f.hash:
			f.doc = d.doc
		default:
			f.doc, f.hash = d.doc, d.hash
			f.parent.touch()
			changed++
		}
		if d.err == nil && d.cut != nil {
			skipped[f.path] = d.cut
		}
	}
	t.root.rehash()
	return changed, skipped
}

// add makes a file, whose hash is not known yet, and the folders it needs.
func (t *statusTree) add(path string) (*fileNode, error) {
	if err := validPath(path); err != nil {
		return nil, err
	}
	segments := strings.Split(path, "/")
	dir := t.root
	for i, name := range segments[:len(segments)-1] {
		next, ok := dir.entries[name]
		if !ok {
			next = newDir(strings.Join(segments[:i+1], "/"), dir)
			dir.put(name, next)
		}
		if dir, ok = next.(*dirNode); !ok {
			return nil, fmt.Errorf("%q lies in a folder that is also a file", path)
		}
	}
	name := segments[len(segments)-1]
	if _, taken := dir.entries[name]; taken {
		return nil, fmt.Errorf("%q is both a file and a folder", path)
	}
	f := &fileNode{path: path, parent: dir}
	dir.put(name, f)
	t.files[path] = f
	return f, nil
}

// sweep removes files that this update does not have, and folders left empty.
func (t *statusTree) sweep() int {
	removed := 0
	for path, f := range t.files {
		if f.round == t.round {
			continue
		}
		delete(t.files, path)
		f.parent.remove(base(path))
		removed++
	}
	return removed
}

func (d *dirNode) put(name string, n node) {
	d.entries[name] = n
	d.order = nil
	d.touch()
}

func (d *dirNode) remove(name string) {
	delete(d.entries, name)
	d.order = nil
	d.touch()
	if len(d.entries) == 0 && d.parent != nil {
		d.parent.remove(base(d.path))
	}
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func (d *dirNode) touch() {
	for ; d != nil && !d.stale; d = d.parent {
		d.stale = true
	}
}

// rehash computes the trees that changed, from the leaves up.
func (d *dirNode) rehash() {
	if !d.stale {
		return
	}
	for _, n := range d.entries {
		if sub, ok := n.(*dirNode); ok {
			sub.rehash()
		}
	}
	d.content = d.encode()
	d.hash = hashObject("tree", d.content)
	d.stale = false
}

const (
	modeFile = "100644 "
	modeDir  = "40000 "
)

func (d *dirNode) encode() []byte {
	if d.order == nil {
		d.order = make([]string, 0, len(d.entries))
		for name := range d.entries {
			d.order = append(d.order, name)
		}
		// Git sorts a folder as if its name ended in a slash.
		slices.SortFunc(d.order, func(a, b string) int { return strings.Compare(d.sortKey(a), d.sortKey(b)) })
	}
	out := make([]byte, 0, len(d.order)*48)
	for _, name := range d.order {
		n := d.entries[name]
		mode := modeFile
		if _, ok := n.(*dirNode); ok {
			mode = modeDir
		}
		h := n.id()
		out = append(out, mode...)
		out = append(out, name...)
		out = append(out, 0)
		out = append(out, h[:]...)
	}
	return out
}

func (d *dirNode) sortKey(name string) string {
	if _, ok := d.entries[name].(*dirNode); ok {
		return name + "/"
	}
	return name
}

// pack adds what the server lacks to p: whole blobs, and trees as differences to
// the ones it has when it takes those.
func (t *statusTree) pack(p *packWriter, deltas bool) error {
	var missing []*fileNode
	for _, f := range t.files {
		if f.hash != f.pushed {
			missing = append(missing, f)
		}
	}
	chunks := slices.Collect(slices.Chunk(missing, chunk))
	parts := make([]*packWriter, len(chunks))
	numbers := make([]int, len(chunks))
	for i := range numbers {
		numbers[i] = i
	}
	errs := make([]error, len(chunks))
	inParallel(numbers, func(i int) { parts[i], errs[i] = packFiles(chunks[i]) })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, part := range parts {
		p.append(part)
	}
	t.root.pack(p, deltas)
	return nil
}

// chunk is how many files one worker packs at a time.
const chunk = 64

func packFiles(files []*fileNode) (*packWriter, error) {
	p := &packWriter{}
	for _, f := range files {
		content, err := f.current()
		if err != nil {
			return nil, err
		}
		p.add(packBlob, content)
	}
	return p, nil
}

// inParallel calls fn for each item, on all processors.
func inParallel[T any](items []T, fn func(T)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(items), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)); i = next.Add(1) - 1 {
				fn(items[i])
			}
		})
	}
	wg.Wait()
}

// smallTree is the size up to which a tree is sent whole, in bytes.
const smallTree = 1 << 10

func (d *dirNode) pack(p *packWriter, deltas bool) {
	if d.hash == d.pushed {
		return
	}
	for _, n := range d.entries {
		if sub, ok := n.(*dirNode); ok {
			sub.pack(p, deltas)
		}
	}
	if deltas && d.pushedContent != nil && len(d.content) > smallTree {
		if delta := treeDelta(d.pushedContent, d.content); len(delta) < len(d.content)/2 {
			p.addDelta(d.pushed, delta)
			return
		}
	}
	p.add(packTree, d.content)
}

func (t *statusTree) acknowledge() {
	for _, f := range t.files {
		f.pushed, f.draft = f.hash, nil
	}
	t.root.acknowledge()
}

func (d *dirNode) acknowledge() {
	if d.hash == d.pushed && d.pushedContent != nil {
		return // and so are all folders below
	}
	d.pushed, d.pushedContent = d.hash, d.content
	for _, n := range d.entries {
		if sub, ok := n.(*dirNode); ok {
			sub.acknowledge()
		}
	}
}

// assume notes what the server holds instead: the hash of each file and folder by
// path, the root's being "". With nil it holds nothing.
func (t *statusTree) assume(files, folders map[string]plumbing.Hash) {
	for path, f := range t.files {
		f.pushed = files[path]
	}
	t.root.assume(folders)
}

func (d *dirNode) assume(folders map[string]plumbing.Hash) {
	d.pushed, d.pushedContent = folders[d.path], nil
	if d.pushed == d.hash {
		d.pushedContent = d.content
	}
	for _, n := range d.entries {
		if sub, ok := n.(*dirNode); ok {
			sub.assume(folders)
		}
	}
}
