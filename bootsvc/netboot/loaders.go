package netboot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ingot/model"
)

// maxLoader bounds the size of a boot loader, in bytes.
const maxLoader = 8 << 20

// DefaultLoaderDirs are where Debian's package ipxe puts boot loaders.
var DefaultLoaderDirs = []string{"/usr/lib/ipxe", "/boot"}

// Loaders are the boot loaders in some folders. Only those that a platform has a
// name for can be opened, whatever else lies there. It is safe for concurrent use;
// nil has none.
type Loaders struct {
	dirs   []string
	names  map[string][]string // the paths in a folder, by name
	choice LoaderChoice

	mu       sync.Mutex
	contents map[string]loader    // by path
	warned   map[string]time.Time // when it was last logged that there is none, by what is missing
}

// LoaderChoice says which of the boot loaders of a platform a machine is told.
type LoaderChoice struct {
	// Default are the kinds by platform, see LoaderPlatforms; a platform that is not among
	// them has the first loader that is there.
	Default map[string]LoaderKind
	// Of is the kind for a server, or for the network card that asks where no server is
	// known; nil or "" is the default.
	Of func(server model.ServerName, mac string) LoaderKind
	// Log is told of machines that there is no loader for, now and then; nil = nobody is.
	Log *slog.Logger
}

// warnEvery is how often it is logged that there is no loader.
const warnEvery = time.Minute

type loader struct {
	contents []byte
	size     int64
	modified time.Time
}

// OpenLoaders returns the boot loaders in dirs; a name that is in several is taken
// from the first. Nothing is read yet, and files may come, go and change at any
// time: each answer says what is there then.
func OpenLoaders(dirs []string) *Loaders {
	l := &Loaders{names: make(map[string][]string), contents: make(map[string]loader), warned: make(map[string]time.Time)}
	for _, dir := range dirs {
		l.dirs = append(l.dirs, filepath.Clean(dir))
	}
	for _, p := range platforms {
		for _, f := range slices.Concat(p.loaders, p.shim) {
			l.names[f.name] = f.paths
		}
	}
	return l
}

// Choose sets which loader of several a machine is told. It is called before all else.
func (l *Loaders) Choose(c LoaderChoice) { l.choice = c }

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

// Reserves reports whether a name on the TFTP server is Ingot's own, whether it is there or
// not: a boot loader, or the script that iPXE looks for beside its loader before it asks
// DHCP.
func (l *Loaders) Reserves(name string) bool {
	return name == "autoexec.ipxe" || l != nil && l.names[name] != nil
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
		if kind := l.byDefault(p.platform); slices.Contains(architectures, p.machine) && l.first(p.platform, kind) == "" {
			lines = append(lines, l.missing(p.platform, kind))
		}
	}
	return lines
}

func (l *Loaders) missing(p *platform, kind LoaderKind) string {
	where := "any folder: none is set"
	if l != nil && len(l.dirs) > 0 {
		where = strings.Join(l.dirs, ", ")
	}
	return fmt.Sprintf("no boot loader %s for %s in %s; %s; those machines cannot boot by PXE", p.names(kind), p.name, where, p.source)
}

// UEFI returns the architectures of UEFI machines that a boot loader is there for.
func (l *Loaders) UEFI() []string {
	found := []string{}
	for _, p := range platforms {
		if p.platform != &bios && l.first(p.platform, l.byDefault(p.platform)) != "" {
			found = append(found, p.machine)
		}
	}
	return found
}

// choose returns the boot loader for the machine of a server, "" for none, that asks as c.
func (l *Loaders) choose(c Client, server model.ServerName) (string, Reason) {
	p := archs[c.Arch].platform
	if p == nil {
		return "", ReasonUnknownArch
	}
	kind := l.byDefault(p)
	if l != nil && l.choice.Of != nil {
		kind = cmp.Or(l.choice.Of(server, c.MAC), kind)
	}
	if name := l.first(p, kind); name != "" {
		return name, ""
	}
	l.warn(p, kind, server, c.MAC)
	return "", ReasonNoLoader
}

// byDefault is the kind of loader that p's machines are told, "" for any.
func (l *Loaders) byDefault(p *platform) LoaderKind {
	if l == nil {
		return ""
	}
	return l.choice.Default[p.key]
}

// warn logs, not too often, that a machine is told nothing for want of a loader.
func (l *Loaders) warn(p *platform, kind LoaderKind, server model.ServerName, mac string) {
	if l == nil || l.choice.Log == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	what, now := p.key+" "+string(kind), time.Now()
	if now.Sub(l.warned[what]) < warnEvery {
		return
	}
	l.warned[what] = now
	l.choice.Log.Warn("a machine asks for a boot loader that is missing", "server", string(server), "mac", mac, "reason", l.missing(p, kind))
}

// first returns the first of p's boot loaders of a kind that is there, or "".
func (l *Loaders) first(p *platform, kind LoaderKind) string {
	for _, f := range p.of(kind) {
		if _, _, err := l.find(f.name); err == nil {
			return f.name
		}
	}
	return ""
}

// find returns where the boot loader of a name is. A name is looked up before it
// touches the file system, for it comes from outside.
func (l *Loaders) find(name string) (string, fs.FileInfo, error) {
	if l == nil || l.names[name] == nil {
		return "", nil, fmt.Errorf("boot loader: %w", fs.ErrNotExist)
	}
	for _, dir := range l.dirs {
		for _, at := range l.names[name] {
			path := filepath.Join(dir, at)
			info, err := os.Stat(path)
			if err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size() <= maxLoader {
				return path, info, nil
			}
		}
	}
	return "", nil, fmt.Errorf("boot loader %s: %w", name, fs.ErrNotExist)
}

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
