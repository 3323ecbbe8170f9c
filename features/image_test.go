package features

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ingot/bootsvc/oci/ociserver"
)

func bootImage(name string) ociserver.Image {
	return ociserver.Image{Kernel: []byte(name + " kernel"), Initrd: []byte(name + " initrd"), Squashfs: []byte(name + " root")}
}

func imageIs(ctx context.Context, name, flaw string) error {
	w := siteOf(ctx)
	img := bootImage(name)
	switch flaw {
	case "has no initramfs":
		img.Initrd = nil
	case "is for arm64 alone":
		img.Architecture = "arm64"
	case "has two kernels":
		return w.pushTwoKernels(name)
	case "is not what its digest says":
		img.Initrd = []byte(name + " initrd, as it should be")
		w.images.Corrupt("images/"+name, img.Initrd, []byte(name+" initrd, as it should BE"))
	case "is in a folder that claims may not name":
		w.image[name] = "oci:" + w.dir
		return nil
	case "was never pushed":
		w.image[name] = w.imagesSeen.host() + "/images/" + name + ":1"
		return nil
	default:
		return fmt.Errorf("no image is known that %s", flaw)
	}
	return w.pushImage(name, img)
}

func imageIsWhole(ctx context.Context, name string) error {
	return siteOf(ctx).pushImage(name, bootImage(name))
}

func (w *site) pushImage(name string, img ociserver.Image) error {
	reference, _, err := w.images.Push("images/"+name, "1", img)
	w.image[name] = strings.Replace(reference, w.images.Host(), w.imagesSeen.host(), 1)
	return err
}

func (w *site) pushTwoKernels(name string) error {
	repository := "images/" + name
	manifest, err := w.images.PushManifest(repository, ociserver.MediaManifest, map[string]any{
		"schemaVersion": 2, "mediaType": ociserver.MediaManifest,
		"config": w.images.PushBlob(repository, "application/vnd.oci.image.config.v1+json", []byte("{}")),
		"layers": []ociserver.Descriptor{
			w.images.PushBlob(repository, ociserver.MediaKernel, []byte("a kernel")),
			w.images.PushBlob(repository, ociserver.MediaKernel, []byte("another kernel")),
			w.images.PushBlob(repository, ociserver.MediaInitrd, []byte("initrd")),
		},
	})
	w.images.Tag(repository, "1", manifest.Digest)
	w.image[name] = w.imagesSeen.host() + "/" + repository + ":1"
	return err
}

func tagMoves(ctx context.Context, image, tag string) error {
	return siteOf(ctx).pushImage(tag, bootImage(image))
}

// registryGoesDown ends the registry of images. Nobody stands before it who holds
// requests back.
func registryGoesDown(ctx context.Context) error {
	siteOf(ctx).imagesSeen.shut()
	return nil
}

func butaneMistake(ctx context.Context, claim string, line int) error {
	if line != 5 {
		return errors.New("the mistake is in line 5")
	}
	siteOf(ctx).ignition[claim] = "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n  - pfad: /etc/motd-" + claimSecret + "\n    " + claimSecret + ": /etc/motd\n"
	return nil
}
