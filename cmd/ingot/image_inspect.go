package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/oci"
	"ingot/bootsvc/oci/artifact"
	"ingot/cmd/daemon/config"
	"ingot/model"
)

type imageInspectCommand struct {
	registryFlags `embed:""`

	Config string   `short:"c" placeholder:"FILE" help:"Use the registries, credentials and folders of this configuration, as the daemon does."`
	Arch   []string `enum:"amd64,arm64" placeholder:"ARCHITECTURE" help:"The architectures that it must boot on. Default: any one."`
	Verify bool     `help:"Also fetch the layers from a registry, and verify their digests and formats. Always done for a layout."`
	Image  string   `arg:"" help:"The image: REGISTRY/REPOSITORY:TAG, oci:FOLDER:TAG, https://HOST/PATH#sha256:DIGEST or a file."`
}

// Help implements kong.HelpProvider.
func (imageInspectCommand) Help() string {
	return `Reads the image with the daemon's own code. Of a layout, the digest of each layer is verified, and that kernel, initramfs, squashfs and UKI are files of that format for the architecture; of a registry, only with --verify. A disk image is always fetched, because only its content shows its format, size, partitions and firmware; with --arch, only those for these architectures. Exits 1 if no server could boot it, or none of an architecture that --arch names.

Examples:

  ingot image inspect registry.example.com/os:v1
  ingot image inspect --config /etc/ingot/ingot.yaml --arch amd64 --arch arm64 oci:/srv/images/os:v1
  ingot image inspect https://cloud.debian.org/images/…/debian-13-genericcloud-amd64.qcow2#sha512:…
  ingot image inspect disk.raw.zst`
}

// inspectedArchitectures are those that servers have.
var inspectedArchitectures = []string{"amd64", "arm64"}

type inspection struct {
	Image         string         `json:"image"`
	Architectures []inspectedFor `json:"architectures"`
}

// inspectedFor is an image as a server of one architecture would boot it.
type inspectedFor struct {
	Architecture string       `json:"architecture"`
	Bootable     bool         `json:"bootable"`
	Digest       string       `json:"digest,omitempty"`
	By           []string     `json:"by,omitempty"` // in which ways firmware can start it
	Kernel       *model.Layer `json:"kernel,omitempty"`
	Initramfs    *model.Layer `json:"initramfs,omitempty"`
	Squashfs     *model.Layer `json:"squashfs,omitempty"`
	UKI          *model.Layer `json:"uki,omitempty"`
	// Disk is what is installed; where it is, the other layers are booted only for claims that
	// boot from the network each time.
	Disk    *diskimage.Image `json:"disk,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Message string           `json:"message,omitempty"`
}

// Run prints what servers make of an image.
func (i imageInspectCommand) Run(ctx context.Context, c *console) error {
	disks, err := newDiskInspector(c)
	if err != nil {
		return err
	}
	defer disks.close()
	result, err := i.inspect(ctx, c, disks)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.json() {
		err = c.printJSON(result)
	} else {
		c.printInspection(result)
	}
	if err == nil && !result.bootable(i.Arch) {
		return exitStatus(exitFailed)
	}
	return err
}

func (i imageInspectCommand) inspect(ctx context.Context, c *console, disks *diskInspector) (inspection, error) {
	result := inspection{Image: i.Image}
	if src, ok, err := i.diskSource(c); ok {
		for _, architecture := range inspectedArchitectures {
			if err != nil {
				result.Architectures = append(result.Architectures, inspectedError(architecture, err))
				continue
			}
			result.Architectures = append(result.Architectures, disks.diskOf(ctx, architecture, src))
		}
		return result, nil
	}
	ref, err := artifact.LocalReference(i.Image)
	if err != nil {
		return result, err
	}
	options, err := i.options(c, ref)
	if err != nil {
		return result, err
	}
	images, err := oci.New(options)
	if err != nil {
		return result, err
	}
	defer images.Close()
	result.Image = ref
	parsed, err := model.ParseImageReference(ref)
	if err != nil {
		return result, err
	}
	for _, architecture := range inspectedArchitectures {
		img, err := images.Resolve(ctx, ref, architecture)
		a := inspected(architecture, img, err)
		if err == nil && img.Disk != nil && (len(i.Arch) == 0 || slices.Contains(i.Arch, architecture)) {
			src, err := layerSource(images, img)
			if err != nil {
				return result, err
			}
			a = a.installing(disks.diskOf(ctx, architecture, src))
		}
		if err == nil && (i.Verify || parsed.Layout != "") {
			a.verify(ctx, images, img)
		}
		result.Architectures = append(result.Architectures, a)
	}
	return result, nil
}

// verify reads the layers of an image, and marks it as not bootable if one differs from its digest or format.
func (a *inspectedFor) verify(ctx context.Context, images *oci.Images, img model.PinnedImage) {
	for n, layer := range oci.Layers(&img) {
		if layer == nil {
			continue
		}
		kind := []struct{ name, mediaType string }{
			{"kernel", oci.MediaKernel}, {"initramfs", oci.MediaInitramfs}, {"squashfs", oci.MediaSquashfs}, {"UKI", oci.MediaUKI},
		}[n]
		if err := verifyLayer(ctx, images, img.Repository, layer, kind.mediaType, a.Architecture); err != nil {
			failed := inspectedError(a.Architecture, err)
			a.Bootable, a.By, a.Message = false, nil, kind.name+": "+failed.Message
			a.Reason = cmp.Or(failed.Reason, model.ReasonValidationFailed)
			return
		}
	}
}

func verifyLayer(ctx context.Context, images *oci.Images, repository string, layer *model.Layer, mediaType, architecture string) error {
	ref, err := model.ParseImageReference(repository + "@" + layer.Digest)
	if err != nil {
		return err
	}
	body, err := images.Fetch(ref, layer)(ctx, 0)
	if err != nil {
		return err
	}
	defer body.Close()
	verifier := digest.Digest(layer.Digest).Verifier() // a resolved digest is valid
	content := io.TeeReader(body, verifier)
	start, err := io.ReadAll(io.LimitReader(content, artifact.StartSize))
	if err == nil {
		_, err = io.Copy(io.Discard, content)
	}
	switch {
	case err != nil:
		return err
	case !verifier.Verified():
		return fmt.Errorf("its content does not have the digest %s: make or pull the image again", layer.Digest)
	}
	return artifact.CheckStart(mediaType, architecture, start)
}

// installing is an image that is installed, and whose other layers are booted only for claims
// that want it.
func (a inspectedFor) installing(disk inspectedFor) inspectedFor {
	disk.Digest = a.Digest
	disk.Kernel, disk.Initramfs, disk.Squashfs, disk.UKI = a.Kernel, a.Initramfs, a.Squashfs, a.UKI
	return disk
}

// options are those of the daemon, or what a person may do without one.
func (i imageInspectCommand) options(c *console, ref string) (oci.Options, error) {
	if i.Config != "" {
		o, err := config.Load(i.Config, c.daemonEnv())
		images := o.Images()
		images.Log = c.log
		return images, err
	}
	o := oci.Options{Own: []string{ref}, Log: c.log}
	r, err := model.ParseImageReference(ref)
	if err != nil {
		return o, fmt.Errorf("%s: %w", i.Image, err)
	}
	if r.Layout != "" {
		o.ImageDirs = []string{filepath.Dir(r.Layout)}
		return o, nil
	}
	if i.PlainHTTP {
		o.Registries = []oci.Registry{{Host: r.Registry, Plain: true}}
	}
	if store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil {
		o.Helper = credentials.Credential(store)
	}
	return o, nil
}

func inspected(architecture string, img model.PinnedImage, err error) inspectedFor {
	var why *oci.Error
	switch {
	case errors.As(err, &why):
		return inspectedFor{Architecture: architecture, Reason: why.Reason, Message: why.Message}
	case err != nil:
		return inspectedFor{Architecture: architecture, Message: err.Error()}
	}
	a := inspectedFor{
		Architecture: architecture, Bootable: true, Digest: img.Digest,
		Kernel: img.Kernel, Initramfs: img.Initrd, Squashfs: img.Squashfs, UKI: img.UKI,
	}
	if img.Disk != nil {
		a.By = append(a.By, "disk")
	}
	if img.Kernel != nil {
		a.By = append(a.By, "iPXE")
	}
	if img.UKI != nil {
		a.By = append(a.By, "UEFI HTTP boot")
	}
	return a
}

// bootable reports whether each of these architectures can boot the image, or without any
// one at all.
func (i inspection) bootable(wanted []string) bool {
	can := make(map[string]bool)
	for _, a := range i.Architectures {
		can[a.Architecture] = a.Bootable
	}
	for _, architecture := range wanted {
		if !can[architecture] {
			return false
		}
	}
	return len(wanted) > 0 || can["amd64"] || can["arm64"]
}

func (c *console) printInspection(i inspection) {
	var rows [][]cell
	for _, a := range i.Architectures {
		boots, detail := cell{"no", red}, textCell(a.Message)
		if a.Bootable {
			boots, detail = cell{"yes", green}, textCell(strings.Join(a.layers(), ", "))
		}
		rows = append(rows, []cell{textCell(a.Architecture), boots, textCell(orDash(strings.Join(a.By, ", "))), textCell(orDash(a.Digest)), detail})
	}
	c.printTable([]string{"ARCHITECTURE", "BOOTS", "BY", "DIGEST", "LAYERS, OR WHY NOT"}, rows)
	shown := make(map[string]bool)
	for _, a := range i.Architectures {
		if a.Disk != nil && !shown[a.Disk.Disk.Digest] {
			shown[a.Disk.Disk.Digest] = true
			c.printDisk(a.Disk)
		}
	}
}

func (a inspectedFor) layers() []string {
	var all []string
	if a.Disk != nil {
		all = append(all, "disk "+sizeText(a.Disk.File))
	}
	for _, l := range []struct {
		name string
		*model.Layer
	}{{"kernel", a.Kernel}, {"initramfs", a.Initramfs}, {"squashfs", a.Squashfs}, {"UKI", a.UKI}} {
		if l.Layer != nil {
			all = append(all, l.name+" "+sizeText(l.Size))
		}
	}
	return all
}
