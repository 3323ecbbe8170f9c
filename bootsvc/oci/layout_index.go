package oci

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// maxArchived is how many files an archive of a layout may have.
const maxArchived = 10_000

// named returns the entry of a layout's index that has a tag. Without one it is the only
// entry, the only one that has a tag, the one that is tagged latest, or else the whole index.
func (m manifest) named(tag string) (entry descriptor, whole bool, err error) {
	if tag == "" && len(m.Manifests) == 1 {
		return m.Manifests[0], false, nil
	}
	var tagged []descriptor
	for _, d := range m.Manifests {
		name := d.Annotations[ocispec.AnnotationRefName]
		if name != "" && (name == tag || tag == "" && name == "latest") {
			return d, false, nil
		}
		if name != "" {
			tagged = append(tagged, d)
		}
	}
	if tag == "" && len(tagged) == 1 { // the others are what it refers to, as oras writes it
		return tagged[0], false, nil
	}
	platformless := func(d descriptor) bool { return d.Platform == nil }
	if tag == "" && len(m.Manifests) > 0 && !slices.ContainsFunc(m.Manifests, platformless) {
		return descriptor{}, true, nil
	}
	e := &Error{Reason: model.ReasonNotFound}
	switch tags := m.tags(); {
	case len(m.Manifests) == 0:
		e.Message = "the layout has no image"
	case tag == "":
		e.Message = "the layout has several images: name one by its tag or digest; its tags are " + tags
	default:
		e.Message = "the layout has no tag " + tag + "; its tags are " + tags
	}
	return descriptor{}, false, e
}

// tags lists the tags of a layout's index, for an error.
func (m manifest) tags() string {
	var have []string
	for _, d := range m.Manifests {
		if name := d.Annotations[ocispec.AnnotationRefName]; name != "" {
			have = append(have, syntax.Printable(name))
		}
	}
	if len(have) == 0 {
		return "none"
	}
	slices.Sort(have)
	return strings.Join(have[:min(len(have), 20)], ", ")
}

var errNoArchive = errors.New("it is neither a folder nor a tar archive; one that is compressed has to be unpacked first")

// archived returns a file of a tar archive, without reading the others.
func archived(file *os.File, info fs.FileInfo, name string) (*io.SectionReader, error) {
	if !info.Mode().IsRegular() {
		return nil, errNoArchive
	}
	archive := tar.NewReader(file)
	for range maxArchived {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, fs.ErrNotExist
		case err != nil:
			return nil, errors.Join(errNoArchive, err)
		case header.Typeflag != tar.TypeReg || path.Clean(header.Name) != name:
			continue
		}
		// archive/tar reads a header exactly, so the content begins here.
		begin, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		return io.NewSectionReader(file, begin, header.Size), nil
	}
	return nil, fs.ErrNotExist
}
