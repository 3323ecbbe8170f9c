package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	layout "oras.land/oras-go/v2/content/oci"

	"ingot/bootsvc/oci"
	"ingot/bootsvc/oci/artifact"
	"ingot/model"
)

// imageCommand is what one does with boot images.
type imageCommand struct {
	Make    imageMakeCommand    `cmd:"" help:"Make an image from a disk image, or from a kernel, an initramfs, a squashfs or a UKI."`
	Inspect imageInspectCommand `cmd:"" help:"Report whether servers can boot an image, and on which architectures."`
	Push    imagePushCommand    `cmd:"" help:"Copy an image from a layout to a registry."`
	Pull    imagePullCommand    `cmd:"" help:"Copy an image from a registry to a layout."`
}

// Help implements kong.HelpProvider.
func (imageCommand) Help() string {
	return `An image is in a registry (registry.example.com/os:v1) or in an OCI image layout, a folder or tar archive on this machine (oci:images/os:v1). Credentials are those of docker login.

Examples:

  ingot image make --kernel vmlinuz --initramfs initrd.img oci:images/os:v1
  ingot image make --disk debian-13-genericcloud-amd64.qcow2 oci:images/debian:13
  ingot image inspect oci:images/os:v1
  ingot image push oci:images/os:v1 registry.example.com/os:v1
  ingot image pull registry.example.com/os:v1 oci:/usr/share/ingot/images/os:v1`
}

// registryFlags say how a registry is spoken to.
type registryFlags struct {
	PlainHTTP bool `name:"plain-http" help:"Use HTTP without TLS; always done for a registry on this machine."`
}

type imagePushCommand struct {
	registryFlags `embed:""`

	From string `arg:"" help:"The image: oci:FOLDER:TAG, or an archive."`
	To   string `arg:"" help:"Where to: REGISTRY/REPOSITORY:TAG."`
}

// Run pushes an image.
func (p imagePushCommand) Run(ctx context.Context, c *console) error {
	if !isLayout(p.From) || isLayout(p.To) {
		return usageError("push copies from a layout to a registry: ingot image push oci:FOLDER:TAG REGISTRY/REPOSITORY:TAG")
	}
	return copyImage(ctx, c, p.From, p.To, p.registryFlags)
}

type imagePullCommand struct {
	registryFlags `embed:""`

	From string `arg:"" help:"The image: REGISTRY/REPOSITORY:TAG, or @sha256:…"`
	To   string `arg:"" help:"Where to: oci:FOLDER:TAG."`
}

// Run pulls an image.
func (p imagePullCommand) Run(ctx context.Context, c *console) error {
	if isLayout(p.From) || !isLayout(p.To) {
		return usageError("pull copies from a registry to a layout: ingot image pull REGISTRY/REPOSITORY:TAG oci:FOLDER:TAG")
	}
	return copyImage(ctx, c, p.From, p.To, p.registryFlags)
}

func isLayout(ref string) bool { return strings.HasPrefix(ref, "oci:") }

type imageCopy struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"` // that were copied; what was there already is not
}

// copyImage copies an image, and shows how far it is.
func copyImage(ctx context.Context, c *console, from, to string, flags registryFlags) error {
	p := newCopyProgress(c)
	d, err := artifact.Copy(ctx, from, to, artifact.Options{
		PlainHTTP: flags.PlainHTTP, Began: p.began, Copied: &p.copied,
	})
	p.end()
	if err != nil {
		return err
	}
	result := imageCopy{from, to, d.Digest.String(), p.copied.Load()}
	if c.json() {
		return c.printJSON(result)
	}
	c.printf("%s\n", printable(to))
	c.printf("%s, %s copied\n", result.Digest, sizeText(result.Bytes))
	return nil
}

type imageMakeCommand struct {
	Kernel    string `type:"existingfile" placeholder:"FILE" help:"The kernel."`
	Initramfs string `type:"existingfile" placeholder:"FILE" help:"The initramfs."`
	Squashfs  string `type:"existingfile" placeholder:"FILE" help:"The root file system that the initramfs fetches."`
	UKI       string `name:"uki" type:"existingfile" placeholder:"FILE" help:"A unified kernel image, for UEFI HTTP boot."`
	Disk      string `type:"existingfile" placeholder:"FILE" help:"A disk image, raw or qcow2, compressed with zstd, gzip, xz or bzip2 or not: it is installed on the server. An uncompressed raw one is compressed with zstd."`
	Arch      string `enum:"amd64,arm64" default:"amd64" help:"Its architecture: amd64 or arm64."`
	To        string `arg:"" help:"Where to: oci:FOLDER:TAG. An image that the tag has for another architecture is kept."`
}

// Run makes an image.
func (m imageMakeCommand) Run(ctx context.Context, c *console) error {
	ref, err := m.target()
	if err != nil {
		return err
	}
	img := artifact.Image{Architecture: m.Arch}
	for _, l := range []struct{ mediaType, file string }{
		{oci.MediaKernel, m.Kernel}, {oci.MediaInitramfs, m.Initramfs}, {oci.MediaSquashfs, m.Squashfs}, {oci.MediaUKI, m.UKI},
	} {
		if l.file == "" {
			continue
		}
		content, err := os.Open(l.file)
		if err != nil {
			return err
		}
		defer content.Close()
		start, err := io.ReadAll(io.LimitReader(content, artifact.StartSize))
		if err == nil {
			_, err = content.Seek(0, io.SeekStart)
		}
		if err == nil {
			err = artifact.CheckStart(l.mediaType, m.Arch, start)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.file, err)
		}
		img.Layers = append(img.Layers, artifact.Layer{MediaType: l.mediaType, Content: content})
	}
	if m.Disk != "" {
		disk, remove, err := diskLayer(m.Disk)
		if err != nil {
			return err
		}
		defer remove()
		img.Layers = append(img.Layers, disk)
	}
	store, err := layout.NewWithContext(ctx, ref.Layout)
	if err != nil {
		return err
	}
	d, err := artifact.Add(ctx, store, ref.Tag, img)
	if err != nil {
		return fmt.Errorf("make %s: %w", m.To, err)
	}
	result := imageCopy{To: m.To, Digest: d.Digest.String()}
	for _, l := range img.Layers {
		size, _ := l.Content.Seek(0, io.SeekEnd) // of a file that was read
		result.Bytes += size
	}
	if c.json() {
		return c.printJSON(result)
	}
	c.printf("%s\n%s for %s, %s\n", printable(m.To), result.Digest, m.Arch, sizeText(result.Bytes))
	return nil
}

// target returns where the image is made, once it is known that it can be booted.
func (m imageMakeCommand) target() (model.ImageReference, error) {
	switch {
	case (m.Kernel == "") != (m.Initramfs == ""):
		return model.ImageReference{}, usageError("a kernel and its initramfs belong together: give --kernel and --initramfs")
	case m.Kernel == "" && m.UKI == "" && m.Disk == "":
		return model.ImageReference{}, usageError("nothing to boot: give --disk, --kernel and --initramfs, --uki, or all of them")
	case !isLayout(m.To):
		return model.ImageReference{}, usageError("%s is not a layout: make it in one, oci:FOLDER:TAG, and push that", m.To)
	}
	local, err := artifact.LocalReference(m.To)
	if err != nil {
		return model.ImageReference{}, err
	}
	ref, err := model.ParseImageReference(local)
	switch {
	case err != nil:
		return ref, fmt.Errorf("%s: %w", m.To, err)
	case ref.Digest != "":
		return ref, usageError("%s: an image is made under a tag, its digest follows from its content", m.To)
	case ref.Tag == "":
		ref.Tag = "latest"
	}
	return ref, nil
}

func sizeText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
