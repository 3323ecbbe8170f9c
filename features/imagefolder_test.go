package features

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	layout "oras.land/oras-go/v2/content/oci"

	"ingot/bootsvc/oci"
	"ingot/bootsvc/oci/artifact"
)

func imagesInFolder(ctx context.Context) (err error) {
	w := siteOf(ctx)
	w.imageDir = filepath.Join(w.dir, "images")
	if w.probe, err = w.keep(ctx, "probe"); err != nil {
		return err
	}
	if w.image["linux"], err = w.keep(ctx, "linux"); err != nil {
		return err
	}
	w.imagesSeen.shut()
	return nil
}

func (w *site) keep(ctx context.Context, name string) (reference string, err error) {
	folder := filepath.Join(w.imageDir, name)
	store, err := layout.NewWithContext(ctx, folder)
	if err != nil {
		return "", err
	}
	_, err = artifact.Add(ctx, store, "1", artifact.Image{Architecture: "amd64", Layers: []artifact.Layer{
		{MediaType: oci.MediaKernel, Content: strings.NewReader(name + " kernel")},
		{MediaType: oci.MediaInitramfs, Content: strings.NewReader(name + " initrd")},
		{MediaType: oci.MediaSquashfs, Content: strings.NewReader(name + " root")},
	}})
	return "oci:" + folder + ":1", err
}

// imageSettings say where images are kept without a registry.
func (w *site) imageSettings() string {
	if w.imageDir == "" {
		return ""
	}
	return fmt.Sprintf(", imageDirs: [%q]", w.imageDir)
}
