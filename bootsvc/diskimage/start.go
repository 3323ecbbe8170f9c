package diskimage

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"ingot/model"
)

// efiArchitecture is how an architecture's loaders are named (UEFI specification §3.5.1.1).
type efiArchitecture struct {
	start model.StartMethod
	short string // as in BOOTX64.EFI
}

var efiArchitectures = []efiArchitecture{{model.StartUEFIAMD64, "X64"}, {model.StartUEFIARM64, "AA64"}}

// startsOf returns for which machines an EFI system partition has a loader: at the path that
// firmware looks at on removable media, or one that a file for shim's fallback names.
func startsOf(esp *fat) ([]model.StartMethod, error) {
	var starts []model.StartMethod
	for _, a := range efiArchitectures {
		loader, found, err := esp.find("EFI", "BOOT", "BOOT"+a.short+".EFI")
		if err != nil {
			return nil, err
		}
		if !found || loader.folder || loader.size == 0 {
			if found, err = hasFallback(esp, a); err != nil {
				return nil, err
			}
		}
		if found {
			starts = append(starts, a.start)
		}
	}
	return starts, nil
}

// hasFallback reports whether a folder below EFI has a BOOTX64.CSV that names a loader which is
// there.
func hasFallback(esp *fat, a efiArchitecture) (bool, error) {
	efi, found, err := esp.find("EFI")
	if err != nil || !found || !efi.folder {
		return false, err
	}
	vendors, err := esp.list(efi.cluster)
	if err != nil {
		return false, err
	}
	for _, vendor := range vendors[:min(len(vendors), 64)] {
		if !vendor.folder || strings.HasPrefix(vendor.name, ".") {
			continue
		}
		file, found, err := esp.find("EFI", vendor.name, "BOOT"+a.short+".CSV")
		if err != nil {
			return false, err
		}
		if !found {
			continue
		}
		raw, err := esp.content(file)
		if err != nil {
			continue // a file of that name that is none of these
		}
		loader, found, err := esp.find("EFI", vendor.name, fallbackLoader(raw))
		if err != nil {
			return false, err
		}
		if found && !loader.folder && loader.size > 0 {
			return true, nil
		}
	}
	return false, nil
}

// fallbackLoader returns the loader that a file for shim's fallback names first: UTF-16, little
// endian, of lines with the loader's name before the first comma.
func fallbackLoader(raw []byte) string {
	units := make([]uint16, 0, len(raw)/2)
	for ; len(raw) >= 2; raw = raw[2:] {
		units = append(units, binary.LittleEndian.Uint16(raw))
	}
	text := strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff")
	name, _, _ := strings.Cut(text, ",")
	return strings.TrimSpace(name)
}
