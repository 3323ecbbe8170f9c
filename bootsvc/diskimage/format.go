package diskimage

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"ingot/model"
)

// Formats and compressions, as model.DiskImage has them.
const (
	formatRaw   = "raw"
	formatQcow2 = "qcow2"

	packedZstd  = "zstd"
	packedGzip  = "gzip"
	packedXZ    = "xz"
	packedBzip2 = "bzip2"
)

// magicBytes is how much of a file is looked at to tell its format: the mark of an ISO 9660
// image is in its 17th sector of 2048 bytes.
const magicBytes = 17 * 2048

// compressionOf returns how what begins with head is packed, "" if it is not.
func compressionOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}): // RFC 1952 §2.3.1
		return packedGzip
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return packedXZ
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}), skippable(head): // RFC 8878 §3.1
		return packedZstd
	case len(head) > 10 && bytes.HasPrefix(head, []byte("BZh")) && head[3] >= '1' && head[3] <= '9' &&
		(string(head[4:10]) == "1AY&SY" || string(head[4:10]) == "\x17\x72\x45\x38\x50\x90"):
		return packedBzip2
	}
	return ""
}

// skippable reports whether head begins with a frame that decoders of zstd pass over
// (RFC 8878 §3.1.2).
func skippable(head []byte) bool {
	return len(head) >= 4 && binary.LittleEndian.Uint32(head)&0xfffffff0 == 0x184d2a50
}

// formatOf returns the format of what begins with head, or an Error if it is known to be none
// that is taken. What has no mark is raw.
func formatOf(head []byte) (string, error) {
	if bytes.HasPrefix(head, []byte(qcow2Magic)) {
		return formatQcow2, nil
	}
	for _, f := range foreignFormats {
		if f.is(head) {
			return "", refuse(model.ReasonImageFormat, "it is %s; a disk image is raw or qcow2, packed with zstd, gzip, xz or bzip2 or not. %s", f.name, f.advice)
		}
	}
	return formatRaw, nil
}

// foreignFormat is a format that is known, and is not taken.
type foreignFormat struct {
	name   string
	is     func(head []byte) bool
	advice string
}

// at returns a function that reports whether something stands at an offset.
func at(offset int, mark string) func([]byte) bool {
	return func(head []byte) bool {
		return len(head) >= offset+len(mark) && string(head[offset:offset+len(mark)]) == mark
	}
}

// converted says how an image of another format is made one that is taken.
func converted(ending string) string {
	return fmt.Sprintf("Convert it: qemu-img convert -O qcow2 -c disk.%s disk.qcow2", ending)
}

var foreignFormats = []foreignFormat{
	{"a VMware disk (vmdk)", func(h []byte) bool {
		return at(0, "KDMV")(h) || at(0, "COWD")(h) || at(0, "# Disk DescriptorFile")(h)
	}, converted("vmdk")},
	{"a VirtualBox disk (vdi)", at(0x40, "\x7f\x10\xda\xbe"), converted("vdi")},
	{"a Hyper-V disk (vhdx)", at(0, "vhdxfile"), converted("vhdx")},
	{"a Virtual PC disk (vhd)", at(0, "conectix"), converted("vhd")},
	{"an ISO 9660 image, of a live system or an installer", at(0x8001, "CD001"),
		"Take the publisher's cloud or bare-metal disk image; what an ISO starts is booted as an image of kernel and initramfs layers"},
	{"a tar archive", at(257, "ustar"), "Unpack it, and publish the disk image in it"},
	{"a zip archive", at(0, "PK\x03\x04"), "Unpack it, and publish the disk image in it"},
	{"a 7z archive", at(0, "7z\xbc\xaf\x27\x1c"), "Unpack it, and publish the disk image in it"},
	{"packed with lz4", at(0, "\x04\x22\x4d\x18"), "Pack it with zstd: lz4 -dc disk.lz4 | zstd -o disk.zst"},
	{"an Android sparse image", at(0, "\x3a\xff\x26\xed"), "Unpack it: simg2img disk.simg disk.raw"},
	{"a squashfs filesystem", at(0, "hsqs"), "It is no disk: it is booted as a layer beside kernel and initramfs"},
	{"an ELF program", at(0, "\x7fELF"), "It is no disk"},
	{"a Parallels disk", func(h []byte) bool { return at(0, "WithoutFreeSpace")(h) || at(0, "WithouFreSpacExt")(h) }, converted("hdd")},
	{"a QED disk", at(0, "QED\x00"), converted("qed")},
}
