package diskimage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/model"
	"ingot/model/must"
)

// Whatever a qcow2 says of itself: it is refused, or read within what it may take.
func FuzzQcow2(f *testing.F) {
	f.Add(qcow2Like(func([]byte) {}))
	f.Add(qcow2Like(func(h []byte) { h[72+7] = 1 << 4 }))
	f.Add([]byte(qcow2Magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > mib {
			return
		}
		path := filepath.Join(t.TempDir(), "source")
		must.Do(t, os.WriteFile(path, file, 0o600))
		source := must.Get(os.Open(path))(t)
		defer source.Close()
		var chunks bytes.Buffer
		c := conversion{
			source: source, size: int64(len(file)), max: 64 * mib, chunks: &chunks, progress: func(int64, int64) {},
			scratch: func() (*os.File, error) { return nil, errors.New("no scratch") }, took: func(int64) error { return nil },
		}
		img, err := c.run(t.Context())
		if err != nil {
			return
		}
		if _, err := model.ParseChunkTable(img.table.Encode(), 64*mib); err != nil {
			t.Errorf("the table of what was converted: %v", err)
		}
	})
}

// sparseDisk is a disk with something at some places, and zeros.
type sparseDisk struct {
	size  int64
	parts map[int64][]byte
}

func (s sparseDisk) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at+int64(len(p)) > s.size {
		return 0, fmt.Errorf("read %d bytes at %d", len(p), at)
	}
	clear(p)
	for begin, part := range s.parts {
		from, to := max(begin, at), min(begin+int64(len(part)), at+int64(len(p)))
		if from < to {
			copy(p[from-at:to-at], part[from-begin:])
		}
	}
	return len(p), nil
}

// Whatever is on a disk: its partition tables and FAT filesystems are refused, or read in
// bounded time.
func FuzzLayout(f *testing.F) {
	gpt := diskimagetest.Disk(diskimagetest.Options{ESP: diskimagetest.Bootable()})
	f.Add(gpt[:1024+512], gpt[mib:mib+64<<10])
	mbr := mbrDisk(4*mib, func([]byte) {})
	f.Add(mbr[:512], mbr[mib:mib+64<<10])
	f.Add(mbr[:512], diskimagetest.FAT(2*mib, 512, map[string][]byte{"EFI/A/BOOTX64.CSV": csv("a.efi,,")})[:64<<10])
	f.Fuzz(func(t *testing.T, head, esp []byte) {
		if len(head) > 64<<10 || len(esp) > 256<<10 {
			return
		}
		disk := sparseDisk{64 * mib, map[int64][]byte{0: head, mib: esp}}
		l, err := readLayout(disk, 64*mib)
		if err != nil {
			return
		}
		for _, p := range l.partitions {
			if p.First+p.Bytes > 64*mib || p.Bytes == 0 {
				t.Errorf("partition %d goes from %d to %d", p.Number, p.First, p.First+p.Bytes)
			}
		}
	})
}

func FuzzFAT(f *testing.F) {
	f.Add(diskimagetest.FAT(mib, 512, diskimagetest.Bootable())[:128<<10])
	f.Add(diskimagetest.FAT(4*mib, 512, map[string][]byte{"EFI/A/BOOTX64.CSV": csv("a.efi,,"), "EFI/A/A.EFI": {1}})[:128<<10])
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 512<<10 {
			return
		}
		esp, err := openFAT(sparseDisk{64 * mib, map[int64][]byte{0: raw}}, 64*mib)
		if err != nil {
			return
		}
		_, _ = startsOf(esp)
	})
}
