// Package diskimagetest makes tiny disk images for tests: a partition table, an EFI system
// partition with loaders, and a partition with data.
package diskimagetest

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"

	"ingot/model/gpt"
)

// GUIDs of what Disk makes.
const (
	DiskGUID = "10000000-0000-4000-8000-000000000001"
	ESPGUID  = "10000000-0000-4000-8000-000000000002"
	DataGUID = "10000000-0000-4000-8000-000000000003"
)

// Options say how Disk makes an image.
type Options struct {
	SectorSize int // 0 = 512
	Bytes      int // of the disk; 0 = 16 MiB
	BootCode   bool
	// ESP are the files of its EFI system partition, by path with slashes; nil = there is none.
	ESP map[string][]byte
	// Data is put at the beginning of the other partition; nil = 1 MiB of noise.
	Data []byte
}

// Bootable are the files of an EFI system partition that starts on amd64.
func Bootable() map[string][]byte {
	return map[string][]byte{"EFI/BOOT/BOOTX64.EFI": []byte("MZ loader")}
}

const (
	mib      = 1 << 20
	espBytes = 4 * mib
)

// Disk returns an image.
func Disk(o Options) []byte {
	if o.Data == nil {
		o.Data = Noise(mib, 1)
	}
	var esp []byte
	if o.ESP != nil {
		esp = FAT(espBytes, max(512, o.SectorSize), o.ESP)
	}
	return Assemble(o, esp, o.Data)
}

// Assemble returns a disk of an EFI system partition, nil = it has none, and a partition with
// data, which it is large enough for.
func Assemble(o Options, esp, data []byte) []byte {
	if o.SectorSize == 0 {
		o.SectorSize = 512
	}
	if o.Bytes == 0 {
		o.Bytes = 16 * mib
	}
	per := uint64(mib / o.SectorSize)
	t := gpt.New(o.SectorSize, uint64(o.Bytes), DiskGUID)
	if o.BootCode {
		copy(t.MBR[:], "\xfaboot code")
	}
	disk := make([]byte, o.Bytes)
	begin := uint64(5)
	if esp != nil {
		begin = 1 + uint64(len(esp))/mib
		t.Partitions = append(t.Partitions, gpt.Partition{Number: 1, Type: gpt.TypeESP, GUID: ESPGUID, First: per, Last: begin*per - 1, Name: "esp"})
		copy(disk[mib:], esp)
	}
	t.Partitions = append(t.Partitions, gpt.Partition{Number: 2, Type: gpt.TypeLinuxData, GUID: DataGUID, First: begin * per, Last: t.LastUsable/per*per - 1, Name: "root"})
	copy(disk[begin*mib:], data)
	head, tail, err := t.Encode()
	if err != nil {
		panic(err) // of options that do not fit together
	}
	copy(disk, head)
	copy(disk[len(disk)-len(tail):], tail)
	return disk
}

// Noise returns bytes that cannot be packed, always the same for a seed.
func Noise(n int, seed byte) []byte {
	raw := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(raw) // takes everything
	return raw
}

// SHA256 returns the digest of a file as references have it.
func SHA256(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}
