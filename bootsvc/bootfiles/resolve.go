package bootfiles

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// maxLinks bounds the links that one name may lead through.
const maxLinks = 8

// resolve follows name to a file, one element at a time as the kernel does, and returns
// the file's path without links and what it is. That is nil if there is no such file, or if not
// everybody may go this way: each folder passed has to be open to everybody (o+x), those above
// the target of a link as well.
func (f *Folder) resolve(root *os.Root, name string) (at string, found fs.FileInfo) {
	dir, err := root.Lstat(".")
	if err != nil || !f.enters(name, ".", dir) {
		return "", nil
	}
	links := 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		if next == ".." { // out of the folder
			f.logLink(name)
			return "", nil
		}
		info, err := root.Lstat(next)
		switch {
		case err != nil:
			return "", nil
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := root.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return "", nil
			}
			if path.IsAbs(target) { // os.Root refuses it, wherever it leads
				f.logLink(name)
				return "", nil
			}
			rest = append(strings.Split(target, "/"), rest...)
			continue
		case info.IsDir() && !f.enters(name, next, info):
			return "", nil
		case !info.IsDir() && len(rest) > 0: // no folder
			return "", nil
		}
		at, found = next, info
	}
	return at, found
}

// enters reports whether everybody may open what is in dir, a folder on the way to name.
func (f *Folder) enters(name, dir string, info fs.FileInfo) bool {
	if info.Mode().Perm()&othersEnter != 0 {
		return true
	}
	if f.logsNow() {
		f.log.Warn("a file of boot.files is requested and not served, because not everybody on this machine may enter a folder that it is in: "+
			"chmod o+x the folder if there are no secrets in it", "file", name, "folder", dir, "mode", info.Mode().String())
	}
	return false
}

// logLink logs that a link on the way to name is not followed.
func (f *Folder) logLink(name string) {
	if f.logsNow() {
		f.log.Warn("a file of boot.files is requested and not served, because a link to it is absolute or leads out of the folder: "+
			"make the link relative, and its target a file in the folder", "file", name)
	}
}

// logsNow reports whether it is time to log again that a file is not served, and if so
// notes that it is.
func (f *Folder) logsNow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.logged) < logEvery {
		return false
	}
	f.logged = now
	return true
}
