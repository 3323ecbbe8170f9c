package oci

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// layouts reads images from OCI image layouts on this machine: folders, or tar archives of
// them (image-spec v1.1, image-layout.md). They lie in the folders dirs, and nothing
// outside is opened: links that lead out of them are not followed.
type layouts struct{ dirs []string }

// errLacksFile is returned for a layout that lacks a file which every layout has.
var errLacksFile = errors.New("the layout has no such file")

// errOutside is returned for a layout that lies in none of the folders.
var errOutside = errors.New("it lies in none of the folders of boot.imageDirs")

// manifest reads the manifest at a tag or digest and verifies it. Without either it is
// the only image of the layout, the one that is tagged latest, or the layout's own index.
func (l layouts) manifest(r Reference, at string) (manifest, string, error) {
	if err := l.checkVersion(r); err != nil {
		return manifest{}, "", err
	}
	mediaType := ""
	if !ValidDigest(at) {
		index, err := l.index(r)
		if err != nil {
			return manifest{}, "", err
		}
		d, whole, err := index.named(r.Tag)
		if err != nil || whole {
			return index, "", err
		}
		if err := checkEntry(d, maxManifest); err != nil {
			return manifest{}, "", err
		}
		at, mediaType = d.Digest, d.MediaType
	}
	raw, err := l.read(r, blobPath(at))
	if err != nil {
		return manifest{}, "", err
	}
	if sum := digest.Digest(at); sum != sum.Algorithm().FromBytes(raw) {
		return manifest{}, "", invalid("the manifest %s of the layout does not have its digest: copy the image there again", at)
	}
	m, err := parseManifest(raw, mediaType)
	return m, at, err
}

// checkVersion refuses what is no layout, or one of a version that is not known.
func (l layouts) checkVersion(r Reference) error {
	const file = "oci-layout"
	raw, err := l.read(r, file)
	if errors.Is(err, errLacksFile) {
		return invalid("%s is no OCI image layout: it has no file %s", r.Layout, file)
	}
	if err != nil {
		return err
	}
	if version := layoutVersion(raw); version != "1.0.0" {
		return invalid("%s is an OCI image layout of version %q; 1.0.0 is known", r.Layout, syntax.Printable(version))
	}
	return nil
}

// index reads the index of a layout.
func (l layouts) index(r Reference) (manifest, error) {
	const file = "index.json"
	raw, err := l.read(r, file)
	if errors.Is(err, errLacksFile) {
		return manifest{}, invalid("%s is no OCI image layout: it has no file %s", r.Layout, file)
	}
	if err != nil {
		return manifest{}, err
	}
	m, err := parseManifest(raw, mediaOCIIndex)
	if err == nil && !m.index() {
		return manifest{}, invalid("%s of the layout %s is no image index", file, r.Layout)
	}
	return m, err
}

// read reads a file of a layout that is as large as manifests may be.
func (l layouts) read(r Reference, name string) ([]byte, error) {
	part, err := l.open(r, name)
	if err != nil {
		return nil, err
	}
	defer part.file.Close()
	if part.Size() > maxManifest {
		return nil, invalid("%s of the layout is larger than %d bytes", name, maxManifest)
	}
	raw, err := io.ReadAll(part)
	return raw, unreadable(r, err)
}

// openAt opens a layer from offset on. The bytes are not verified yet.
func (l layouts) openAt(r Reference, layer *model.Layer, offset int64) (io.ReadCloser, error) {
	part, err := l.open(r, blobPath(layer.Digest))
	if err != nil {
		return nil, err
	}
	if part.Size() != layer.Size {
		part.file.Close()
		return nil, invalid("the layout has %d bytes of layer %s, and the manifest says %d", part.Size(), layer.Digest, layer.Size)
	}
	_, err = part.Seek(offset, io.SeekStart)
	return part, err
}

// layoutPart is one file of a layout.
type layoutPart struct {
	*io.SectionReader
	file *os.File // that it is in
}

// Close implements io.Closer.
func (p layoutPart) Close() error { return p.file.Close() }

// open opens a file of the layout that r names. The error is errLacksFile when the layout
// lacks it, unless it is a blob.
func (l layouts) open(r Reference, name string) (layoutPart, error) {
	file, info, err := l.openFile(r, "")
	if err != nil {
		return layoutPart{}, missing(r, err)
	}
	if info.IsDir() {
		file.Close()
		if file, info, err = l.openFile(r, name); err != nil {
			return layoutPart{}, lacks(r, name, err)
		}
		if !info.Mode().IsRegular() {
			file.Close()
			return layoutPart{}, invalid("%s of the layout %s is no regular file", name, r.Layout)
		}
		return layoutPart{io.NewSectionReader(file, 0, info.Size()), file}, nil
	}
	section, err := archived(file, info, name)
	if err != nil {
		file.Close()
		return layoutPart{}, lacks(r, name, err)
	}
	return layoutPart{section, file}, nil
}

// openFile opens the layout that r names, or a file of it. Nothing is waited for: a named
// pipe is opened as well, and refused by its mode.
func (l layouts) openFile(r Reference, name string) (*os.File, fs.FileInfo, error) {
	dir, inside, ok := l.within(r.Layout)
	if !ok {
		return nil, nil, errOutside
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, &rootError{err}
	}
	defer func() { _ = root.Close() }() // it was only read
	file, err := root.OpenFile(filepath.Join(inside, name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// within returns the folder of dirs that path lies in, and where it is there.
func (l layouts) within(path string) (dir, inside string, ok bool) {
	for _, dir := range l.dirs {
		inside, err := filepath.Rel(dir, path)
		if err == nil && filepath.IsLocal(inside) {
			return dir, inside, true
		}
	}
	return "", "", false
}

// rootError says that one of the folders of images cannot be opened: a file system that
// is not mounted, perhaps.
type rootError struct{ error }

// Unwrap returns the error itself.
func (e *rootError) Unwrap() error { return e.error }

// missing says for people why a layout cannot be opened.
func missing(r Reference, err error) error {
	switch {
	case errors.Is(err, errOutside):
		return &Error{Reason: model.ReasonRegistryNotAllowed, Message: fmt.Sprintf("%s: %v", r.Layout, err), Err: err}
	case errors.Is(err, fs.ErrNotExist) && !isRoot(err):
		return &Error{Reason: model.ReasonNotFound, Message: fmt.Sprintf("there is no folder or file %s", r.Layout), Err: err}
	}
	return unreadable(r, err)
}

// lacks says for people why a file of a layout cannot be opened.
func lacks(r Reference, name string, err error) error {
	sum, isBlob := strings.CutPrefix(name, "blobs/")
	switch {
	case !errors.Is(err, fs.ErrNotExist) || isRoot(err):
		return unreadable(r, err)
	case isBlob:
		return &Error{Reason: model.ReasonNotFound, Message: fmt.Sprintf("the layout %s has no %s", r.Layout, strings.Replace(sum, "/", ":", 1)), Err: err}
	}
	return errLacksFile
}

func isRoot(err error) bool {
	var e *rootError
	return errors.As(err, &e)
}

// unreadable says for people that a layout is there and cannot be read at present.
func unreadable(r Reference, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	message := fmt.Sprintf("the layout %s cannot be read: %v", r.Layout, err)
	if errors.Is(err, fs.ErrPermission) {
		message += "; let the user that Ingot runs as read it"
	}
	return &Error{Reason: model.ReasonRegistryUnreachable, Message: syntax.Printable(message), Err: err}
}

// blobPath is where a layout has a blob.
func blobPath(sum string) string { return "blobs/" + strings.Replace(sum, ":", "/", 1) }
