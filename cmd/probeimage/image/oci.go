package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// Media types of a boot image's layers.
const (
	mediaKernel    = "application/vnd.ironcore.image.kernel"
	mediaInitramfs = "application/vnd.ironcore.image.initramfs"
	mediaUKI       = "application/vnd.ironcore.image.uki"
)

// writeLayout replaces the OCI image layout in a folder by that of the image. Tag names
// an index with an entry for the architecture.
func writeLayout(ctx context.Context, folder, arch string, p parts) error {
	temp, err := os.MkdirTemp(filepath.Dir(folder), ".oci-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	store, err := oci.NewWithContext(ctx, temp)
	if err != nil {
		return err
	}
	if err := pushImage(ctx, store, arch, p); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(temp, 0o755), os.RemoveAll(folder)); err != nil {
		return err
	}
	return os.Rename(temp, folder)
}

// pushImage puts layers, manifest and index into a store and tags the index.
func pushImage(ctx context.Context, store oras.Target, arch string, p parts) error {
	platform := &ocispec.Platform{Architecture: arch, OS: "linux"}
	config, err := pushJSON(ctx, store, ocispec.MediaTypeImageConfig, ocispec.Image{
		Platform: *platform, RootFS: ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{}},
	})
	if err != nil {
		return err
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config,
		Annotations: map[string]string{ocispec.AnnotationTitle: "ingot-probe", "org.kernel.release": p.release},
	}
	for _, layer := range []struct {
		mediaType string
		content   []byte
	}{{mediaKernel, p.kernel}, {mediaInitramfs, p.initramfs}, {mediaUKI, p.uki}} {
		if layer.content == nil {
			continue
		}
		d, err := push(ctx, store, layer.mediaType, layer.content)
		if err != nil {
			return err
		}
		manifest.Layers = append(manifest.Layers, d)
	}
	entry, err := pushJSON(ctx, store, manifest.MediaType, manifest)
	if err != nil {
		return err
	}
	entry.Platform = platform
	index, err := pushJSON(ctx, store, ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{entry},
	})
	if err != nil {
		return err
	}
	return store.Tag(ctx, index, Tag)
}

func pushJSON(ctx context.Context, store oras.Target, mediaType string, value any) (ocispec.Descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return push(ctx, store, mediaType, content)
}

func push(ctx context.Context, store oras.Target, mediaType string, content []byte) (ocispec.Descriptor, error) {
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	err := store.Push(ctx, d, bytes.NewReader(content))
	if errors.Is(err, errdef.ErrAlreadyExists) {
		err = nil
	}
	return d, err
}

// Push copies the image to an OCI registry under a reference registry/repository:tag,
// with the credentials of docker login, and returns the digest by which the image can be
// pinned. A registry on this machine is reached by plain HTTP.
func (r Result) Push(ctx context.Context, reference string) (string, error) {
	repository, err := remote.NewRepository(reference)
	if err != nil {
		return "", fmt.Errorf("push to %q: want registry/repository:tag: %w", reference, err)
	}
	tag := repository.Reference.Reference
	if tag == "" {
		tag = Tag
	}
	repository.PlainHTTP = loopback(repository.Reference.Registry)
	client := &auth.Client{Client: retry.DefaultClient, Cache: auth.NewCache()}
	if store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil {
		client.Credential = credentials.Credential(store)
	}
	repository.Client = client
	store, err := oci.NewFromFS(ctx, os.DirFS(r.Layout))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", r.Layout, err)
	}
	pushed, err := oras.Copy(ctx, store, Tag, repository, tag, oras.DefaultCopyOptions)
	if err != nil {
		return "", fmt.Errorf("push to %s: %w", reference, err)
	}
	return pushed.Digest.String(), nil
}

// loopback reports whether an OCI registry is on this machine.
func loopback(registry string) bool {
	host, _, err := net.SplitHostPort(registry)
	if err != nil {
		host = registry
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
