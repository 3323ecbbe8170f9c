package image

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

type entry struct {
	mode         uint32 // type and permissions, as in stat(2)
	content      []byte // of a symbolic link: where it leads
	major, minor uint32 // of a device
}

const (
	modeFolder = 0o040000
	modeFile   = 0o100000
	modeLink   = 0o120000
	modeDevice = 0o020000 // a character device
)

// archive is an initramfs that is being built: entries by path without a leading slash.
type archive map[string]entry

func (a archive) file(name string, mode uint32, content []byte) {
	a.add(name, entry{mode: modeFile | mode, content: content})
}

func (a archive) link(name, target string) {
	a.add(name, entry{mode: modeLink | 0o777, content: []byte(target)})
}

func (a archive) folder(name string) { a.add(name, entry{mode: modeFolder | 0o755}) }

func (a archive) add(name string, e entry) {
	name = strings.TrimPrefix(name, "/")
	a[name] = e
	if dir := path.Dir(name); dir != "." && a[dir].mode == 0 {
		a.folder(dir)
	}
}

// write writes a "newc" archive (Linux: Documentation/driver-api/early-userspace/
// buffer-format.rst). Names are sorted, so that a folder comes before its content; all
// times and owners are 0.
func (a archive) write(w io.Writer) error {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if err := writeEntry(w, uint32(i+1), name, a[name]); err != nil {
			return err
		}
	}
	return writeEntry(w, 0, "TRAILER!!!", entry{})
}

func writeEntry(w io.Writer, inode uint32, name string, e entry) error {
	links := uint32(1)
	if e.mode&0o170000 == modeFolder {
		links = 2
	}
	var fields strings.Builder
	fields.WriteString("070701")
	for _, field := range []uint32{
		inode, e.mode, 0, 0, links, 0, uint32(len(e.content)), 0, 0, e.major, e.minor, uint32(len(name) + 1), 0,
	} {
		fmt.Fprintf(&fields, "%08X", field)
	}
	header := fields.String()
	if _, err := io.WriteString(w, header+name+"\x00"+padding(len(header)+len(name)+1)); err != nil {
		return err
	}
	if _, err := w.Write(e.content); err != nil {
		return err
	}
	_, err := io.WriteString(w, padding(len(e.content)))
	return err
}

// padding fills n bytes up to a multiple of four.
func padding(n int) string { return "\x00\x00\x00"[:-n&3] }
