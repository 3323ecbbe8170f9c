package oci

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// Media types of layers that are disk images. How one is packed may follow: +zstd, +gzip, +xz,
// +bzip2. They say where a disk is; what it is, its own first bytes do.
const (
	MediaDiskRaw   = ingotDisk + "raw"
	MediaDiskQcow2 = ingotDisk + "qcow2"

	ingotDisk    = "application/vnd.ingot.disk."
	kubevirtDisk = "application/vnd.kubevirt.disk."

	// mediaDisk is given to layers of which nothing says what kind of disk they are.
	mediaDisk = "application/octet-stream"
)

// titleAnnotation is the name of the file that a layer was pushed from (image-spec v1.1,
// annotations.md).
const titleAnnotation = "org.opencontainers.image.title"

// diskTypeAnnotation marks the entries of an index that are disk images, as Podman and Ironic
// know it.
const diskTypeAnnotation = "disktype"

// diskTypes are the values of diskTypeAnnotation for raw and qcow2.
var diskTypes = []string{"raw", "applehv", "qcow2", "qemu"}

// bootFile matches the names of kernels and initramfs files. "initrd.img" ends like a disk image.
var bootFile = regexp.MustCompile(`^(vmlinu|bzImage|initrd|initramfs|kernel)`)

var (
	diskMedia      = regexp.MustCompile(`^(` + regexp.QuoteMeta(ingotDisk) + `|` + regexp.QuoteMeta(kubevirtDisk) + `)(raw|qcow2)(\+(zstd|gzip|xz|bzip2))?$`)
	containerMedia = regexp.MustCompile(`^application/vnd\.(oci\.image\.layer\.v1\.tar(\+(gzip|zstd))?|docker\.image\.rootfs\.diff\.tar(\.gzip|\.zstd)?)$`)
)

// InContainer reports whether a disk layer is one of a container image, with one disk image
// below disk/ (KubeVirt's containerDisk).
func InContainer(disk *model.Layer) bool { return containerMedia.MatchString(disk.MediaType) }

// DiskKind returns what the media type of a disk layer, or the name of its file, says that it is:
// raw or qcow2, with +zstd, +gzip, +xz or +bzip2 if it is packed; "" if nothing is said.
func DiskKind(disk *model.Layer) string {
	if m := diskMedia.FindStringSubmatch(disk.MediaType); m != nil {
		return strings.TrimPrefix(disk.MediaType, m[1])
	}
	return ""
}

// disk returns the layer of a manifest that is a disk image, nil if there is none. marked says
// that the index which names the manifest calls it a disk.
func (m manifest) disk(marked bool) (*model.Layer, error) {
	for _, find := range []func() []descriptor{m.disksByType, m.disksByTitle, func() []descriptor { return m.onlyLayer(marked) }} {
		found := find()
		if len(found) > 1 {
			return nil, invalid("the image has %d disk layers (%s); exactly one is allowed", len(found), titles(found))
		}
		if len(found) == 0 {
			continue
		}
		d := found[0]
		if err := checkEntry(d, maxLayer); err != nil {
			return nil, invalid("the disk layer: %v", err)
		}
		return &model.Layer{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType}, nil
	}
	return nil, nil
}

// disksByType returns the layers whose media types say that they are disks.
func (m manifest) disksByType() []descriptor {
	return slices.DeleteFunc(slices.Clone(m.Layers), func(d descriptor) bool { return !diskMedia.MatchString(d.MediaType) })
}

// disksByTitle returns the layers that were pushed from files named as disk images are, whatever
// type they were given: that of tar archives too, which they are not.
func (m manifest) disksByTitle() []descriptor {
	var found []descriptor
	for _, d := range m.Layers {
		part, _ := layerOf(&model.PinnedImage{}, d.MediaType)
		kind := syntax.DiskFile(d.Annotations[titleAnnotation])
		if part == nil && kind != "" && !bootFile.MatchString(path.Base(d.Annotations[titleAnnotation])) {
			d.MediaType = ingotDisk + kind
			found = append(found, d)
		}
	}
	return found
}

// onlyLayer returns the one layer of a manifest that its index marks as a disk, or of a
// container image, which may have a disk in it.
func (m manifest) onlyLayer(marked bool) []descriptor {
	if len(m.Layers) != 1 {
		return nil
	}
	d := m.Layers[0]
	part, _ := layerOf(&model.PinnedImage{}, d.MediaType)
	switch {
	case part != nil:
		return nil
	case marked:
		d.MediaType = mediaDisk
	case !containerMedia.MatchString(d.MediaType):
		return nil
	}
	return []descriptor{d}
}

func (m manifest) container() bool {
	return len(m.Layers) > 0 && !slices.ContainsFunc(m.Layers, func(d descriptor) bool { return !containerMedia.MatchString(d.MediaType) })
}

// byDiskType fits the entries of an index that are disk images for an architecture, which they
// may name as kernels do.
func byDiskType(d descriptor, architecture string) bool {
	if !markedAsDisk(d) {
		return false
	}
	if d.Platform == nil {
		return false
	}
	named := *d.Platform
	switch named.Architecture {
	case "x86_64":
		named.Architecture = "amd64"
	case "aarch64":
		named.Architecture = "arm64"
	}
	d.Platform = &named
	return byPlatform(d, architecture)
}

func markedAsDisk(d descriptor) bool {
	return slices.Contains(diskTypes, d.Annotations[diskTypeAnnotation])
}

// titles lists layers by the files that they were pushed from, or by their types.
func titles(layers []descriptor) string {
	var all []string
	for _, d := range layers[:min(len(layers), 8)] {
		name := path.Base(d.Annotations[titleAnnotation])
		if d.Annotations[titleAnnotation] == "" {
			name = d.MediaType
		}
		all = append(all, syntax.Printable(name))
	}
	return strings.Join(all, ", ")
}

// CheckNetworkBoot returns why a machine cannot boot an image from the network: one that has a
// disk layer alone can only be installed.
func CheckNetworkBoot(img *model.PinnedImage) error {
	if img.Kernel != nil && img.Initrd != nil || img.UKI != nil {
		return nil
	}
	return invalid("the image has a disk layer alone, which is installed and does not boot from the network: that takes a kernel and an initramfs layer, or a UKI")
}
