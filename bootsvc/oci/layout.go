package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// layouts reads images from OCI image layouts on this machine: folders, or tar archives of
// them (image-spec v1.1, image-layout.md). They lie in the folders dirs, and nothing
// outside is opened: links that lead out of them are not followed.
type layouts struct{ dirs []string }

// manifest reads the manifest at a tag or digest and verifies it. Without either it is
// the only image of the layout, the one that is tagged latest, or the layout's own index.
func (l layouts) manifest(r model.ImageReference, at string) (manifest, string, error) {
	if err := l.checkVersion(r); err != nil {
		return manifest{}, "", err
	}
	mediaType := ""
	if !model.IsImageDigest(at) {
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

func (l layouts) checkVersion(r model.ImageReference) error {
	raw, err := l.read(r, ocispec.ImageLayoutFile)
	if err != nil {
		return err
	}
	var layout ocispec.ImageLayout
	_ = json.Unmarshal(raw, &layout) // then it has no version
	if layout.Version != ocispec.ImageLayoutVersion {
		return invalid("%s is an OCI image layout of version %q; %s is known", r.Layout, syntax.Printable(layout.Version), ocispec.ImageLayoutVersion)
	}
	return nil
}

func (l layouts) index(r model.ImageReference) (manifest, error) {
	raw, err := l.read(r, ocispec.ImageIndexFile)
	if err != nil {
		return manifest{}, err
	}
	m, err := parseManifest(raw, mediaOCIIndex)
	if err == nil && !m.index() {
		return manifest{}, invalid("%s of the layout %s is not an image index", ocispec.ImageIndexFile, r.Layout)
	}
	return m, err
}

// read reads a file of a layout that is as large as manifests may be.
func (l layouts) read(r model.ImageReference, name string) ([]byte, error) {
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
func (l layouts) openAt(r model.ImageReference, layer *model.Layer, offset int64) (io.ReadCloser, error) {
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

type layoutPart struct {
	*io.SectionReader
	file *os.File // that it is in
}

// Close implements io.Closer.
func (p layoutPart) Close() error { return p.file.Close() }

// open opens a file of the layout that r names. Nothing outside the folders is opened, and nothing waits: a named pipe
// is opened as well, and refused by its mode.
func (l layouts) open(r model.ImageReference, name string) (layoutPart, error) {
	dir, inside, err := l.allowed(r)
	if err != nil {
		return layoutPart{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil { // a file system that is not mounted, perhaps
		return layoutPart{}, unreadable(r, err)
	}
	defer func() { _ = root.Close() }() // it was only read
	file, info, err := openIn(root, inside)
	if errors.Is(err, fs.ErrNotExist) {
		return layoutPart{}, &Error{Reason: model.ReasonNotFound, Message: fmt.Sprintf("there is no folder or file %s", r.Layout), Err: err}
	}
	if err != nil {
		return layoutPart{}, unreadable(r, err)
	}
	var section *io.SectionReader
	if info.IsDir() {
		file.Close()
		if file, info, err = openIn(root, filepath.Join(inside, name)); err != nil {
			return layoutPart{}, lacks(r, name, err)
		}
		section = io.NewSectionReader(file, 0, info.Size())
		if !info.Mode().IsRegular() {
			err = invalid("%s of the layout %s is not a regular file", name, r.Layout)
		}
	} else {
		section, err = archived(file, info, name)
	}
	if err != nil {
		file.Close()
		return layoutPart{}, lacks(r, name, err)
	}
	return layoutPart{section, file}, nil
}

func openIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
	}
	return file, info, err
}

// allowed returns the folder of dirs that a layout is in, and where it is there.
func (l layouts) allowed(r model.ImageReference) (dir, inside string, err error) {
	for _, dir := range l.dirs {
		inside, err := filepath.Rel(dir, r.Layout)
		if err == nil && filepath.IsLocal(inside) {
			return dir, inside, nil
		}
	}
	return "", "", &Error{Reason: model.ReasonRegistryNotAllowed, Message: r.Layout + ": it lies in none of the folders of boot.imageDirs"}
}

// lacks says for people why a file of a layout cannot be opened.
func lacks(r model.ImageReference, name string, err error) error {
	sum, isBlob := strings.CutPrefix(name, "blobs/")
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return unreadable(r, err)
	case isBlob:
		return &Error{Reason: model.ReasonNotFound, Message: fmt.Sprintf("the layout %s has no %s", r.Layout, strings.Replace(sum, "/", ":", 1)), Err: err}
	}
	return invalid("%s is not an OCI image layout: it has no file %s", r.Layout, name)
}

// unreadable says for people that a layout is there and cannot be read at present.
func unreadable(r model.ImageReference, err error) error {
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

func blobPath(sum string) string { return "blobs/" + strings.Replace(sum, ":", "/", 1) }
