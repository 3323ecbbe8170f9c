package wipe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
	"ingot/model/must"
)

// fake is an opened disk. It can do the erasures in can.
type fake struct {
	*content
	size    int64
	can     map[Method]error // nil = works, anything else is what it fails with
	lies    bool             // erasures report success and do nothing
	loses   bool             // so does writing
	writes  error            // what writing fails with
	flushed bool
	hang    chan struct{} // reading waits for it to be closed
	own     Firmware
	locked  func() bool // nil = never: nothing can be read or written then
}

var errLockedDisk = errors.New("input/output error of a locked disk")

func (f *fake) access() error {
	if f.locked != nil && f.locked() {
		return errLockedDisk
	}
	return nil
}

func (f *fake) Firmware() Firmware { return f.own }

func (f *fake) Size() int64 { return f.size }

func (f *fake) Close() error { return nil }

func (f *fake) Flush() error {
	if err := f.access(); err != nil {
		return err
	}
	f.flushed = true
	return nil
}

func (f *fake) Erase(how Method, offset, length int64) error {
	err, known := f.can[how]
	if !known {
		return errors.ErrUnsupported
	}
	if err != nil || f.lies {
		return err
	}
	f.flushed = false
	f.change(offset, length, zero)
	return nil
}

func (f *fake) WriteAt(p []byte, offset int64) (int, error) {
	if err := firstError(f.writes, f.access()); err != nil {
		return 0, err
	}
	f.flushed = false
	if f.loses {
		return len(p), nil
	}
	return f.content.WriteAt(p, offset)
}

func (f *fake) ReadAt(p []byte, offset int64) (int, error) {
	if f.hang != nil {
		<-f.hang
	}
	if err := f.access(); err != nil {
		return 0, err
	}
	if !f.flushed {
		return 0, errors.New("read from the cache, not from the medium")
	}
	return f.content.ReadAt(p, offset)
}

const (
	diskSize  = 80 * mib
	chunkSize = 64 << 10
)

var data = bytes.Repeat([]byte("secret! "), chunkSize/8)

// content is the content of a disk. A chunk that was never written holds data, and all chunks of
// zeros are one, so that a disk takes little memory.
type content struct {
	mu      sync.Mutex
	written map[int64][]byte // by the number of the chunk
}

func (c *content) chunk(n int64) []byte {
	if b, ok := c.written[n]; ok {
		return b
	}
	return data
}

func (c *content) change(offset, length int64, how func([]byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written == nil {
		c.written = make(map[int64][]byte)
	}
	buffer := make([]byte, chunkSize)
	for end := offset + length; offset < end; {
		n, from := offset/chunkSize, offset%chunkSize
		to := min(chunkSize, from+end-offset)
		copy(buffer, c.chunk(n))
		how(buffer[from:to])
		if bytes.Equal(buffer, zeros[:chunkSize]) {
			c.written[n] = zeros[:chunkSize]
		} else {
			c.written[n] = bytes.Clone(buffer)
		}
		offset += to - from
	}
}

func (c *content) WriteAt(p []byte, offset int64) (int, error) {
	rest := p
	c.change(offset, int64(len(p)), func(b []byte) { rest = rest[copy(b, rest):] })
	return len(p), nil
}

func (c *content) ReadAt(p []byte, offset int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for rest := p; len(rest) > 0; {
		n := copy(rest, c.chunk(offset / chunkSize)[offset%chunkSize:])
		rest, offset = rest[n:], offset+int64(n)
	}
	return len(p), nil
}

func (c *content) holdsSecrets() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range int64(diskSize / chunkSize) {
		if bytes.Contains(c.chunk(n), []byte("secret!")) {
			return true
		}
	}
	return false
}

// diskFile makes a file that is full of data, in memory, because real disks are slow.
func diskFile(t *testing.T) *os.File {
	t.Helper()
	fd := must.Get(unix.MemfdCreate("disk", unix.MFD_CLOEXEC))(t)
	file := os.NewFile(uintptr(fd), "disk")
	t.Cleanup(func() { file.Close() })
	for range diskSize / chunkSize {
		must.Get(file.Write(data))(t)
	}
	return file
}

// open opens a disk as f says, of diskSize unless f has another size.
func open(c *content, f fake) *fake {
	f.content, f.size = c, cmp.Or(f.size, diskSize)
	return &f
}

func choice(path string) Choice {
	return Choice{Disk: inventory.Disk{
		ProbeDisk:  model.ProbeDisk{Path: path, Name: "sda", Serial: "S1", Model: "M", SizeBytes: diskSize},
		Partitions: []inventory.Partition{{Name: "sda1", Start: 20 * mib, Bytes: 40 * mib}},
	}}
}

// zeroed returns which MiB of a disk are zero, as ranges: "0-16 20-22".
func zeroed(t *testing.T, disk io.ReaderAt) string {
	t.Helper()
	var ranges []string
	begin, buffer := -1, make([]byte, mib)
	for i := 0; i <= diskSize/mib; i++ {
		clear := false
		if i < diskSize/mib {
			if _, err := disk.ReadAt(buffer, int64(i)*mib); err != nil {
				t.Error(err)
			}
			clear = bytes.Equal(buffer, zeros[:mib])
		}
		switch {
		case clear && begin < 0:
			begin = i
		case !clear && begin >= 0:
			ranges, begin = append(ranges, fmt.Sprintf("%d-%d", begin, i)), -1
		}
	}
	return strings.Join(ranges, " ")
}

func TestWipe(t *testing.T) {
	broken := errors.New("input/output error")
	const edgesOnly = "0-16 20-36 44-60 64-80"
	tests := map[string]struct {
		mode   string
		disk   fake
		zeroed string
		method string
		err    string // "" = wiped
	}{
		"quick overwrites the ends of a disk that cannot discard, and of its partitions": {
			mode: model.CleanupQuick, zeroed: edgesOnly, method: "overwrite-edges",
		},
		"quick discards everything where it can": {
			mode: model.CleanupQuick, disk: fake{can: map[Method]error{Discard: nil}}, zeroed: "0-80", method: "blkdiscard+overwrite-edges",
		},
		"quick does not rely on a discard": {
			mode: model.CleanupQuick, disk: fake{can: map[Method]error{Discard: nil}, lies: true}, zeroed: edgesOnly,
			method: "blkdiscard+overwrite-edges",
		},
		"quick goes on when discarding fails": {
			mode: model.CleanupQuick, disk: fake{can: map[Method]error{Discard: broken}}, zeroed: edgesOnly, method: "overwrite-edges",
		},
		"secure overwrites every byte of a disk that can do nothing better": {
			mode: model.CleanupSecure, zeroed: "0-80", method: "overwrite",
		},
		"secure lets the kernel write the zeros": {
			mode: model.CleanupSecure, disk: fake{can: map[Method]error{ZeroOut: nil}}, zeroed: "0-80", method: "blkzeroout",
		},
		"secure prefers a secure discard": {
			mode: model.CleanupSecure, disk: fake{can: map[Method]error{SecureDiscard: nil, ZeroOut: broken}}, zeroed: "0-80",
			method: "blksecdiscard",
		},
		"secure does not rely on erasures that lie": {
			mode: model.CleanupSecure, disk: fake{can: map[Method]error{SecureDiscard: nil}, lies: true}, zeroed: "0-80",
			method: "overwrite",
		},
		"zeros that did not reach the medium are a failure": {
			mode: model.CleanupSecure, disk: fake{can: map[Method]error{ZeroOut: nil}, lies: true, loses: true}, method: "overwrite",
			err: "the disk still holds data within 1048576 bytes from byte 0",
		},
		"zeros that are not on the medium are written again": {
			mode: model.CleanupSecure, disk: fake{can: map[Method]error{ZeroOut: nil}, lies: true}, zeroed: "0-80", method: "overwrite",
		},
		"a disk that cannot be written has failed": {
			mode: model.CleanupQuick, disk: fake{writes: broken}, method: "overwrite-edges",
			err: "overwrite at byte 0: input/output error",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := new(content)
			w := Wiper{
				Open: func(p string) (Device, error) { return open(disk, test.disk), nil },
				Log:  slog.New(slog.DiscardHandler),
			}
			want := []model.DiskWipe{{
				Name: "sda", Serial: "S1", Model: "M", SizeBytes: diskSize, Method: test.method, Result: model.WipeDone,
			}}
			if test.err != "" {
				want[0].Result, want[0].Error = model.WipeFailed, test.err
			}
			if diff := gocmp.Diff(want, w.Wipe(t.Context(), test.mode, []Choice{choice("sda")})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if got := zeroed(t, disk); got != test.zeroed {
				t.Errorf("MiB that are zero: got %q, want %q", got, test.zeroed)
			}
		})
	}
}

func TestEveryDiskHasAResult(t *testing.T) {
	disk := new(content)
	busy := Choice{Disk: inventory.Disk{ProbeDisk: model.ProbeDisk{Path: "busy", Name: "sdb", Serial: "S2"}}}
	stick := Choice{
		Disk:   inventory.Disk{ProbeDisk: model.ProbeDisk{Path: "stick", Name: "sdc", Serial: "S3"}},
		Result: model.WipeSkipped, Why: "the medium is removable",
	}
	var mu sync.Mutex
	var opened []string
	w := Wiper{
		Open: func(p string) (Device, error) {
			mu.Lock()
			defer mu.Unlock()
			opened = append(opened, p)
			if p == "busy" {
				return nil, unix.EBUSY
			}
			return open(disk, fake{}), nil
		},
		Log: slog.New(slog.DiscardHandler),
	}
	got := w.Wipe(t.Context(), model.CleanupQuick, []Choice{choice("sda"), busy, stick})
	want := []model.DiskWipe{
		{Name: "sda", Serial: "S1", Model: "M", SizeBytes: diskSize, Method: "overwrite-edges", Result: model.WipeDone},
		{Name: "sdb", Serial: "S2", Result: model.WipeFailed, Error: "open: device or resource busy"},
		{Name: "sdc", Serial: "S3", Result: model.WipeSkipped, Error: "the medium is removable"},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if len(opened) != 2 {
		t.Errorf("opened %q, want the first two disks only", opened)
	}
}

func TestArraysAreTakenDownBeforeTheirDisksAreOpened(t *testing.T) {
	var steps []string
	c := choice("sda")
	c.Disk.Above = []inventory.Node{{Name: "dm-0", Mapping: "vg-root"}, {Name: "md127", Array: true}, {Name: "sda1"}}
	w := Wiper{
		Open: func(p string) (Device, error) {
			steps = append(steps, "open "+p)
			return nil, unix.EBUSY
		},
		Takedown: func(n inventory.Node) error {
			steps = append(steps, "take down "+n.Name)
			return unix.EBUSY
		},
		Log: slog.New(slog.DiscardHandler),
	}
	w.Wipe(t.Context(), model.CleanupQuick, []Choice{c})
	if diff := gocmp.Diff([]string{"take down dm-0", "take down md127", "open sda"}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestADiskThatHangsIsGivenUpAfterItsLimit(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		w := Wiper{
			Open: func(p string) (Device, error) { return open(disk, fake{hang: hang}), nil },
			Log:  slog.New(slog.DiscardHandler),
		}
		began := time.Now()
		got := w.Wipe(t.Context(), model.CleanupQuick, []Choice{choice("sda")})
		close(hang)
		const want = "the disk does not answer: the time limit was reached: 10m0s"
		if got[0].Error != want || got[0].Result != model.WipeFailed {
			t.Errorf("got %s %q, want failed %q", got[0].Result, got[0].Error, want)
		}
		if took := time.Since(began); took != QuickLimit+grace {
			t.Errorf("took %v, want %v", took, QuickLimit+grace)
		}
	})
}

func TestADiskThatHangsWhenItIsOpenedIsGivenUpAfterItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		w := Wiper{
			Open: func(string) (Device, error) {
				<-hang
				return nil, unix.EIO
			},
			Log: slog.New(slog.DiscardHandler),
		}
		began := time.Now()
		time.AfterFunc(time.Hour, func() { close(hang) }) // or this test would hang as well
		got := w.Wipe(t.Context(), model.CleanupQuick, []Choice{choice("sda")})
		if got[0].Result != model.WipeFailed || !strings.Contains(got[0].Error, "the disk does not answer") {
			t.Errorf("got %+v, want failed", got[0])
		}
		if took := time.Since(began); took != QuickLimit+grace {
			t.Errorf("took %v, want %v", took, QuickLimit+grace)
		}
		time.Sleep(time.Hour)
	})
}

func TestAnArrayThatHangsDoesNotKeepDisksFromBeingWiped(t *testing.T) {
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		c := choice("sda")
		c.Disk.Above = []inventory.Node{{Name: "md127", Array: true}}
		w := Wiper{
			Open: func(p string) (Device, error) { return open(disk, fake{}), nil },
			Takedown: func(inventory.Node) error {
				<-hang
				return nil
			},
			Log: slog.New(slog.DiscardHandler),
		}
		began := time.Now()
		time.AfterFunc(time.Hour, func() { close(hang) })
		if got := w.Wipe(t.Context(), model.CleanupQuick, []Choice{c}); got[0].Result != model.WipeDone {
			t.Errorf("got %+v, want wiped", got[0])
		}
		if took := time.Since(began); took != takedownLimit {
			t.Errorf("took %v, want %v", took, takedownLimit)
		}
		time.Sleep(time.Hour)
	})
}

func TestAWipeThatIsCalledOffIsNotDone(t *testing.T) {
	disk := new(content)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, mode := range []string{model.CleanupQuick, model.CleanupSecure} {
		w := Wiper{Open: func(p string) (Device, error) { return open(disk, fake{}), nil }, Log: slog.New(slog.DiscardHandler)}
		if got := w.Wipe(ctx, mode, []Choice{choice("sda")}); got[0].Result != model.WipeFailed {
			t.Errorf("%s: got %+v, want failed", mode, got[0])
		}
	}
}

func TestLimits(t *testing.T) {
	const tb = 1e12
	for _, tc := range []struct {
		mode  string
		bytes uint64
		want  time.Duration
	}{
		{model.CleanupQuick, 30 * tb, 10 * time.Minute},
		{model.CleanupSecure, tb, 24 * time.Hour},
		{model.CleanupSecure, 4 * tb, 24 * time.Hour},
		{model.CleanupSecure, 20 * tb, 400_000 * time.Second}, // 111 hours; at 200 MB/s it takes 28
		{model.CleanupSecure, 1 << 63, longestLimit},
	} {
		if got := (Wiper{}).limit(tc.mode, tc.bytes); got != tc.want {
			t.Errorf("%s of %d bytes: got %v, want %v", tc.mode, tc.bytes, got, tc.want)
		}
	}
}

func TestEdges(t *testing.T) {
	const gib = 1 << 30
	tests := map[string]struct {
		size       int64
		partitions []inventory.Partition
		want       []area
	}{
		"both ends":               {size: gib, want: []area{{0, edge}, {gib - edge, edge}}},
		"a small disk as a whole": {size: edge, want: []area{{0, edge}}},
		"both ends of a partition": {
			size: gib, partitions: parts(100*mib, 500*mib),
			want: []area{{0, edge}, {gib - edge, edge}, {100 * mib, edge}, {584 * mib, edge}},
		},
		"a small partition as a whole": {
			size: gib, partitions: parts(100*mib, mib), want: []area{{0, edge}, {gib - edge, edge}, {100 * mib, mib}},
		},
		"a partition that begins off limits": {size: gib, partitions: parts(2*gib, mib), want: []area{{0, edge}, {gib - edge, edge}}},
		"a partition that ends off limits": {
			size: gib, partitions: parts(gib-mib, 1<<63),
			want: []area{{0, edge}, {gib - edge, edge}, {gib - mib, mib}},
		},
		"a partition of nothing": {size: gib, partitions: parts(mib, 0), want: []area{{0, edge}, {gib - edge, edge}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(test.want, edges(test.size, test.partitions), gocmp.AllowUnexported(area{})); diff != "" {
				t.Errorf("areas (-want +got):\n%s", diff)
			}
		})
	}
}

func parts(start, length uint64) []inventory.Partition {
	return []inventory.Partition{{Start: start, Bytes: length}}
}

func FuzzAreasLieOnTheDisk(f *testing.F) {
	f.Add(int64(1<<30), uint64(1<<20), uint64(1<<62))
	f.Add(int64(1), uint64(0), uint64(1<<63))
	f.Fuzz(func(t *testing.T, size int64, start, length uint64) {
		if size <= 0 {
			t.Skip("no such disk")
		}
		for _, a := range slices.Concat(edges(size, parts(start, length)), spotChecks(size), sampleAreas(size)) {
			if a.offset < 0 || a.length <= 0 || a.length > size || a.offset > size-a.length {
				t.Errorf("area %+v is not within %d bytes", a, size)
			}
		}
	})
}

func TestRemovalOfAMapping(t *testing.T) {
	request := must.Get(removal("vg-root"))(t)
	name, _, _ := bytes.Cut(request.Name[:], []byte{0})
	if string(name) != "vg-root" || request.Data_size != 312 || request.Version[0] != 4 {
		t.Errorf("request %+v", request)
	}
	if _, err := removal(strings.Repeat("x", 128)); err == nil {
		t.Error("a name that is too long was taken")
	}
}

func TestArraysAndCachesAreStoppedByTheirFiles(t *testing.T) {
	for _, test := range []struct {
		node       inventory.Node
		file, want string
	}{
		{inventory.Node{Name: "md127", Array: true}, "md127/md/array_state", "clear"},
		{inventory.Node{Name: "bcache0", Cached: true}, "bcache0/bcache/stop", "1"},
	} {
		sysfs := t.TempDir()
		file := filepath.Join(sysfs, test.file)
		if err := takedown(sysfs, test.node); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s that is gone: got %v", test.node, err)
		}
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, nil, 0o600))
		must.Do(t, takedown(sysfs, test.node))
		if got, _ := os.ReadFile(file); string(got) != test.want {
			t.Errorf("%s is told %q, want %q", test.node, got, test.want)
		}
	}
}

func loopDevice(t *testing.T, file *os.File) string {
	t.Helper()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("NOT TESTED: wiping a real block device, for which this test needs root and loop devices: %v", err)
	}
	defer control.Close()
	for range 20 { // another process may take the free one first
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Skipf("NOT TESTED: wiping a real block device: no free loop device: %v", err)
		}
		name := fmt.Sprintf("/dev/loop%d", n)
		device, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Skipf("NOT TESTED: wiping a real block device: %v", err)
		}
		err = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_FD, int(file.Fd()))
		if err == nil {
			t.Cleanup(func() {
				if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); err != nil {
					t.Errorf("detach %s: %v", name, err)
				}
				device.Close()
			})
			return name
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) {
			t.Skipf("NOT TESTED: wiping a real block device: attach %s: %v", name, err)
		}
	}
	t.Skip("NOT TESTED: wiping a real block device: others take every free loop device first")
	return ""
}

func TestWipeOfARealBlockDevice(t *testing.T) {
	for _, mode := range []string{model.CleanupQuick, model.CleanupSecure} {
		t.Run(mode, func(t *testing.T) {
			file := diskFile(t)
			c := choice(loopDevice(t, file))
			got := Local(slog.New(slog.DiscardHandler)).Wipe(t.Context(), mode, []Choice{c})
			if got[0].Result != model.WipeDone {
				t.Fatalf("got %+v, want wiped", got[0])
			}
			t.Logf("method %s", got[0].Method)
			want := "0-80"
			if got[0].Method == "overwrite-edges" {
				want = "0-16 20-36 44-60 64-80"
			}
			if z := zeroed(t, file); z != want {
				t.Errorf("MiB that are zero: got %q, want %q", z, want)
			}
		})
	}
}

func TestABlockDeviceInUseIsRefused(t *testing.T) {
	file := diskFile(t)
	name := loopDevice(t, file)
	user, err := os.OpenFile(name, os.O_RDWR|unix.O_EXCL, 0) // as a mount has it
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	got := Local(slog.New(slog.DiscardHandler)).Wipe(t.Context(), model.CleanupSecure, []Choice{choice(name)})
	if got[0].Result != model.WipeFailed || !strings.Contains(got[0].Error, "mounted, used as swap") {
		t.Errorf("got %+v, want failed because it is in use", got[0])
	}
	if z := zeroed(t, file); z != "" {
		t.Errorf("MiB %s of a disk in use were cleared", z)
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// slowDiscard is a large disk that takes minutes to discard a little of itself.
type slowDiscard struct{ *fake }

func (d slowDiscard) Erase(how Method, _, _ int64) error {
	if how != Discard {
		return errors.ErrUnsupported
	}
	time.Sleep(2 * time.Minute)
	return nil
}

func TestADiskThatDiscardsSlowlyIsOverwrittenAtItsEdges(t *testing.T) {
	const size = 160 << 30 // ten steps
	disk := new(content)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := Wiper{Log: slog.New(slog.DiscardHandler), Open: func(string) (Device, error) {
			return slowDiscard{open(disk, fake{size: size})}, nil
		}}
		got := w.Wipe(t.Context(), model.CleanupQuick, []Choice{choice("sda")})[0]
		if got.Result != model.WipeDone || got.Method != "overwrite-edges" {
			t.Errorf("got %+v, want its edges overwritten", got)
		}
		if took := time.Since(began); took >= QuickLimit {
			t.Errorf("took %v", took)
		}
	})
}
