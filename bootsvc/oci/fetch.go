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
	refs := make(map[imagecache.Key]Reference)
	var keys []imagecache.Key
	for _, layer := range Layers(&img) {
		if layer == nil {
			continue
		}
		ref, err := ParseReference(img.Repository + "@" + layer.Digest)
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
func CacheKey(ref Reference, layer *model.Layer) imagecache.Key {
	return imagecache.Key{Digest: layer.Digest, Size: layer.Size, From: ref.Name()}
}

// Fetch returns how the cache fetches a layer.
func (i *Images) Fetch(ref Reference, layer *model.Layer) imagecache.Fetch {
	return func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		body, err := i.openAt(ctx, ref, layer, offset)
		if err != nil && !errors.Is(err, imagecache.ErrNoOffset) {
			return nil, i.told(ref.String(), i.explain(ref.String(), &askError{err}))
		}
		return body, err
	}
}
