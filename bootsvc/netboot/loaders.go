package netboot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxLoader bounds the size of a boot loader, in bytes.
const maxLoader = 8 << 20

// DefaultLoaderDirs are where Debian's package ipxe puts boot loaders.
var DefaultLoaderDirs = []string{"/usr/lib/ipxe", "/boot"}

// Loaders are the boot loaders in some folders. Only those that a platform has a
// name for can be opened, whatever else lies there. It is safe for concurrent use;
// nil has none.
type Loaders struct {
	dirs  []string
	names map[string]bool

	mu       sync.Mutex
	contents map[string]loader // by path
}

// loader is a file as it was when it was read.
type loader struct {
	contents []byte
	size     int64
	modified time.Time
}

// OpenLoaders returns the boot loaders in dirs; a name that is in several is taken
// from the first. Nothing is read yet, and files may come, go and change at any
// time: each answer says what is there then.
func OpenLoaders(dirs []string) *Loaders {
	l := &Loaders{names: make(map[string]bool), contents: make(map[string]loader)}
	for _, dir := range dirs {
		l.dirs = append(l.dirs, filepath.Clean(dir))
	}
	for _, p := range platforms {
		for _, name := range p.loaders {
			l.names[name] = true
		}
	}
	return l
}

// Open opens the boot loader with exactly this name, and returns its size in
// bytes. What is read stays the same when the file is changed meanwhile. The error
// wraps fs.ErrNotExist when there is no such loader.
func (l *Loaders) Open(name string) (io.ReadSeekCloser, int64, error) {
	path, info, err := l.find(name)
	if err != nil {
		return nil, 0, err
	}
	contents, err := l.read(path, info)
	if err != nil {
		return nil, 0, fmt.Errorf("read boot loader %s: %w", path, err)
	}
	return reader{bytes.NewReader(contents), contents}, int64(len(contents)), nil
}

// reader is a file that is held in memory.
type reader struct {
	*bytes.Reader
	contents []byte
}

// Contents returns the whole file, which nobody may change.
func (r reader) Contents() []byte { return r.contents }

// Close implements io.Closer.
func (reader) Close() error { return nil }

// Missing returns a line for each kind of machines of the given architectures
// (amd64, arm64 …) that no boot loader is there for.
func (l *Loaders) Missing(architectures []string) []string {
	var lines []string
	for _, p := range platforms {
		if !slices.Contains(architectures, p.machine) || l.first(p.platform) != "" {
			continue
		}
		where := "any folder: none is set"
		if l != nil && len(l.dirs) > 0 {
			where = strings.Join(l.dirs, ", ")
		}
		lines = append(lines, fmt.Sprintf("no boot loader %s for %s in %s; install the package ipxe or build one; those machines cannot boot by PXE",
			strings.Join(p.loaders, " or "), p.name, where))
	}
	return lines
}

// UEFI returns the architectures of UEFI machines that a boot loader is there for.
func (l *Loaders) UEFI() []string {
	found := []string{}
	for _, p := range platforms {
		if p.platform != &bios && l.first(p.platform) != "" {
			found = append(found, p.machine)
		}
	}
	return found
}

// choose returns the boot loader for machines of architecture a.
func (l *Loaders) choose(a Arch) (string, Reason) {
	p := archs[a].platform
	if p == nil {
		return "", ReasonUnknownArch
	}
	if name := l.first(p); name != "" {
		return name, ""
	}
	return "", ReasonNoLoader
}

// first returns the first of p's boot loaders that is there, or "".
func (l *Loaders) first(p *platform) string {
	for _, name := range p.loaders {
		if _, _, err := l.find(name); err == nil {
			return name
		}
	}
	return ""
}

// find returns where the boot loader of a name is. A name is looked up before it
// touches the file system, for it comes from outside.
func (l *Loaders) find(name string) (string, fs.FileInfo, error) {
	if l == nil || !l.names[name] {
		return "", nil, fmt.Errorf("boot loader: %w", fs.ErrNotExist)
	}
	for _, dir := range l.dirs {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size() <= maxLoader {
			return path, info, nil
		}
	}
	return "", nil, fmt.Errorf("boot loader %s: %w", name, fs.ErrNotExist)
}

// read returns the contents of a file, from memory if it is as it was.
func (l *Loaders) read(path string, info fs.FileInfo) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, ok := l.contents[path]
	if ok && was.size == info.Size() && was.modified.Equal(info.ModTime()) {
		return was.contents, nil
	}
	f, err := os.Open(path) //nolint:gosec // a folder of the configuration and a name of our own
	if err != nil {
		return nil, err
	}
	defer f.Close()
	contents, err := io.ReadAll(io.LimitReader(f, maxLoader+1))
	switch {
	case err != nil:
		return nil, err
	case len(contents) == 0 || len(contents) > maxLoader:
		return nil, errors.New("it changed while it was read")
	}
	l.contents[path] = loader{contents, info.Size(), info.ModTime()}
	return contents, nil
}
