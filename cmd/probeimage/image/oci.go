package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	layout "oras.land/oras-go/v2/content/oci"

	"ingot/bootsvc/oci"
	"ingot/bootsvc/oci/artifact"
)

// mayReplace fails for a folder that holds something else than an OCI image layout: it is not
// to be lost because somebody named the folder above.
func mayReplace(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	if _, err := os.Stat(filepath.Join(folder, ocispec.ImageLayoutFile)); err != nil {
		return fmt.Errorf("layout: %s holds something else than an OCI image layout, and is left as it is: name a folder of its own, such as %s",
			folder, filepath.Join(folder, "probe"))
	}
	return nil
}

// writeLayout replaces the OCI image layout in a folder by that of the image. Tag names
// an index with an entry for the architecture.
func writeLayout(ctx context.Context, folder, arch string, p parts) error {
	if err := mayReplace(folder); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(folder), ".oci-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	store, err := layout.NewWithContext(ctx, temp)
	if err != nil {
		return err
	}
	img := artifact.Image{
		Architecture: arch,
		Annotations:  map[string]string{ocispec.AnnotationTitle: "ingot-probe", "org.kernel.release": p.release},
	}
	for _, l := range []struct {
		mediaType string
		content   []byte
	}{{oci.MediaKernel, p.kernel}, {oci.MediaInitramfs, p.initramfs}, {oci.MediaUKI, p.uki}} {
		if l.content != nil {
			img.Layers = append(img.Layers, artifact.Layer{MediaType: l.mediaType, Content: bytes.NewReader(l.content)})
		}
	}
	if _, err := artifact.Add(ctx, store, Tag, img); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(temp, 0o755), os.RemoveAll(folder)); err != nil {
		return err
	}
	return os.Rename(temp, folder)
}

// Push copies the image to an OCI registry under a reference registry/repository:tag,
// with the credentials of docker login, and returns the digest by which the image can be
// pinned. A registry on this machine is reached by plain HTTP.
func (r Result) Push(ctx context.Context, reference string) (string, error) {
	pushed, err := artifact.Copy(ctx, "oci:"+r.Layout, reference, artifact.Options{})
	if err != nil {
		return "", err
	}
	return pushed.Digest.String(), nil
}
