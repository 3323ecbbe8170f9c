// Package bootfiles serves a folder of the operator's own to everybody on the boot
// network: configurations of switches, GRUB, memory tests, firmware of foreign devices.
package bootfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxName bounds the name of a file in bytes, and maxDepth the folders above it.
	maxName  = 1024
	maxDepth = 16

	// othersRead is the permission of everybody to read a file.
	othersRead fs.FileMode = 0o004
	// othersEnter is that of everybody to open what is in a folder.
	othersEnter fs.FileMode = 0o001

	// logEvery is how often it is logged that a file is not served.
	logEvery = time.Minute
)

// Folder is the folder whose files are served, to read only. It is safe for concurrent
// use. Nil has no files.
//
// Nothing outside of it can be reached, neither by a name nor by a link (os.Root), nor what
// begins with a dot, nor anything but regular files. A file that is not readable by
// everybody on this machine, or is in a folder that not everybody may enter, is not served
// either: in.tftpd has the same rule, and keys and passwords are not.
type Folder struct {
	dir string
	log *slog.Logger

	mu     sync.Mutex
	logged time.Time // when it was last logged that a file is not served
}

// New returns the folder dir. It is opened anew for each file, so that it may be replaced as a
// whole, or come later.
func New(dir string, log *slog.Logger) *Folder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Folder{dir: dir, log: log}
}

// Check returns why no file can be served now.
func (f *Folder) Check() error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	info, err := root.Stat(".")
	if err := errors.Join(err, root.Close()); err != nil {
		return err
	}
	if info.Mode().Perm()&othersEnter == 0 {
		return fmt.Errorf("%s has mode %s: not everybody may enter it (chmod o+x)", f.dir, info.Mode())
	}
	return nil
}

// Open opens the file with exactly this name, a path with slashes, and returns its size.
// The error wraps fs.ErrNotExist when nothing of this name is served.
func (f *Folder) Open(name string) (io.ReadSeekCloser, int64, error) {
	file, info, err := f.Find(name)
	if err != nil {
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// Find is Open for those who need to know more of the file.
func (f *Folder) Find(name string) (*os.File, fs.FileInfo, error) {
	if f == nil || !valid(name) {
		return nil, nil, notServed(name)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open the folder of boot files: %w", err)
	}
	defer func() { _ = root.Close() }() // of what was only read
	at, info := f.resolve(root, name)
	// a device or a FIFO is not even opened: that alone can have an effect, or wait
	if info == nil || !f.serves(name, info) {
		return nil, nil, notServed(name)
	}
	file, err := root.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, notServed(name)
	}
	info, err = file.Stat() // it may have become another one meanwhile
	if err != nil || !f.serves(name, info) {
		return nil, nil, errors.Join(notServed(name), file.Close())
	}
	return file, info, nil
}

func notServed(name string) error {
	return fmt.Errorf("boot file %.64q: %w", name, fs.ErrNotExist)
}

// valid reports whether name is a path below the folder without hidden parts. "." and ".."
// are among those.
func valid(name string) bool {
	if len(name) > maxName || !fs.ValidPath(name) || strings.Count(name, "/") >= maxDepth {
		return false
	}
	for element := range strings.SplitSeq(name, "/") {
		if element[0] == '.' {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}

func (f *Folder) serves(name string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() {
		return false
	}
	if info.Mode().Perm()&othersRead != 0 {
		return true
	}
	if f.logsNow() {
		f.log.Warn("a file of boot.files is requested and not served, because not everybody on this machine may read it: "+
			"chmod o+r it if it is no secret", "file", name, "mode", info.Mode().String())
	}
	return false
}
