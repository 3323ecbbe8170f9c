package oci

import (
	"context"
	"errors"
	"io"

	"ingot/bootsvc/imagecache"
	"ingot/model"
)

// Prefetch brings the layers of an image into a cache, so that no server that boots
// it waits for its registry. Its error wraps imagecache.ErrNoRoom when layers will
// have to be streamed, which does not keep a server from booting.
func (i *Images) Prefetch(ctx context.Context, cache *imagecache.Cache, img model.PinnedImage) error {
	refs := make(map[imagecache.Key]model.ImageReference)
	var keys []imagecache.Key
	for _, layer := range Layers(&img) {
		if layer == nil {
			continue
		}
		ref, err := model.ParseImageReference(img.Repository + "@" + layer.Digest)
		if err != nil {
			return err
		}
		key := CacheKey(ref, layer)
		refs[key] = ref
		keys = append(keys, key)
	}
	return cache.Prefetch(ctx, keys, func(key imagecache.Key) imagecache.Fetch {
		return i.Fetch(refs[key], &model.Layer{Digest: key.Digest, Size: key.Size})
	})
}

// CacheKey returns what a layer is kept under in the cache.
func CacheKey(ref model.ImageReference, layer *model.Layer) imagecache.Key {
	return imagecache.Key{Digest: layer.Digest, Size: layer.Size, From: ref.Name()}
}

// Fetch returns how the cache fetches a layer.
func (i *Images) Fetch(ref model.ImageReference, layer *model.Layer) imagecache.Fetch {
	return func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		body, err := i.openAt(ctx, ref, layer, offset)
		if err != nil && !errors.Is(err, imagecache.ErrNoOffset) {
			return nil, i.told(ref.String(), i.explain(ref.String(), &askError{err}))
		}
		return body, err
	}
}

// Looks lets check look at a layer as the cache has it, or fetches it.
func (i *Images) Looks(ctx context.Context, cache *imagecache.Cache, repository string, layer *model.Layer, check func(io.ReaderAt) bool) (bool, error) {
	ref, err := model.ParseImageReference(repository + "@" + layer.Digest)
	if err != nil {
		return false, err
	}
	blob, err := cache.Get(ctx, CacheKey(ref, layer), i.Fetch(ref, layer))
	if err != nil {
		return false, err
	}
	defer func() { _ = blob.Close() }() // it was only read
	return check(readerAt{blob}), nil
}

// readerAt reads from a blob for one reader.
type readerAt struct{ io.ReadSeeker }

// ReadAt implements io.ReaderAt.
func (r readerAt) ReadAt(p []byte, at int64) (int, error) {
	if _, err := r.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}
