package install

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
	"ingot/model/must"
	"ingot/model/testtool"
)

func loopDevice(t testing.TB, mebibytes int, args ...string) string {
	t.Helper()
	testtool.Root(t, "make a loop device")
	losetup := testtool.Path(t, "losetup")
	file := filepath.Join(t.TempDir(), "disk")
	must.Do(t, os.WriteFile(file, bytes.Repeat([]byte("data of before. "), mebibytes*mebibyte/16), 0o600))
	out, err := exec.Command(losetup, append(args, "--find", "--show", file)...).CombinedOutput()
	if err != nil {
		testtool.Lacks(t, "no loop device can be made here: %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command(losetup, "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return device
}

func onDevice(t testing.TB, d *daemon, device string) Installer {
	t.Helper()
	r := must.Get(look(device))(t)
	size := r.Size()
	r.Close()
	return Installer{
		Disks: func() []inventory.Disk {
			return []inventory.Disk{{ProbeDisk: model.ProbeDisk{
				Name: filepath.Base(device), Path: device, SizeBytes: uint64(size), LogicalBlockSize: uint64(d.doc.Image.SectorSize),
			}}}
		},
		Use:     func() map[string]string { return nil },
		Product: func() string { return "" },
		Open:    Open, Look: look, Post: d.post, Log: slog.New(slog.DiscardHandler),
	}
}

func TestAnImageIsInstalledOnABlockDevice(t *testing.T) {
	for _, sector := range []int{512, 4096} {
		t.Run(fmt.Sprintf("of sectors of %d bytes", sector), func(t *testing.T) {
			if sector == 4096 && testing.Short() {
				t.Skip("takes long: run it without -short")
			}
			device := loopDevice(t, 64, "--sector-size", fmt.Sprint(sector))
			image := imageOf(t, 41, sector)
			d := serve(t, image)
			d.doc.Image.SectorSize = sector
			must.Do(t, onDevice(t, d, device).Run(t.Context(), d.url(), "uuid"))
			if last, _ := d.outcome(); last.Stage != model.DiskRebooting || last.Reason != "" {
				t.Fatalf("last report: %+v", last)
			}
			disk := must.Get(os.ReadFile(device))(t)
			compareDisk(t, disk, image, d)
			if out := tool(t, "sgdisk", "-v", device); !strings.Contains(out, "No problems found") {
				t.Errorf("sgdisk -v:\n%s", out)
			}
			compareSeed(t, disk, d)
		})
	}
}

func compareSeed(t *testing.T, disk []byte, d *daemon) {
	t.Helper()
	c := lookAt(bytes.NewReader(disk), int64(len(disk)))
	seeds := c.seeds()
	if len(seeds) != 1 {
		t.Fatalf("%d seeds, want 1", len(seeds))
	}
	file := filepath.Join(t.TempDir(), "seed")
	must.Do(t, os.WriteFile(file, disk[seeds[0].from:seeds[0].to], 0o600))
	tool(t, "fsck.vfat", "-n", file)
	for name, want := range d.doc.Seed.Files {
		if got := tool(t, "mtype", "-i", file, "::/"+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(testtool.Path(t, name), args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestADiskInUseIsBusy(t *testing.T) {
	device := loopDevice(t, 32)
	holder := must.Get(Open(device))(t)
	defer holder.Close()
	d := serve(t, imageOf(t, 21, 512))
	must.Do(t, onDevice(t, d, device).Run(t.Context(), d.url(), "uuid"))
	if last, _ := d.outcome(); last.Reason != model.ReasonDiskBusy {
		t.Errorf("reported %q: %q, want DiskBusy", last.Reason, last.Message)
	}
}
