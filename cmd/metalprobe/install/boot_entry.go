package install

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"unicode/utf16"

	"ingot/cmd/metalprobe/install/efi"
	"ingot/model/gpt"
)

// loaderOf is the file name of the boot loader for removable media (UEFI specification
// §3.5.1.1), without its ending.
func loaderOf(architecture string) string {
	if architecture == "arm64" {
		return "BOOTAA64"
	}
	return "BOOTX64"
}

// bootEntry gives the firmware an entry for the installed system. It fails on no machine whose
// disk boots without: what it returns is a warning.
func (t *task) bootEntry() error {
	if t.doc.BootEntry == "" {
		return nil
	}
	firmware, err := t.Firmware()
	if errors.Is(err, efi.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	partitions, sector, err := t.installed()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(partitions, func(p partition) bool { return p.kind == gpt.TypeESP })
	if at < 0 {
		return errors.New("the disk has no EFI system partition")
	}
	esp, loader := partitions[at], ""
	err = t.Mount(t.chosen.Path, esp, "vfat", true, func(root *os.Root) error {
		loader, err = findLoader(root.FS(), loaderOf(runtime.GOARCH))
		return err
	})
	if err != nil {
		return fmt.Errorf("look for a loader: %w", err)
	}
	option, err := efi.NewOption(t.doc.BootEntry, efi.Loader{
		Partition: uint32(esp.number), First: uint64(esp.from / sector), Sectors: uint64((esp.to - esp.from) / sector), GUID: esp.guid, Path: loader,
	})
	if err != nil {
		return err
	}
	state, err := firmware.State()
	if err != nil {
		return fmt.Errorf("read the firmware's boot options: %w", err)
	}
	change, err := efi.Place(state, option)
	if err != nil {
		return err
	}
	t.Log.Info("boot entry", "label", option.Label, "number", fmt.Sprintf("%04X", change.Number), "loader", loader)
	return firmware.Apply(change)
}

// installed reads the partitions of the disk, which is not open any more.
func (t *task) installed() ([]partition, int64, error) {
	r, err := t.Look(t.chosen.Path)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	table, err := gpt.Read(r, r.Size())
	if err != nil {
		return nil, 0, err
	}
	var c content
	c.guidTable(table)
	return c.partitions, int64(table.SectorSize), nil
}

// findLoader returns the path of the program that starts a system, as firmware writes it: that
// for removable media, else the first that a fallback file names.
func findLoader(root fs.FS, name string) (string, error) {
	for _, folder := range match(root, ".", "EFI") {
		for _, boot := range match(root, folder, "BOOT") {
			for _, file := range match(root, boot, name+".EFI") {
				return `\` + strings.ReplaceAll(file, "/", `\`), nil
			}
		}
		for _, vendor := range match(root, folder, "") {
			for _, file := range match(root, vendor, name+".CSV") {
				if program, ok := fallback(root, file); ok {
					return `\` + strings.ReplaceAll(path.Join(vendor, program), "/", `\`), nil
				}
			}
		}
	}
	return "", fmt.Errorf(`the EFI system partition has no \EFI\BOOT\%s.EFI, and no file %s.CSV that names another`, name, name)
}

// match returns the entries of a folder that have a name, in whatever case; all for "".
func match(root fs.FS, folder, name string) (list []string) {
	entries, err := fs.ReadDir(root, folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if name == "" || strings.EqualFold(e.Name(), name) {
			list = append(list, path.Join(folder, e.Name()))
		}
	}
	return list
}

// fallback returns the program that a fallback file names first: lines of UTF-16 with program,
// label, options and comment (shim, README.fallback).
func fallback(root fs.FS, file string) (string, bool) {
	f, err := root.Open(file)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }() // was only read
	b, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return "", false
	}
	var units []uint16
	for ; len(b) >= 2; b = b[2:] {
		units = append(units, binary.LittleEndian.Uint16(b))
	}
	text := strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff")
	program, _, ok := strings.Cut(text, ",")
	return program, ok && program != "" && !strings.ContainsAny(program, "\r\n/\\\x00")
}
