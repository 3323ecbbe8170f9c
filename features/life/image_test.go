package life

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ingot/cmd/probeimage/image"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

// bootCode is what the BIOS starts of a disk: it goes on to the active partition.
const bootCode = "/usr/lib/syslinux/mbr/mbr.bin"

// The partitions of a disk image, in sectors.
const (
	bootFirst  = 2048
	bootLength = 96 << 20 / sectorSize
	dataFirst  = bootFirst + bootLength
	dataLength = partitionSize / sectorSize
)

// Types of partitions.
const (
	typeEFI  = 0xef // UEFI, "OS Types"
	typeData = 0xda
)

const loaderMenu = `SERIAL 0 115200
DEFAULT guest
PROMPT 0
LABEL guest
LINUX /vmlinuz
INITRD /initramfs
APPEND ` + diskArguments + "\n"

// diskArguments are the kernel's when the disk is booted: they name no Ignition.
const diskArguments = "console=ttyS0,115200 panic=10"

// makeDiskImage makes a disk image that BIOS and UEFI boot. Nothing is mounted for
// it, so it takes no support by this computer's kernel.
func makeDiskImage(t *testing.T, built image.Result) []byte {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "disk.img")
	write := func(path string, content []byte) {
		must.Do(t, os.WriteFile(path, content, 0o600))
	}
	code := must.Get(os.ReadFile(bootCode))(t)
	write(path, append(code, make([]byte, sectorSize-len(code))...))
	must.Do(t, os.Truncate(path, (dataFirst+dataLength)*sectorSize))
	menu := filepath.Join(dir, "syslinux.cfg")
	write(menu, []byte(loaderMenu))

	boot := fmt.Sprintf("%s@@%d", path, bootFirst*sectorSize)
	rig.MustRun(t, "mformat", "-i", boot, "-T", fmt.Sprint(bootLength), "-H", fmt.Sprint(bootFirst), "-v", "GUEST", "::")
	rig.MustRun(t, "mmd", "-i", boot, "::/EFI", "::/EFI/BOOT")
	for file, name := range map[string]string{
		built.UKI: "EFI/BOOT/BOOTX64.EFI", built.Kernel: "vmlinuz", built.Initramfs: "initramfs", menu: "syslinux.cfg",
	} {
		rig.MustRun(t, "mcopy", "-i", boot, file, "::/"+name)
	}
	rig.MustRun(t, "syslinux", "--install", "--offset", fmt.Sprint(bootFirst*sectorSize), path)

	disk := must.Get(os.ReadFile(path))(t)
	partition(disk, 0, 0x80, typeEFI, bootFirst, bootLength)
	partition(disk, 1, 0, typeData, dataFirst, dataLength)
	copy(disk[signatureAt:], signature)
	return disk
}

// partition makes an entry of a disk's partition table. active is 0x80 for the one
// that the BIOS boots.
func partition(disk []byte, n int, active, kind byte, first, length uint32) {
	entry := disk[tableAt+n*entrySize:][:entrySize]
	copy(entry, []byte{active, 0xfe, 0xff, 0xff, kind, 0xfe, 0xff, 0xff}) // no cylinders and heads: see the sectors
	binary.LittleEndian.PutUint32(entry[firstAt:], first)
	binary.LittleEndian.PutUint32(entry[lengthAt:], length)
}
