package diskimage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names in the folder of a store. An image is a folder named after its digest, in which the
// table, the chunks and what is known of it are; one that is being made has an ending.
const (
	lockName   = ".lock"
	partEnding = ".part"
	goneEnding = ".gone"

	tableName  = "table"
	chunksName = "chunks"
	recordName = "image.json"
)

// recordVersion changes when what is kept of an image does: others are prepared anew.
const recordVersion = 1

// record is what is kept of an image.
type record struct {
	Version int   `json:"version"`
	Image   Image `json:"image"`
}

// folder is where images are. Nobody but its owner may read it: images can hold secrets.
type folder struct {
	dir  string
	lock *os.File
}

// openFolder opens dir, makes it if need be, and makes sure that no other process uses it.
func openFolder(dir string) (folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return folder{}, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return folder{}, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return folder{}, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return folder{}, fmt.Errorf("folder %s is in use by another process, give each its own: %w", dir, err)
	}
	return folder{dir, lock}, nil
}

func (f folder) close() { f.lock.Close() }

func folderName(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// digestNamed returns the digest that an image's folder is named after.
func digestNamed(name string) (string, bool) {
	digest := strings.Replace(name, "-", ":", 1)
	return digest, validDigest(digest)
}

func (f folder) path(digest string) string { return filepath.Join(f.dir, folderName(digest)) }

func (f folder) part(digest string) string { return f.path(digest) + partEnding }

// scan returns the images that are whole, and removes what is not. What is not the store's is
// left alone.
func (f folder) scan() (map[string]*kept, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	images := make(map[string]*kept)
	for _, entry := range entries {
		bare := strings.TrimSuffix(strings.TrimSuffix(entry.Name(), partEnding), goneEnding)
		digest, ours := digestNamed(bare)
		if !ours || !entry.IsDir() {
			continue
		}
		if bare == entry.Name() {
			if k, ok := f.whole(digest); ok {
				images[digest] = k
				continue
			}
		}
		if err := os.RemoveAll(filepath.Join(f.dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// whole reads what is kept of an image, and reports whether all of it is there.
func (f folder) whole(digest string) (*kept, bool) {
	dir := f.path(digest)
	raw, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return nil, false
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil || r.Version != recordVersion || r.Image.Disk.Digest != digest {
		return nil, false
	}
	size := func(name string) int64 {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() {
			return -1
		}
		return info.Size()
	}
	table := size(tableName)
	if table < 0 || size(chunksName) != int64(r.Image.Stored) {
		return nil, false
	}
	used := time.Time{}
	if info, err := os.Stat(filepath.Join(dir, recordName)); err == nil {
		used = info.ModTime()
	}
	return &kept{image: r.Image, bytes: int64(r.Image.Stored) + table, used: used, touched: used}, true
}

// begin makes the folder that an image is made in.
func (f folder) begin(digest string) error {
	if err := os.RemoveAll(f.part(digest)); err != nil {
		return err
	}
	return os.Mkdir(f.part(digest), 0o700)
}

// create makes a file in the folder that an image is made in.
func (f folder) create(digest, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(f.part(digest), name), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
}

// keep writes the table and what is known of an image beside its chunks, and gives the folder
// its name: from then on the image is whole, whatever happens to this machine.
func (f folder) keep(digest string, table []byte, img Image) error {
	raw, err := json.Marshal(record{recordVersion, img})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{tableName: table, recordName: raw} {
		if err := f.write(digest, name, content); err != nil {
			return err
		}
	}
	if err := syncDir(f.part(digest)); err != nil {
		return err
	}
	if err := os.Rename(f.part(digest), f.path(digest)); err != nil {
		return err
	}
	return syncDir(f.dir)
}

func (f folder) write(digest, name string, content []byte) error {
	file, err := f.create(digest, name)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// discard removes what was made of an image that will not be whole. What cannot be removed is
// with the next start.
func (f folder) discard(digest string) { _ = os.RemoveAll(f.part(digest)) }

// unlink takes an image's name away, and returns what is to be removed.
func (f folder) unlink(digest string) string {
	gone := f.path(digest) + goneEnding
	if err := os.Rename(f.path(digest), gone); err != nil { // one of the same name is being removed
		return f.path(digest)
	}
	return gone
}

// remove removes what unlink returned. What cannot be removed is with the next start.
func (f folder) remove(path string) {
	if path != "" {
		_ = os.RemoveAll(path)
	}
}

// touch keeps when an image was used, for the order of eviction after a restart.
func (f folder) touch(digest string, now time.Time) {
	_ = os.Chtimes(filepath.Join(f.path(digest), recordName), now, now) // it is only an order
}

// open opens the files of an image.
func (f folder) open(digest string) (Opened, error) {
	table, err := os.OpenFile(filepath.Join(f.path(digest), tableName), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return Opened{}, err
	}
	chunks, err := os.OpenFile(filepath.Join(f.path(digest), chunksName), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		table.Close()
		return Opened{}, err
	}
	return Opened{Table: table, Chunks: chunks}, nil
}
