package artifact

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"fmt"

	"ingot/bootsvc/oci"
)

// StartSize is the number of bytes that CheckStart needs of a layer, or all of it if it is smaller.
const StartSize = 64 << 10

// initramfsFormats are first bytes that Linux unpacks (lib/decompress.c, init/initramfs.c): cpio, gzip, zstd, xz, lz4,
// lzma, bzip2 and lzo.
var initramfsFormats = []string{
	"070701", "070702", "\x1f\x8b", "\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "\x02\x21\x4c\x18", "\x5d\x00\x00", "BZh", "\x89LZO",
}

// CheckStart returns an error if the first bytes of a layer show that it is not of its media type, or for another
// architecture.
func CheckStart(mediaType, architecture string, start []byte) error {
	var found, expected string
	switch mediaType {
	case oci.MediaKernel:
		found, expected = kernelArchitecture(start), "a Linux kernel (bzImage, arm64 Image or UEFI program)"
	case oci.MediaUKI:
		found, expected = programArchitecture(start), "a UEFI program"
	case oci.MediaInitramfs:
		expected = "an initramfs (cpio, plain or packed with gzip, zstd, xz, lz4, lzma, bzip2 or lzo)"
		for _, format := range initramfsFormats {
			if bytes.HasPrefix(start, []byte(format)) {
				return nil
			}
		}
	case oci.MediaSquashfs:
		expected = "a squashfs"
		if bytes.HasPrefix(start, []byte("hsqs")) {
			return nil
		}
	}
	switch text := bytes.ToLower(bytes.TrimSpace(start)); {
	case found == architecture:
		return nil
	case found != "":
		return fmt.Errorf("it is for %s, not for %s", found, architecture)
	case len(start) == 0:
		return fmt.Errorf("it is empty: expected %s", expected)
	case bytes.HasPrefix(text, []byte("<!doctype html")) || bytes.HasPrefix(text, []byte("<html")):
		return fmt.Errorf("it is an HTML page: expected %s; check the URL that it was downloaded from", expected)
	}
	return fmt.Errorf("it begins with %q: expected %s", start[:min(len(start), 8)], expected)
}

// kernelArchitecture returns the architecture of a Linux kernel, or "" (Linux: Documentation/arch/x86/boot.rst and
// arm64/booting.rst).
func kernelArchitecture(start []byte) string {
	switch {
	case bytes.HasPrefix(start[min(len(start), 0x202):], []byte("HdrS")):
		return "amd64"
	case bytes.HasPrefix(start[min(len(start), 56):], []byte("ARM\x64")):
		return "arm64"
	}
	return programArchitecture(start)
}

// programArchitecture returns the architecture of a UEFI program, or "".
func programArchitecture(start []byte) string {
	if len(start) < 0x40 || string(start[:2]) != "MZ" {
		return ""
	}
	at := int64(binary.LittleEndian.Uint32(start[0x3c:]))
	if at+6 > int64(len(start)) || string(start[at:at+4]) != "PE\x00\x00" {
		return ""
	}
	switch machine := binary.LittleEndian.Uint16(start[at+4:]); machine {
	case pe.IMAGE_FILE_MACHINE_AMD64:
		return "amd64"
	case pe.IMAGE_FILE_MACHINE_ARM64:
		return "arm64"
	default:
		return fmt.Sprintf("machine type 0x%x", machine)
	}
}
