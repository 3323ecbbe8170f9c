package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"ingot/bootsvc/cachedir"
	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/oci"
	"ingot/bootsvc/oci/artifact"
	"ingot/model"
)

// diskStarts are the ways in which firmware of an architecture starts a disk.
var diskStarts = map[string][]model.StartMethod{
	"amd64": {model.StartBIOS, model.StartUEFIAMD64},
	"arm64": {model.StartUEFIARM64},
}

// startNames are what people call the ways.
var startNames = map[model.StartMethod]string{model.StartBIOS: "BIOS", model.StartUEFIAMD64: "UEFI", model.StartUEFIARM64: "UEFI"}

// diskInspector prepares disk images as the daemon does, to see what it makes of them.
type diskInspector struct {
	c     *console
	store *diskimage.Store
	dir   *cachedir.Dir
	path  string
}

func newDiskInspector(c *console) (*diskInspector, error) {
	path, err := os.MkdirTemp("", "ingot-inspect-")
	if err != nil {
		return nil, err
	}
	dir, err := cachedir.Open(cachedir.Options{Path: path})
	if err != nil {
		return nil, err
	}
	store, err := diskimage.Open(diskimage.Options{Dir: dir, Patience: 200 * time.Millisecond, Log: c.log})
	return &diskInspector{c, store, dir, path}, err
}

func (d *diskInspector) close() {
	d.store.Close()
	d.dir.Close()
	_ = os.RemoveAll(d.path)
}

// prepare fetches and converts an image, and shows how far it is.
func (d *diskInspector) prepare(ctx context.Context, src diskimage.Source) (diskimage.Image, error) {
	show := d.c.terminal && !d.c.json()
	for {
		img, err := d.store.Prepare(ctx, src)
		var under *diskimage.Preparing
		if !errors.As(err, &under) {
			if show {
				fmt.Fprint(d.c.err, "\r\x1b[K")
			}
			return img, err
		}
		if ctx.Err() != nil {
			return img, ctx.Err()
		}
		if show {
			fmt.Fprintf(d.c.err, "\r\x1b[K%s", under.Error())
		}
	}
}

func (d *diskInspector) diskOf(ctx context.Context, architecture string, src diskimage.Source) inspectedFor {
	img, err := d.prepare(ctx, src)
	if err != nil {
		return inspectedError(architecture, err)
	}
	a := inspectedFor{Architecture: architecture, Digest: src.Digest, Disk: &img}
	for _, start := range diskStarts[architecture] {
		if slices.Contains(img.Disk.Starts, start) {
			a.Bootable, a.By = true, append(a.By, startNames[start]+" from disk")
		}
	}
	if !a.Bootable {
		a.Reason, a.Message = model.ReasonImageCannotBoot, cannotStart[architecture]
	}
	return a
}

// cannotStart says what a disk image lacks for an architecture.
var cannotStart = map[string]string{
	"amd64": `it has neither boot code in its master boot record (BIOS) nor an EFI system partition with EFI\BOOT\BOOTX64.EFI (UEFI)`,
	"arm64": `it has no EFI system partition with EFI\BOOT\BOOTAA64.EFI`,
}

// inspectedError says why an architecture cannot have an image.
func inspectedError(architecture string, err error) inspectedFor {
	var disk *diskimage.Error
	var image *oci.Error
	switch {
	case errors.As(err, &disk):
		return inspectedFor{Architecture: architecture, Reason: disk.Reason, Message: disk.Message}
	case errors.As(err, &image):
		return inspectedFor{Architecture: architecture, Reason: image.Reason, Message: image.Message}
	}
	return inspectedFor{Architecture: architecture, Message: err.Error()}
}

// diskSource is a disk image that a reference names without a registry: a URL, or a file of this
// machine. It reports false for other references.
func (i imageInspectCommand) diskSource(c *console) (diskimage.Source, bool, error) {
	if model.IsImageURL(i.Image) {
		u, err := model.ParseImageURL(i.Image)
		if err != nil {
			return diskimage.Source{}, true, err
		}
		images, err := i.urlImages(c, u)
		if err != nil {
			return diskimage.Source{}, true, err
		}
		client, _, err := images.Client(u)
		if err != nil {
			return diskimage.Source{}, true, err
		}
		return diskimage.FromURL(i.Image, u, client, true), true, nil
	}
	info, err := os.Stat(i.Image)
	if err != nil || !info.Mode().IsRegular() || isLayout(i.Image) {
		return diskimage.Source{}, false, nil
	}
	src, err := fileSource(i.Image)
	return src, true, err
}

// urlImages is what a URL is fetched by: as the daemon does, or as a person may without one.
func (i imageInspectCommand) urlImages(c *console, at model.ImageURL) (*oci.Images, error) {
	if i.Config != "" {
		options, err := i.options(c, "")
		if err != nil {
			return nil, err
		}
		return oci.New(options)
	}
	u, err := url.Parse(at.URL)
	if err != nil {
		return nil, err
	}
	return oci.New(oci.Options{Registries: []oci.Registry{{Host: u.Host}}, Log: c.log})
}

// fileSource is a disk image in a file of this machine.
func fileSource(path string) (diskimage.Source, error) {
	file, err := os.Open(path)
	if err != nil {
		return diskimage.Source{}, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return diskimage.Source{}, err
	}
	return diskimage.Source{
		Ref: path, Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Bytes: size,
		Fetch: func(_ context.Context, from int64) (io.ReadCloser, error) {
			file, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			_, err = file.Seek(from, io.SeekStart)
			return file, err
		},
	}, nil
}

// layerSource is the disk of an image in a registry or a layout.
func layerSource(images *oci.Images, img model.PinnedImage) (diskimage.Source, error) {
	ref, err := model.ParseImageReference(img.Repository + "@" + img.Disk.Digest)
	return diskimage.Source{
		Ref: img.Ref, Digest: img.Disk.Digest, Bytes: img.Disk.Size, Kind: oci.DiskKind(img.Disk),
		Container: oci.InContainer(img.Disk), Fetch: images.Fetch(ref, img.Disk),
	}, err
}

func (c *console) printDisk(img *diskimage.Image) {
	format := img.Disk.Format
	if img.Disk.Compression != "" {
		format += ", packed with " + img.Disk.Compression
	}
	sector := "not said, 512 is meant"
	if img.Disk.SectorSize > 0 {
		sector = fmt.Sprintf("%d bytes", img.Disk.SectorSize)
	}
	var starts []string
	for _, start := range img.Disk.Starts {
		starts = append(starts, string(start))
	}
	c.printf("\nInstalled to disk: %s\n", printable(img.Disk.Digest))
	c.printf("  Format      %s, %s as published\n", format, sizeText(img.File))
	if img.Disk.Note != "" {
		c.printf("  Note        %s\n", printable(img.Disk.Note))
	}
	c.printf("  Disk        %s (%d bytes), %s of them data, kept in %s\n", sizeText(int64(img.Disk.Bytes)), img.Disk.Bytes, sizeText(int64(img.Disk.Data)), sizeText(int64(img.Stored)))
	c.printf("  Sectors     %s\n", sector)
	c.printf("  Starts by   %s\n", orDash(strings.Join(starts, ", ")))
	c.printf("  Partitions  %s\n", img.PartitionTable)
	var rows [][]cell
	for _, p := range img.Partitions {
		rows = append(rows, []cell{
			textCell(fmt.Sprint(p.Number)), textCell(sizeText(int64(p.Bytes))), textCell(orDash(p.Name)), textCell(orDash(p.Filesystem)),
			textCell(orDash(p.Label)), textCell(orDash(p.UUID)), textCell(p.Type),
		})
	}
	c.printTable([]string{"#", "SIZE", "NAME", "FILESYSTEM", "LABEL", "UUID", "TYPE"}, rows)
}

// diskLayer is a disk image as a layer: packed with zstd if nothing packed it. What is made for
// that is removed by the function returned.
func diskLayer(path string) (layer artifact.Layer, remove func(), err error) {
	file, err := os.Open(path)
	if err != nil {
		return layer, nil, err
	}
	format, compression, err := diskimage.Identify(file)
	if err != nil {
		file.Close()
		return layer, nil, fmt.Errorf("%s: %w", path, err)
	}
	mediaType := map[string]string{"raw": oci.MediaDiskRaw, "qcow2": oci.MediaDiskQcow2}[format]
	if format == "qcow2" && compression == "" { // it packs its clusters itself
		return artifact.Layer{MediaType: mediaType, Content: file}, func() { file.Close() }, nil
	}
	if compression != "" {
		return artifact.Layer{MediaType: mediaType + "+" + compression, Content: file}, func() { file.Close() }, nil
	}
	defer file.Close()
	packed, err := packedFile(file)
	if err != nil {
		return layer, nil, fmt.Errorf("pack %s: %w", path, err)
	}
	return artifact.Layer{MediaType: mediaType + "+zstd", Content: packed}, func() {
		packed.Close()
		_ = os.Remove(packed.Name())
	}, nil
}

func packedFile(file *os.File) (*os.File, error) {
	packed, err := os.CreateTemp("", "ingot-disk-*.zst")
	if err != nil {
		return nil, err
	}
	w, err := zstd.NewWriter(packed)
	if err == nil {
		_, err = io.Copy(w, file)
		err = errors.Join(err, w.Close())
	}
	if err == nil {
		_, err = packed.Seek(0, io.SeekStart)
	}
	if err != nil {
		packed.Close()
		_ = os.Remove(packed.Name())
		return nil, err
	}
	return packed, nil
}
