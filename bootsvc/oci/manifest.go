package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"

	"ingot/bootsvc/internal/syntax"
	"ingot/model"
)

// Media types of indexes and manifests.
const (
	mediaOCIIndex       = "application/vnd.oci.image.index.v1+json"
	mediaOCIManifest    = "application/vnd.oci.image.manifest.v1+json"
	mediaDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	mediaDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// manifestTypes are the media types that are asked for and understood.
var manifestTypes = []string{mediaOCIIndex, mediaOCIManifest, mediaDockerList, mediaDockerManifest}

// Media types of layers that boot.
const (
	MediaKernel    = ironcoreLayer + "kernel"
	MediaInitramfs = ironcoreLayer + "initramfs"
	MediaSquashfs  = ironcoreLayer + "squashfs"
	MediaUKI       = ironcoreLayer + "uki"

	ironcoreLayer    = "application/vnd.ironcore.image."
	gardenLinuxLayer = "application/io.gardenlinux."
)

// Bounds on what a registry may send.
const (
	maxManifest = 4 << 20
	maxLayer    = 32 << 30
	maxEntries  = 1000
	// maxIndexDepth is how many indexes may lie on the way to a manifest.
	maxIndexDepth = 2
)

// manifest is an OCI image manifest or index, or Docker's equivalent
// (image-spec v1.1, manifest.md and image-index.md).
type manifest struct {
	MediaType string  `json:"mediaType"`
	Manifests entries `json:"manifests"`
	Layers    entries `json:"layers"`
}

// entries are those of a manifest, maxEntries at most.
type entries []descriptor

var errTooManyEntries = errors.New("too many entries")

// UnmarshalJSON implements json.Unmarshaler. It stops at the first entry that is too many:
// decoded, empty ones take 75 times their size.
func (e *entries) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' { // null, or an error
		return json.Unmarshal(raw, (*[]descriptor)(e))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return err
	}
	for *e = nil; d.More(); {
		if len(*e) == maxEntries {
			return errTooManyEntries
		}
		var entry descriptor
		if err := d.Decode(&entry); err != nil {
			return err
		}
		*e = append(*e, entry)
	}
	return nil
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	URLs        []string          `json:"urls"`
	Annotations map[string]string `json:"annotations"`
	Platform    *platform         `json:"platform"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Variant      string `json:"variant"`
}

// String names a platform as its image is asked for, and by its system unless that is
// Linux.
func (p platform) String() string {
	name := strings.TrimSuffix(p.Architecture+"/"+p.Variant, "/")
	if p.OS != "" && p.OS != "linux" {
		name = p.OS + "/" + name
	}
	return name
}

// parseManifest decodes a manifest that came with contentType. The media type in
// the document itself counts; contentType is for documents without one.
func parseManifest(body []byte, contentType string) (manifest, error) {
	var m manifest
	mediaType, _, _ := mime.ParseMediaType(contentType) // "" says nothing
	switch err := json.Unmarshal(body, &m); {
	case err == nil:
	case errors.Is(err, errTooManyEntries):
		return manifest{}, invalid("the manifest has more than %d entries", maxEntries)
	case mediaType == "text/html":
		return manifest{}, invalid("the registry sent a web page instead of a manifest: see whether a login page or a proxy stands before it")
	default:
		return manifest{}, invalid("the manifest is not JSON of the expected form: %s", syntax.Printable(err.Error()))
	}
	if m.MediaType == "" {
		m.MediaType = mediaType
	}
	switch {
	case len(m.Manifests) > 0 && len(m.Layers) > 0:
		return manifest{}, invalid("the manifest has both manifests and layers, so it can be read in two ways")
	case !slices.Contains(manifestTypes, m.MediaType):
		return manifest{}, invalid("media type %q is neither an image manifest nor an index", syntax.Printable(m.MediaType))
	}
	return m, nil
}

func (m manifest) index() bool {
	return m.MediaType == mediaOCIIndex || m.MediaType == mediaDockerList
}

// choose returns the entry of an index for architecture, which may carry a
// variant: arm64/v8.
func (m manifest) choose(architecture string) (descriptor, error) {
	for _, fits := range []func(descriptor, string) bool{byDiskType, byPlatformAndName, byPlatform, byAnnotation} {
		for _, d := range m.Manifests {
			if fits(d, architecture) {
				return d, checkEntry(d, maxManifest)
			}
		}
	}
	if len(m.Manifests) == 1 && m.Manifests[0].Platform == nil && m.Manifests[0].Annotations["architecture"] == "" {
		return m.Manifests[0], checkEntry(m.Manifests[0], maxManifest) // it is for all
	}
	return descriptor{}, &Error{
		Reason:  model.ReasonNoArchitecture,
		Message: fmt.Sprintf("there is no image for architecture %s; the index has %s", architecture, m.architectures()),
	}
}

// byPlatform fits entries whose platform is the architecture on Linux.
func byPlatform(d descriptor, architecture string) bool {
	want, variant := splitArchitecture(architecture)
	return d.Platform != nil && (d.Platform.OS == "linux" || d.Platform.OS == "") &&
		d.Platform.Architecture == want && plainVariant(want, d.Platform.Variant) == variant
}

// byPlatformAndName fits like byPlatform, but only entries whose annotation says
// that they are for booting metal, among flavours of one architecture.
func byPlatformAndName(d descriptor, architecture string) bool {
	return byPlatform(d, architecture) && forMetal(d)
}

// byAnnotation fits the entries of old Garden Linux indexes, which carry no
// platform.
func byAnnotation(d descriptor, architecture string) bool {
	want, _ := splitArchitecture(architecture)
	return forMetal(d) && d.Annotations["architecture"] == want
}

func forMetal(d descriptor) bool { return strings.HasPrefix(d.Annotations["cname"], "metal_pxe") }

// splitArchitecture divides arm64/v8 into architecture and plain variant.
func splitArchitecture(s string) (architecture, variant string) {
	architecture, variant, _ = strings.Cut(s, "/")
	return architecture, plainVariant(architecture, variant)
}

// plainVariant returns "" for the variant that an architecture means when none
// is named.
func plainVariant(architecture, variant string) string {
	if architecture == "arm64" && variant == "v8" || architecture == "amd64" && variant == "v1" {
		return ""
	}
	return variant
}

func (m manifest) architectures() string {
	var have []string
	for _, d := range m.Manifests {
		switch {
		case d.Platform == nil && d.Annotations["architecture"] == "":
			have = append(have, "an entry without a platform")
		case d.Platform != nil && d.Platform.Architecture != "" && d.Platform.Architecture != "unknown":
			have = append(have, syntax.Printable(d.Platform.String()))
		case d.Annotations["architecture"] != "":
			have = append(have, syntax.Printable(d.Annotations["architecture"]))
		}
	}
	slices.Sort(have)
	have = slices.Compact(have)
	if len(have) == 0 {
		return "none"
	}
	return strings.Join(have[:min(len(have), 20)], ", ")
}

// pin returns the layers that boot, and the one that is installed. Other layers are left alone.
// marked says that the index which names the manifest calls it a disk.
func (m manifest) pin(marked bool) (img model.PinnedImage, err error) {
	if img.Disk, err = m.disk(marked); err != nil {
		return model.PinnedImage{}, err
	}
	for _, d := range m.Layers {
		part, name := layerOf(&img, d.MediaType)
		if plain, packing, packed := packedLayer(d.MediaType); packed {
			return model.PinnedImage{}, invalid("the %s layer is packed with %s (%s); it must be pushed as it boots, as %s", plain, packing, syntax.Printable(d.MediaType), strings.TrimSuffix(d.MediaType, "+"+packing))
		}
		if part == nil {
			continue
		}
		if *part != nil {
			return model.PinnedImage{}, invalid("the image has two %s layers; exactly one is allowed", name)
		}
		if err := checkEntry(d, maxLayer); err != nil {
			return model.PinnedImage{}, fmt.Errorf("the %s layer: %w", name, err)
		}
		*part = &model.Layer{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType}
	}
	return img, complete(img, m)
}

// untyped reports whether a layer was pushed from a file named like a kernel or an initramfs, without its media type.
func untyped(d descriptor) bool {
	part, _ := layerOf(&model.PinnedImage{}, d.MediaType)
	return part == nil && bootFile.MatchString(path.Base(d.Annotations[titleAnnotation]))
}

// layerOf returns where in img a layer of mediaType belongs, and its name, or nil
// if it is none that boots.
func layerOf(img *model.PinnedImage, mediaType string) (part **model.Layer, name string) {
	switch mediaType {
	case MediaKernel, gardenLinuxLayer + "kernel":
		return &img.Kernel, "kernel"
	case MediaInitramfs, gardenLinuxLayer + "initrd":
		return &img.Initrd, "initramfs"
	case MediaSquashfs, gardenLinuxLayer + "squashfs":
		return &img.Squashfs, "squashfs"
	case MediaUKI:
		return &img.UKI, "UKI"
	}
	return nil, ""
}

// packedLayer reports whether mediaType is that of a layer that boots, packed: then it
// returns the layer's name, and how it is packed.
func packedLayer(mediaType string) (name, packing string, packed bool) {
	plain, packing, packed := strings.Cut(mediaType, "+")
	_, name = layerOf(&model.PinnedImage{}, plain)
	return name, packing, packed && name != ""
}

// complete returns an error that names what an image lacks: it needs a kernel and an
// initramfs, or a UKI, or a disk.
func complete(img model.PinnedImage, m manifest) error {
	const kernel, initramfs = MediaKernel, MediaInitramfs
	switch {
	case img.Disk != nil, img.Kernel != nil && img.Initrd != nil:
		return nil
	case slices.ContainsFunc(m.Layers, untyped):
		return invalid("a kernel or an initramfs was pushed without its media type; push with media types: oras push REFERENCE vmlinuz:%s initrd.img:%s, or ingot image push", kernel, initramfs)
	case m.container():
		return invalid("it is a container image of %d layers, and what a container holds does not boot by itself. Of a bootable container (bootc) bootc-image-builder makes a disk image; push that, or kernel and initramfs layers", len(m.Layers))
	case img.Kernel == nil && img.Initrd == nil && img.UKI != nil:
		return nil
	case img.Kernel == nil && img.Initrd == nil:
		return invalid("the image has no kernel layer (%s) and no initramfs layer (%s), nor a UKI (%s), nor a disk (%s); %s", kernel, initramfs, MediaUKI, MediaDiskRaw, m.has(img))
	case img.Kernel == nil:
		return invalid("the image has no kernel layer (%s); %s", kernel, m.has(img))
	default:
		return invalid("the image has no initramfs layer (%s); %s", initramfs, m.has(img))
	}
}

func (m manifest) has(img model.PinnedImage) string {
	var have []string
	for n, layer := range Layers(&img) {
		if layer != nil {
			have = append(have, [...]string{"kernel", "initramfs", "squashfs", "UKI"}[n])
		}
	}
	if len(have) == 0 {
		return "its layers are " + m.mediaTypes()
	}
	return "it has " + strings.Join(have, ", ")
}

// mediaTypes lists the layers' media types, for an error.
func (m manifest) mediaTypes() string {
	var have []string
	for _, d := range m.Layers[:min(len(m.Layers), 8)] {
		have = append(have, syntax.Printable(d.MediaType))
	}
	if len(have) == 0 {
		return "none"
	}
	return strings.Join(have, ", ")
}

// checkEntry refuses an entry that cannot be fetched and verified.
func checkEntry(d descriptor, limit int64) error {
	switch {
	case !model.IsImageDigest(d.Digest):
		return invalid("digest %q is not sha256 or sha512 in lower-case hexadecimal", syntax.Printable(d.Digest))
	case d.Size <= 0 || d.Size > limit:
		return invalid("a size of %d bytes is not within 1 and %d", d.Size, limit)
	case len(d.URLs) > 0:
		return invalid("it is a foreign layer, kept outside the registry; such are not fetched")
	}
	return nil
}

// Layers returns an image's layers that are booted from the network, in their order; those
// that it lacks are nil. Its disk is none of them: no machine fetches that from here.
func Layers(img *model.PinnedImage) [4]*model.Layer {
	return [4]*model.Layer{img.Kernel, img.Initrd, img.Squashfs, img.UKI}
}
