package gitserver

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Modes of tree entries, as git writes them.
const (
	modeFile      = "100644"
	modeTree      = "40000"
	modeSubmodule = "160000"
)

// entry is a file, folder or submodule in a tree.
type entry struct {
	mode, name string
	hash       plumbing.Hash
}

// parseTree reads the content of a tree object.
func parseTree(content []byte) ([]entry, error) {
	var entries []entry
	for len(content) > 0 {
		header, rest, ok := bytes.Cut(content, []byte{0})
		mode, name, named := strings.Cut(string(header), " ")
		if !ok || !named || len(rest) < len(plumbing.ZeroHash) {
			return nil, errors.New("malformed tree")
		}
		e := entry{mode: strings.TrimLeft(mode, "0"), name: name}
		content = rest[copy(e.hash[:], rest):]
		entries = append(entries, e)
	}
	return entries, nil
}

// tree returns the entries of a tree, which the caller must not change.
func (o *objects) tree(h plumbing.Hash) ([]entry, error) {
	o.mu.Lock()
	entries, known := o.trees[h]
	o.mu.Unlock()
	if known {
		return entries, nil
	}
	kind, content, err := o.read(h)
	if err == nil && kind != plumbing.TreeObject {
		err = fmt.Errorf("object is a %s", kind)
	}
	if err == nil {
		entries, err = parseTree(content)
	}
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", h, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.trees == nil || o.entries > maxEntries {
		o.trees, o.entries = make(map[plumbing.Hash][]entry), 0
	}
	o.trees[h] = entries
	o.entries += len(entries) + 1
	return entries, nil
}

// walk calls visit for each file below a tree.
func (o *objects) walk(tree plumbing.Hash, dir string, visit func(path string, e entry) error) error {
	entries, err := o.tree(tree)
	for _, e := range entries {
		if err == nil && e.mode == modeTree {
			err = o.walk(e.hash, dir+e.name+"/", visit)
		} else if err == nil {
			err = visit(dir+e.name, e)
		}
	}
	return err
}

// folder is a tree that is being edited.
type folder struct {
	objects *objects
	nodes   map[string]*node
}

// node is an entry of a folder; folder is nil until it is opened.
type node struct {
	mode   string
	hash   plumbing.Hash
	folder *folder
}

// newFolder returns an empty folder for the zero hash.
func (o *objects) newFolder(tree plumbing.Hash) (*folder, error) {
	f := &folder{o, make(map[string]*node)}
	if tree.IsZero() {
		return f, nil
	}
	entries, err := o.tree(tree)
	for _, e := range entries {
		f.nodes[e.name] = &node{mode: e.mode, hash: e.hash}
	}
	return f, err
}

// child opens a folder in f. It returns nil if there is none.
func (f *folder) child(name string) (_ *folder, err error) {
	n := f.nodes[name]
	if n == nil || n.mode != modeTree {
		return nil, nil
	}
	if n.folder == nil {
		n.folder, err = f.objects.newFolder(n.hash)
	}
	return n.folder, err
}

// put sets the entry at a path. It replaces files that stand where folders are needed.
func (f *folder) put(path string, n *node) error {
	name, rest, deeper := strings.Cut(path, "/")
	if name == "" {
		return fmt.Errorf("path %q has an empty component", path)
	}
	if !deeper {
		f.nodes[name] = n
		return nil
	}
	child, err := f.child(name)
	if err != nil {
		return err
	}
	if child == nil {
		child = &folder{f.objects, make(map[string]*node)}
		f.nodes[name] = &node{mode: modeTree, folder: child}
	}
	return child.put(rest, n)
}

// putFiles adds or replaces files.
func (f *folder) putFiles(files map[string]string) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		blob, err := f.objects.write(plumbing.BlobObject, []byte(files[path]))
		if err == nil {
			err = f.put(path, &node{mode: modeFile, hash: blob})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes the entry at a path, and folders that are empty then. It returns the
// entry, nil if there was none.
func (f *folder) remove(path string) (*node, error) {
	name, rest, deeper := strings.Cut(path, "/")
	n := f.nodes[name]
	if !deeper || n == nil {
		delete(f.nodes, name)
		return n, nil
	}
	child, err := f.child(name)
	if err != nil || child == nil {
		return nil, err
	}
	removed, err := child.remove(rest)
	if removed != nil && len(child.nodes) == 0 {
		delete(f.nodes, name)
	}
	return removed, err
}

// write stores the tree and returns its name.
func (f *folder) write() (plumbing.Hash, error) {
	entries := make([]entry, 0, len(f.nodes))
	for name, n := range f.nodes {
		if n.folder != nil {
			var err error
			if n.hash, err = n.folder.write(); err != nil {
				return n.hash, err
			}
		}
		entries = append(entries, entry{n.mode, name, n.hash})
	}
	// git sorts a folder as if its name ended in a slash.
	key := func(e entry) string {
		if e.mode == modeTree {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(e.mode + " " + e.name + "\x00")
		b.Write(e.hash[:])
	}
	return f.objects.write(plumbing.TreeObject, b.Bytes())
}
