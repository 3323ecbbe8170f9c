package diskimage

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/cachedir"
)

// folderEnding is the ending of the folders of images in the folder of the caches. Each is named after the digest.
const folderEnding = ".disk"

// Names in the folder of an image.
const (
	tableName  = "table"
	chunksName = "chunks"
	recordName = "image.json"
)

// recordVersion changes with the format of an image's folder. Images of other versions are prepared again.
const recordVersion = 1

type record struct {
	Version int   `json:"version"`
	Image   Image `json:"image"`
}

// readRecord reads the record of an image that a former process completed. It reports whether all files are there.
func readRecord(digest, dir string) (r record, size int64, ok bool) {
	raw, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil || json.Unmarshal(raw, &r) != nil || r.Version != recordVersion || r.Image.Disk.Digest != digest {
		return r, 0, false
	}
	table, err := os.Lstat(filepath.Join(dir, tableName))
	if err != nil || !table.Mode().IsRegular() {
		return r, 0, false
	}
	chunks, err := os.Lstat(filepath.Join(dir, chunksName))
	if err != nil || !chunks.Mode().IsRegular() || chunks.Size() != int64(r.Image.Stored) {
		return r, 0, false
	}
	return r, chunks.Size() + table.Size(), true
}

// load takes over the images that former processes completed.
func (s *Store) load() error {
	found := make(map[string]Image)
	s.kind = &cachedir.Kind{Ending: folderEnding, Evicted: s.evicted}
	s.kind.Measure = func(digest, path string, _ fs.FileInfo) (int64, bool) {
		r, size, ok := readRecord(digest, path)
		found[digest] = r.Image
		return size, ok
	}
	entries, err := s.dir.Load(s.kind)
	for _, e := range entries {
		s.images[e.Digest] = &kept{image: found[e.Digest], entry: e}
	}
	return err
}

func createIn(dir, name string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, &diskError{err}
	}
	return file, nil
}

// complete writes the table and the record of an image next to its chunks, and makes all durable.
func complete(dir string, table []byte, img Image) error {
	raw, err := json.Marshal(record{recordVersion, img})
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{tableName: table, recordName: raw} {
		file, err := createIn(dir, name)
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

func openFiles(dir string) (Opened, error) {
	table, err := os.OpenFile(filepath.Join(dir, tableName), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return Opened{}, err
	}
	chunks, err := os.OpenFile(filepath.Join(dir, chunksName), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		table.Close()
		return Opened{}, err
	}
	return Opened{Table: table, Chunks: chunks}, nil
}
