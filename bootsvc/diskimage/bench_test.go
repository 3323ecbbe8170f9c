package diskimage

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/model/must"
)

func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident returns how much memory this process has resident, and the most that it has had since
// resident was asked last, in bytes; 0 where that cannot be told.
func resident() (now, peak int64) {
	raw, err := os.ReadFile("/proc/self/status")
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	if err != nil {
		return 0, 0
	}
	value := func(key string) (kib int64) {
		if _, line, ok := bytes.Cut(raw, []byte(key)); ok {
			_, _ = fmt.Sscan(string(line), &kib)
		}
		return kib << 10
	}
	return value("VmRSS:"), value("VmHWM:")
}

// systemDisk is a disk as systems are: five eighths are files of this machine's system, the rest is
// zeros. Made-up data packs, and so is packed, many times better than that.
func systemDisk(b *testing.B, size int) []byte {
	b.Helper()
	disk := make([]byte, size)
	copy(disk, diskimagetest.Disk(diskimagetest.Options{ESP: diskimagetest.Bootable(), Bytes: size}))
	rest := disk[5*mib : size/8*5]
	err := filepath.WalkDir("/usr", func(path string, d fs.DirEntry, err error) error {
		if len(rest) == 0 {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			rest = rest[copy(rest, content):]
		}
		return err
	})
	if err != nil || len(rest) > 0 {
		b.Fatalf("%d bytes are missing to a system: %v", len(rest), err)
	}
	return disk
}

// BenchmarkConversion compares, for each packing, the CPU that an image takes from its file to
// chunks with what unpacking and hashing take alone: file and disk, by SHA-256.
func BenchmarkConversion(b *testing.B) {
	disk := systemDisk(b, 128*mib)
	files := []struct {
		name string
		raw  func() []byte
	}{
		{"raw", func() []byte { return disk }},
		{"zstd", func() []byte { return zstdOf(disk) }},
		{"gzip", func() []byte { return gzipOf(disk) }},
		{"xz", func() []byte { return run(b, "xz", "-1", "-c", fileWith(b, "disk", disk)) }},
		{"bzip2", func() []byte { return run(b, "bzip2", "-c", fileWith(b, "disk", disk)) }},
		{"qcow2", func() []byte { return qcow2Of(b, disk) }},
		{"qcow2-zlib", func() []byte { return qcow2Of(b, disk, "-c") }},
		{"qcow2-zstd", func() []byte { return qcow2Of(b, disk, "-c", "-o", "compression_type=zstd") }},
	}
	for _, f := range files {
		b.Run(f.name, func(b *testing.B) {
			path := fileWith(b, "source", f.raw())
			// The chunks go where they went before: a virtual machine's pages cost many times as
			// much when they are used first.
			chunks := filepath.Join(b.TempDir(), "chunks")
			convertFile(b, path, chunks)
			debug.FreeOSMemory()
			var alone, converted time.Duration
			var most int64 // that a conversion takes beside what the benchmark holds
			for b.Loop() {
				alone += hashAlone(b, path)
				debug.FreeOSMemory()
				before, _ := resident()
				converted += convertFile(b, path, chunks)
				_, peak := resident()
				most = max(most, peak-before)
			}
			b.ReportMetric(float64(len(disk))/mib*float64(b.N)/converted.Seconds(), "MiB/cpu-s")
			b.ReportMetric(converted.Seconds()/alone.Seconds(), "x-unpack+hash")
			b.ReportMetric(float64(most)/mib, "resident-MiB")
		})
	}
}

func convertFile(b *testing.B, path, to string) time.Duration {
	began := cpu()
	source := must.Get(os.Open(path))(b)
	defer source.Close()
	info := must.Get(source.Stat())(b)
	must.Get(io.Copy(sha256.New(), source))(b)
	chunks := must.Get(os.Create(to))(b)
	defer chunks.Close()
	c := conversion{
		source: source, size: info.Size(), max: maxImageBytes, chunks: chunks, progress: func(int64, int64) {},
		took: func(int64) error { return nil },
	}
	must.Get(c.run(b.Context()))(b)
	return cpu() - began
}

// hashAlone hashes a file and the disk that is in it, and returns the CPU that took.
func hashAlone(b *testing.B, path string) time.Duration {
	began := cpu()
	source := must.Get(os.Open(path))(b)
	defer source.Close()
	size := must.Get(io.Copy(sha256.New(), source))(b)
	head := must.Get(headOf(source, size))(b)
	var disk io.Reader
	if format, err := formatOf(head); err == nil && format == formatQcow2 {
		img := must.Get(readQcow2(source, size))(b)
		disk = io.NewSectionReader(img, 0, img.Size())
	} else {
		u := must.Get(newUnpacker(io.NewSectionReader(source, 0, size), compressionOf(head)))(b)
		defer u.close()
		disk = u
	}
	must.Get(io.CopyBuffer(sha256.New(), struct{ io.Reader }{disk}, make([]byte, mib)))(b)
	return cpu() - began
}
