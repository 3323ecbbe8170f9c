package diskimage

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/model"
	"ingot/model/must"
)

func parseTable(t *testing.T, raw []byte) model.ChunkTable {
	t.Helper()
	return must.Get(model.ParseChunkTable(raw, math.MaxInt64))(t)
}

// exampleDisk is of 14 MiB and a bit: zeros, noise, and text that packs well.
func exampleDisk() []byte {
	disk := diskimagetest.Disk(diskimagetest.Options{BootCode: true, ESP: diskimagetest.Bootable(), Bytes: 14*mib + 512})
	copy(disk[13*mib:], bytes.Repeat([]byte("text "), 1000))
	return disk
}

func packedBy(t *testing.T, raw []byte, name string, args ...string) []byte {
	t.Helper()
	return run(t, name, append(args, "-c", fileWith(t, "disk", raw))...)
}

func TestImageIsTheSameDiskHoweverItIsPacked(t *testing.T) {
	disk := exampleDisk()
	store := storeFor(t, nil)
	for name, test := range map[string]struct {
		file                func(t *testing.T) []byte
		format, compression string
	}{
		"raw":                 {func(*testing.T) []byte { return disk }, "raw", ""},
		"gzip":                {func(*testing.T) []byte { return gzipOf(disk) }, "raw", "gzip"},
		"gzip of two members": {func(*testing.T) []byte { return append(gzipOf(disk[:5*mib]), gzipOf(disk[5*mib:])...) }, "raw", "gzip"},
		"zstd":                {func(*testing.T) []byte { return zstdOf(disk) }, "raw", "zstd"},
		"zstd of two frames":  {func(*testing.T) []byte { return append(zstdOf(disk[:5*mib]), zstdOf(disk[5*mib:])...) }, "raw", "zstd"},
		"xz":                  {func(t *testing.T) []byte { return packedBy(t, disk, "xz", "-0") }, "raw", "xz"},
		"xz of blocks":        {func(t *testing.T) []byte { return packedBy(t, disk, "xz", "-0", "--block-size=1MiB") }, "raw", "xz"},
		"xz of two streams": {func(t *testing.T) []byte {
			return append(packedBy(t, disk[:5*mib], "xz", "-0"), packedBy(t, disk[5*mib:], "xz", "-0", "--check=sha256")...)
		}, "raw", "xz"},
		"bzip2": {func(t *testing.T) []byte { return packedBy(t, disk, "bzip2", "-1") }, "raw", "bzip2"},
		"bzip2 of two streams": {func(t *testing.T) []byte {
			return append(packedBy(t, disk[:mib], "bzip2"), packedBy(t, disk[mib:], "bzip2")...)
		}, "raw", "bzip2"},
		"qcow2":                          {func(t *testing.T) []byte { return qcow2Of(t, disk) }, "qcow2", ""},
		"qcow2 of version 2":             {func(t *testing.T) []byte { return qcow2Of(t, disk, "-o", "compat=0.10") }, "qcow2", ""},
		"qcow2 with packed clusters":     {func(t *testing.T) []byte { return qcow2Of(t, disk, "-c") }, "qcow2", ""},
		"qcow2 with clusters of zstd":    {func(t *testing.T) []byte { return qcow2Of(t, disk, "-c", "-o", "compression_type=zstd") }, "qcow2", ""},
		"qcow2 with large clusters":      {func(t *testing.T) []byte { return qcow2Of(t, disk, "-c", "-o", "cluster_size=2M") }, "qcow2", ""},
		"qcow2 with extended L2 entries": {func(t *testing.T) []byte { return qcow2Of(t, disk, "-o", "extended_l2=on,cluster_size=128k") }, "qcow2", ""},
		"qcow2 in gzip":                  {func(t *testing.T) []byte { return gzipOf(qcow2Of(t, disk)) }, "qcow2", "gzip"},
		"qcow2 in xz":                    {func(t *testing.T) []byte { return packedBy(t, qcow2Of(t, disk), "xz", "-0") }, "qcow2", "xz"},
	} {
		t.Run(name, func(t *testing.T) {
			file := test.file(t)
			img := prepared(t, store, file)
			if img.Disk.Format != test.format || img.Disk.Compression != test.compression || img.Disk.Bytes != uint64(len(disk)) {
				t.Errorf("it is %+v", img.Disk)
			}
			if got := diskOf(t, store, diskimagetest.SHA256(file)); !bytes.Equal(got, disk) {
				t.Errorf("the disk is another: %d bytes", len(got))
			}
		})
	}
}

// Chunks of zeros take nothing, and are no data.
func TestZerosTakeNothing(t *testing.T) {
	disk := diskimagetest.Disk(diskimagetest.Options{ESP: diskimagetest.Bootable(), Bytes: 64 * mib})
	store := storeFor(t, nil)
	want := uint64(3 * 4 * mib) // table and ESP, data, backup of the table
	for _, file := range [][]byte{disk, qcow2Of(t, disk)} {
		img := prepared(t, store, file)
		if img.Disk.Data != want || img.Stored > 2*mib {
			t.Errorf("%s: data %d, stored %d", img.Disk.Format, img.Disk.Data, img.Stored)
		}
	}
}

// A disk whose size is no multiple of its sectors is filled with zeros.
func TestLastSectorIsFilled(t *testing.T) {
	disk := append(exampleDisk(), 1, 2, 3)
	store := storeFor(t, nil)
	img := prepared(t, store, disk)
	want := append(slices.Clone(disk), make([]byte, 509)...)
	if got := diskOf(t, store, img.Disk.Digest); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

func TestFileThatIsNotWholeOrHasATailIsRefused(t *testing.T) {
	disk := exampleDisk()[:6*mib]
	packers := map[string]func(t *testing.T) []byte{
		"gzip":  func(*testing.T) []byte { return gzipOf(disk) },
		"zstd":  func(*testing.T) []byte { return zstdOf(disk) },
		"xz":    func(t *testing.T) []byte { return packedBy(t, disk, "xz", "-0") },
		"bzip2": func(t *testing.T) []byte { return packedBy(t, disk, "bzip2", "-1") },
	}
	store := storeFor(t, nil)
	for name, packed := range packers {
		t.Run(name, func(t *testing.T) {
			file := packed(t)
			for what, broken := range map[string][]byte{
				"cut off at its end":       file[:len(file)-1],
				"cut off in its middle":    file[:len(file)/2],
				"cut off in its trailer":   file[:len(file)-9],
				"followed by text":         append(slices.Clone(file), "and then this"...),
				"followed by zeros":        append(slices.Clone(file), make([]byte, 511)...),
				"with a byte that differs": func() []byte { b := slices.Clone(file); b[len(b)/2] ^= 1; return b }(),
			} {
				_, err := store.Prepare(t.Context(), sourceOf(broken))
				if reasonOf(err) != model.ReasonImageFormat {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

func TestChunksAreReadAnywhere(t *testing.T) {
	disk := exampleDisk()
	var chunks bytes.Buffer
	w := newChunkWriter(&chunks, uint64(len(disk)), appendFrame)
	for at := 0; at < len(disk); at += model.ChunkBytes {
		must.Do(t, w.add(copy(w.buffer(), disk[at:])))
	}
	table := parseTable(t, w.table.Encode())
	if diff := cmp.Diff(w.table, table); diff != "" {
		t.Fatal(diff)
	}
	r := must.Get(newChunkReader(table, bytes.NewReader(chunks.Bytes())))(t)
	defer r.Close()
	for _, at := range []int{0, 4*mib - 100, 8 * mib, len(disk) - 1000, 3, 5 * mib, len(disk) - 10} {
		got := make([]byte, 1000)
		n, err := r.ReadAt(got, int64(at))
		want := disk[at:min(len(disk), at+1000)]
		if !bytes.Equal(got[:n], want) || (err != nil) != (n < 1000) {
			t.Errorf("at %d: %d bytes, %v", at, n, err)
		}
	}
	chunks.Bytes()[10] ^= 1
	fresh := must.Get(newChunkReader(table, bytes.NewReader(chunks.Bytes())))(t)
	defer fresh.Close()
	if _, err := fresh.ReadAt(make([]byte, 10), 0); err == nil {
		t.Error("a damaged chunk is read")
	}
}
