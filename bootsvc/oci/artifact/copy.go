package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	layout "oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"ingot/bootsvc/oci"
	"ingot/model"
)

// Options are how Copy speaks to registries, and whom it tells how far it is.
type Options struct {
	PlainHTTP bool // without TLS; registries on this machine are reached so in any case
	// Began is called for each blob before it is copied; Had for each that was there already.
	// Several are copied at once, so both may be called concurrently.
	Began, Had func(ocispec.Descriptor)
	// Copied counts the bytes that were read of blobs; nil counts nothing.
	Copied *atomic.Int64
}

// LocalReference returns a reference whose path of a layout, oci:folder, is absolute.
func LocalReference(ref string) (string, error) {
	path, ok := strings.CutPrefix(ref, "oci:")
	if !ok || filepath.IsAbs(path) {
		return ref, nil
	}
	name, rest := path, ""
	if end := strings.IndexAny(path, ":@"); end >= 0 {
		name, rest = path[:end], path[end:]
	}
	if name == "" {
		return "", fmt.Errorf("%q names no folder: write it as oci:folder:tag", ref)
	}
	abs, err := filepath.Abs(name)
	return "oci:" + abs + rest, err
}

// Copy copies an image, with all its architectures, from one reference to another, each of
// a registry or of a layout, and returns what it is known by at either.
func Copy(ctx context.Context, from, to string, o Options) (ocispec.Descriptor, error) {
	fromRef, err := parse(from)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	toRef, err := parse(to)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if toRef.Digest != "" {
		return ocispec.Descriptor{}, fmt.Errorf("%s: where to copy to is said by a tag, not by a digest", to)
	}
	source, at, err := o.source(ctx, fromRef)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("read %s: %w", from, err)
	}
	target, err := o.target(ctx, toRef)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("write %s: %w", to, err)
	}
	if o.Copied != nil {
		source = counting{source, o.Copied}
	}
	tag := toRef.Tag
	if tag == "" {
		tag = defaultTag
	}
	d, err := oras.Copy(ctx, source, at, target, tag, o.copyOptions())
	if err != nil {
		return d, fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return d, nil
}

// defaultTag is what a layout's image is called by whoever does not say.
const defaultTag = "latest"

func parse(ref string) (model.ImageReference, error) {
	local, err := LocalReference(ref)
	if err != nil {
		return model.ImageReference{}, err
	}
	r, err := model.ParseImageReference(local)
	if err != nil {
		return r, fmt.Errorf("%s: %w", ref, err)
	}
	return r, nil
}

func (o Options) copyOptions() oras.CopyOptions {
	options := oras.DefaultCopyOptions
	if o.Began != nil {
		options.PreCopy = func(_ context.Context, d ocispec.Descriptor) error { o.Began(d); return nil }
	}
	if o.Had != nil {
		options.OnCopySkipped = func(_ context.Context, d ocispec.Descriptor) error { o.Had(d); return nil }
	}
	return options
}

func (o Options) source(ctx context.Context, r model.ImageReference) (oras.ReadOnlyTarget, string, error) {
	at := r.Digest + r.Tag // one of them is set
	if r.Layout == "" {
		repository, err := o.repository(r)
		return repository, at, err
	}
	info, err := os.Stat(r.Layout)
	if err != nil {
		return nil, "", err
	}
	open := func() (*layout.ReadOnlyStore, error) { return layout.NewFromTar(ctx, r.Layout) }
	if info.IsDir() {
		open = func() (*layout.ReadOnlyStore, error) { return layout.NewFromFS(ctx, os.DirFS(r.Layout)) }
	}
	store, err := open()
	if err == nil && at == "" {
		at, err = onlyTag(ctx, store)
	}
	return store, at, err
}

// onlyTag returns the tag that a layout's image is meant by when none is said.
func onlyTag(ctx context.Context, store registry.TagLister) (string, error) {
	tags, err := registry.Tags(ctx, store)
	switch {
	case err != nil:
		return "", err
	case slices.Contains(tags, defaultTag):
		return defaultTag, nil
	case len(tags) == 1:
		return tags[0], nil
	case len(tags) == 0:
		return "", errors.New("the layout has no tag: name the image by its digest, as oci:folder@sha256:…")
	}
	return "", fmt.Errorf("the layout has several images, name one by its tag: %s", strings.Join(tags, ", "))
}

func (o Options) target(ctx context.Context, r model.ImageReference) (oras.Target, error) {
	if r.Layout == "" {
		return o.repository(r)
	}
	if info, err := os.Stat(r.Layout); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: layouts are written as folders, which tar packs", r.Layout)
	}
	return layout.NewWithContext(ctx, r.Layout)
}

func (o Options) repository(r model.ImageReference) (*remote.Repository, error) {
	repository, err := remote.NewRepository(r.Name())
	if err != nil {
		return nil, err
	}
	repository.PlainHTTP = o.PlainHTTP || oci.OnThisMachine(r.Registry)
	client := &auth.Client{Client: retry.DefaultClient, Cache: auth.NewCache()}
	if store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil {
		client.Credential = credentials.Credential(store)
	}
	client.SetUserAgent("ingot")
	repository.Client = client
	return repository, nil
}

// counting counts the bytes that are read of a target.
type counting struct {
	oras.ReadOnlyTarget
	n *atomic.Int64
}

// Fetch implements content.Fetcher.
func (c counting) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := c.ReadOnlyTarget.Fetch(ctx, d)
	return countingBody{body, c.n}, err
}

type countingBody struct {
	io.ReadCloser
	n *atomic.Int64
}

// Read implements io.Reader.
func (b countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}
