package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
)

// Layer is one layer of an image.
type Layer struct {
	MediaType string
	Content   io.ReadSeeker // is read twice, for its digest is what it is kept under
}

// Image is a boot image for one architecture.
type Image struct {
	Architecture string // amd64 or arm64
	Layers       []Layer
	Annotations  map[string]string // of its manifest
}

// Add keeps an image in a store. tag then means an index with the image, and with those
// for other architectures that tag meant before.
func Add(ctx context.Context, store oras.Target, tag string, img Image) (ocispec.Descriptor, error) {
	before, had, err := indexAt(ctx, store, tag)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	entry, err := addManifest(ctx, store, img)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	index := ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
		Manifests: withEntry(before.Manifests, entry),
	}
	d, err := pushJSON(ctx, store, index.MediaType, index)
	if err != nil {
		return d, err
	}
	if err := store.Tag(ctx, d, tag); err != nil {
		return d, err
	}
	deleter, ok := store.(content.Deleter)
	if !ok || had.Digest == "" || had.Digest == d.Digest {
		return d, nil
	}
	if tagged, err := isTagged(ctx, store, had); err != nil || tagged {
		return d, err
	}
	return d, deleter.Delete(ctx, had) // and what it alone referred to
}

// isTagged reports whether a tag of a store means an index: equal images have one, whatever
// they are called.
func isTagged(ctx context.Context, store oras.Target, index ocispec.Descriptor) (bool, error) {
	lister, ok := store.(registry.TagLister)
	if !ok {
		return true, nil // nobody can tell
	}
	tagged := false
	err := lister.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			d, err := store.Resolve(ctx, tag)
			if err != nil {
				return err
			}
			tagged = tagged || d.Digest == index.Digest
		}
		return nil
	})
	return tagged, err
}

// withEntry returns entries with one that takes the place of that of its architecture.
func withEntry(entries []ocispec.Descriptor, entry ocispec.Descriptor) []ocispec.Descriptor {
	others := slices.DeleteFunc(slices.Clone(entries), func(d ocispec.Descriptor) bool {
		return d.Platform != nil && d.Platform.Architecture == entry.Platform.Architecture
	})
	return append(others, entry)
}

// indexAt returns the index that a tag means in a store, which is empty if it means none.
func indexAt(ctx context.Context, store oras.ReadOnlyTarget, tag string) (index ocispec.Index, d ocispec.Descriptor, err error) {
	d, err = store.Resolve(ctx, tag)
	if errors.Is(err, errdef.ErrNotFound) {
		return index, ocispec.Descriptor{}, nil
	}
	if err != nil {
		return index, d, err
	}
	if d.MediaType != ocispec.MediaTypeImageIndex {
		return index, d, fmt.Errorf("tag %s means something else than an image index already: choose another tag", tag)
	}
	raw, err := content.FetchAll(ctx, store, d)
	if err != nil {
		return index, d, err
	}
	return index, d, json.Unmarshal(raw, &index)
}

// addManifest keeps an image's layers and its manifest, and returns its entry of an index.
func addManifest(ctx context.Context, store content.Pusher, img Image) (ocispec.Descriptor, error) {
	platform := &ocispec.Platform{Architecture: img.Architecture, OS: "linux"}
	config, err := pushJSON(ctx, store, ocispec.MediaTypeImageConfig, ocispec.Image{
		Platform: *platform, RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{}},
	})
	if err != nil {
		return config, err
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: config, Annotations: img.Annotations,
	}
	for _, layer := range img.Layers {
		d, err := push(ctx, store, layer)
		if err != nil {
			return d, err
		}
		manifest.Layers = append(manifest.Layers, d)
	}
	entry, err := pushJSON(ctx, store, manifest.MediaType, manifest)
	entry.Platform = platform
	return entry, err
}

func pushJSON(ctx context.Context, store content.Pusher, mediaType string, value any) (ocispec.Descriptor, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return push(ctx, store, Layer{mediaType, bytes.NewReader(raw)})
}

// push keeps a blob, unless the store has it.
func push(ctx context.Context, store content.Pusher, l Layer) (ocispec.Descriptor, error) {
	hash := digest.Canonical.Digester()
	size, err := io.Copy(hash.Hash(), l.Content)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if _, err := l.Content.Seek(0, io.SeekStart); err != nil {
		return ocispec.Descriptor{}, err
	}
	d := ocispec.Descriptor{MediaType: l.MediaType, Digest: hash.Digest(), Size: size}
	err = store.Push(ctx, d, l.Content)
	if errors.Is(err, errdef.ErrAlreadyExists) {
		err = nil
	}
	return d, err
}
