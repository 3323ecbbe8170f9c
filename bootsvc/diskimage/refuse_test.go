package diskimage

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/model"
)

// qcow2Like is the beginning of a qcow2 as headers make it, in clusters of 64 KiB.
func qcow2Like(change func(h []byte)) []byte {
	file := make([]byte, 256<<10)
	copy(file, qcow2Magic)
	put32, put64 := binary.BigEndian.PutUint32, binary.BigEndian.PutUint64
	put32(file[4:], 3)
	put32(file[20:], 16)
	put64(file[24:], 16*mib)
	put32(file[36:], 1)
	put64(file[40:], 64<<10) // the L1 table
	put64(file[48:], 128<<10)
	put32(file[56:], 1)
	put32(file[96:], 4)
	put32(file[100:], 112)
	change(file)
	return file
}

// Each number is that of a case in the table of what can go wrong with images.
func TestImageThatCannotBeTakenIsRefused(t *testing.T) {
	put32, put64 := binary.BigEndian.PutUint32, binary.BigEndian.PutUint64
	secret := fileWith(t, "secret", []byte("what is on this machine"))
	marked := func(at int, mark string) []byte {
		file := make([]byte, 64<<10)
		copy(file[at:], mark)
		return file
	}
	boot := diskimagetest.Disk(diskimagetest.Options{ESP: diskimagetest.Bootable()})
	damaged := func(at int) []byte { b := slices.Clone(boot); b[at] ^= 0xff; return b }
	for name, test := range map[string]struct {
		file         []byte
		reason, says string
	}{
		"N05 a qcow2 with a backing file": {qcow2Like(func(h []byte) {
			put64(h[8:], 200)
			put32(h[16:], uint32(len(secret)))
			copy(h[200:], secret)
		}), model.ReasonImageUnsafe, "backing file"},
		"N05 a qcow2 with the length of a backing file alone": {qcow2Like(func(h []byte) { put32(h[16:], 4) }), model.ReasonImageUnsafe, "backing file"},
		"N05 a qcow2 with an external data file":              {qcow2Like(func(h []byte) { put64(h[72:], 1<<2) }), model.ReasonImageUnsafe, "in another file"},
		"N05 a qcow2 that is encrypted with AES":              {qcow2Like(func(h []byte) { put32(h[32:], 1) }), model.ReasonImageUnsafe, "encrypted"},
		"N05 a qcow2 that is encrypted with LUKS":             {qcow2Like(func(h []byte) { put32(h[32:], 2) }), model.ReasonImageUnsafe, "encrypted"},
		"a qcow2 that was not closed":                         {qcow2Like(func(h []byte) { put64(h[72:], 1) }), model.ReasonImageUnsafe, "not closed"},
		"a qcow2 with a feature that is not known":            {qcow2Like(func(h []byte) { put64(h[72:], 1<<5) }), model.ReasonImageUnsafe, "not known"},
		"a qcow of version 1":                                 {qcow2Like(func(h []byte) { put32(h[4:], 1) }), model.ReasonImageFormat, "version 1"},
		"a qcow2 of version 4":                                {qcow2Like(func(h []byte) { put32(h[4:], 4) }), model.ReasonImageFormat, "version 4"},
		"a qcow2 with clusters of 256 bytes":                  {qcow2Like(func(h []byte) { put32(h[20:], 8) }), model.ReasonImageUnsafe, "clusters of 2^8"},
		"a qcow2 with clusters of 4 MiB":                      {qcow2Like(func(h []byte) { put32(h[20:], 22) }), model.ReasonImageUnsafe, "clusters of 2^22"},
		"a qcow2 with a header of 4 GiB":                      {qcow2Like(func(h []byte) { put32(h[100:], 1<<32-1) }), model.ReasonImageUnsafe, "header of"},
		"a qcow2 with an L1 table of 32 GiB":                  {qcow2Like(func(h []byte) { put32(h[36:], 1<<32-1) }), model.ReasonImageUnsafe, "at most 524288"},
		"a qcow2 with an L1 table that is too small":          {qcow2Like(func(h []byte) { put64(h[24:], 100<<30) }), model.ReasonImageUnsafe, "needs 200"},
		"a qcow2 with an L1 table behind its end":             {qcow2Like(func(h []byte) { put64(h[40:], 1<<40) }), model.ReasonImageUnsafe, "does not lie in its file"},
		"a qcow2 with an L1 table in its header":              {qcow2Like(func(h []byte) { put64(h[40:], 0) }), model.ReasonImageUnsafe, "does not lie in its file"},
		"a qcow2 whose L2 table lies behind its end":          {qcow2Like(func(h []byte) { put64(h[64<<10:], 1<<40) }), model.ReasonImageFormat, "damaged"},
		"a qcow2 of no bytes":                                 {qcow2Like(func(h []byte) { put64(h[24:], 0) }), model.ReasonImageFormat, "0 bytes"},
		"a qcow2 that ends in its header":                     {qcow2Like(func([]byte) {})[:50], model.ReasonImageFormat, "cut off"},
		"a qcow2 with zeros for a disk":                       {qcow2Like(func([]byte) {}), model.ReasonImageNoPartitions, "no partition table"},
		"N07 a qcow2 of 8 TiB":                                {qcow2Like(func(h []byte) { put64(h[24:], 8<<40) }), model.ReasonImageTooLarge, "8.0 TiB"},
		"N07 zeros that unpack to more than is allowed":       {zstdOf(make([]byte, 40*mib)), model.ReasonImageTooLarge, "32.0 MiB"},
		"N08 a live ISO":                                      {marked(0x8001, "CD001"), model.ReasonImageFormat, "ISO 9660"},
		"N08 a vmdk":                                          {marked(0, "KDMV"), model.ReasonImageFormat, "qemu-img convert -O qcow2 -c disk.vmdk"},
		"N08 a vmdk's descriptor":                             {marked(0, "# Disk DescriptorFile"), model.ReasonImageFormat, "vmdk"},
		"N08 a vhdx":                                          {marked(0, "vhdxfile"), model.ReasonImageFormat, "disk.vhdx"},
		"N08 a dynamic vhd":                                   {marked(0, "conectix"), model.ReasonImageFormat, "disk.vhd"},
		"N08 a fixed vhd":                                     {append(slices.Clone(boot), marked(0, "conectix")[:512]...), model.ReasonImageFormat, "disk.vhd"},
		"N08 a vdi":                                           {marked(0x40, "\x7f\x10\xda\xbe"), model.ReasonImageFormat, "disk.vdi"},
		"N08 a tar.gz":                                        {gzipOf(marked(257, "ustar")), model.ReasonImageFormat, "tar archive"},
		"a zip archive":                                       {marked(0, "PK\x03\x04"), model.ReasonImageFormat, "zip"},
		"an image that is packed twice":                       {gzipOf(zstdOf(boot)), model.ReasonImageFormat, "packed again (zstd)"},
		"N11 no partition table":                              {marked(100, "text"), model.ReasonImageNoPartitions, "no partition table"},
		"N11 a wrong checksum of the table's header":          {damaged(512 + 40), model.ReasonImageNoPartitions, "checksum of its header"},
		"N11 a wrong checksum of the table's entries":         {damaged(1024), model.ReasonImageNoPartitions, "checksum of its entries"},
		"N11 a table that is missing behind its protection":   {damaged(512), model.ReasonImageNoPartitions, "none does"},
		"N11 a filesystem without a table":                    {diskimagetest.FAT(4*mib, 512, nil), model.ReasonImageNoPartitions, "filesystem (vfat)"},
		"N11 an MBR with a partition behind the disk's end":   {mbrDisk(4*mib, func(d []byte) { binary.LittleEndian.PutUint32(d[446+12:], 1<<31) }), model.ReasonImageNoPartitions, "damaged"},
		"an image of no bytes in gzip":                        {gzipOf(nil), model.ReasonImageFormat, "no bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			store := storeFor(t, nil)
			store.maxImage = 32 * mib
			if strings.Contains(name, "L1 table that is too small") {
				store = storeFor(t, nil)
			}
			_, err := store.Prepare(t.Context(), sourceOf(test.file))
			if reasonOf(err) != test.reason || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %s: %v", reasonOf(err), err)
			}
			entries, err := os.ReadDir(dirOf(store))
			if err != nil || len(entries) != 1 { // the lock
				t.Errorf("%v, %v is left", entries, err)
			}
		})
	}
}

// A zstd file may ask for more memory than there is.
func TestUnpackingTakesNoMoreMemoryThanItIsGiven(t *testing.T) {
	huge := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8 /* a window of 2 GiB */, 0x01, 0x00, 0x00}
	_, err := storeFor(t, nil).Prepare(t.Context(), sourceOf(append(huge, make([]byte, 100)...)))
	if reasonOf(err) != model.ReasonImageFormat || !strings.Contains(err.Error(), "128.0 MiB") {
		t.Errorf("zstd: %v", err)
	}
	file := packedBy(t, bytes.Repeat([]byte("text"), 1000), "xz", "--lzma2=preset=6,dict=256MiB")
	_, err = storeFor(t, nil).Prepare(t.Context(), sourceOf(file))
	if reasonOf(err) != model.ReasonImageFormat || !strings.Contains(err.Error(), "64.0 MiB") {
		t.Errorf("xz: %v", err)
	}
}

// mbrDisk is a disk with a master boot record and one FAT partition at 1 MiB, an EFI system
// partition that starts on amd64.
func mbrDisk(size int, change func(disk []byte)) []byte {
	disk := make([]byte, size)
	copy(disk[446:], []byte{0x80, 0, 0, 0, 0xef, 0, 0, 0})
	binary.LittleEndian.PutUint32(disk[446+8:], 2048)
	binary.LittleEndian.PutUint32(disk[446+12:], 4096)
	disk[510], disk[511] = 0x55, 0xaa
	copy(disk[mib:], diskimagetest.FAT(2*mib, 512, diskimagetest.Bootable()))
	change(disk)
	return disk
}
