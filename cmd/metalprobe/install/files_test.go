package install

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/install/efi"
	"ingot/cmd/metalprobe/install/fat"
	"ingot/model"
	"ingot/model/gpt"
	"ingot/model/must"
	"ingot/model/testtool"
)

func TestFilesOfASeed(t *testing.T) {
	fcos := &model.InstallSeed{
		Kind: model.SeedFCOS, Label: "boot", Files: map[string]string{"ignition/config.ign": "{}"}, KernelArguments: "rd.neednet=1 ip=dhcp",
	}
	tests := map[string]struct {
		before map[string]string
		seed   *model.InstallSeed
		want   map[string]string
		reason model.Reason
		fails  bool
	}{
		"a configuration, and arguments for the first boot alone": {
			before: map[string]string{firstBoot: "", "loader/x": "y"}, seed: fcos,
			want: map[string]string{firstBoot: "set ignition_network_kcmdline=\"rd.neednet=1 ip=dhcp\"\n", "loader/x": "y", "ignition/config.ign": "{}"},
		},
		"what was there before is replaced": {
			before: map[string]string{"config.ign": "old, and longer"}, seed: &model.InstallSeed{Kind: model.SeedFlatcar, Files: map[string]string{"config.ign": "new"}},
			want: map[string]string{"config.ign": "new"},
		},
		"no system that reads a configuration at its first boot (N65)": {
			before: map[string]string{"x": ""}, seed: fcos, reason: model.ReasonSeedTargetMissing, want: map[string]string{"x": ""}, fails: true,
		},
		"a path that leads out of the filesystem": {
			seed: &model.InstallSeed{Kind: model.SeedFlatcar, Files: map[string]string{"../out": "x"}}, want: map[string]string{}, fails: true,
		},
		"arguments that GRUB would take for commands": {
			before: map[string]string{firstBoot: ""}, fails: true,
			seed: &model.InstallSeed{Kind: model.SeedFCOS, KernelArguments: "a\"\nreboot"}, want: map[string]string{firstBoot: ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for path, content := range test.before {
				must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, path)), 0o755))
				must.Do(t, os.WriteFile(filepath.Join(folder, path), []byte(content), 0o644))
			}
			root, err := os.OpenRoot(folder)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			err = writeFiles(root, test.seed)
			var f *Failure
			if (err != nil) != test.fails || test.reason != "" && (!errors.As(err, &f) || f.Reason != test.reason) {
				t.Errorf("error is %v, want %q", err, test.reason)
			}
			got := make(map[string]string)
			_ = filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
				if err == nil && info.Mode().IsRegular() {
					b, _ := os.ReadFile(path)
					name, _ := filepath.Rel(folder, path)
					got[name] = string(b)
				}
				return nil
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if info, err := os.Stat(filepath.Join(folder, "ignition/config.ign")); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("the configuration has mode %v", info.Mode())
			}
		})
	}
}

func TestALinkInAFilesystemLeadsNowhereElse(t *testing.T) {
	outside, folder := t.TempDir(), t.TempDir()
	must.Do(t, os.Symlink(outside, filepath.Join(folder, "ignition")))
	root := must.Get(os.OpenRoot(folder))(t)
	defer root.Close()
	if err := writeFile(root, "ignition/config.ign", "secret"); err == nil {
		t.Error("a file was written through a link")
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("outside there is %v", entries)
	}
}

func TestTheLoaderIsFound(t *testing.T) {
	csv := "\xff\xfe"
	for _, c := range "shimx64.efi,debian,,this is the boot entry\n" {
		csv += string([]byte{byte(c), 0})
	}
	file := func(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }
	tests := map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"that for removable media":         {fstest.MapFS{"EFI/BOOT/BOOTX64.EFI": file(""), "EFI/debian/BOOTX64.CSV": file(csv)}, `\EFI\BOOT\BOOTX64.EFI`},
		"in whatever case":                 {fstest.MapFS{"efi/boot/bootx64.efi": file("")}, `\efi\boot\bootx64.efi`},
		"that which a fallback file names": {fstest.MapFS{"EFI/debian/BOOTX64.CSV": file(csv), "EFI/BOOT/fbx64.efi": file("")}, `\EFI\debian\shimx64.efi`},
		"not one that leads elsewhere":     {fstest.MapFS{"EFI/x/BOOTX64.CSV": file("\xff\xfe.\x00.\x00/\x00x\x00,\x00")}, ""},
		"not one of another architecture":  {fstest.MapFS{"EFI/BOOT/BOOTAA64.EFI": file("")}, ""},
		"none":                             {fstest.MapFS{"kernel": file("")}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := findLoader(test.files, loaderOf("amd64"))
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("loader is %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func systemImage(t *testing.T, label string, files map[string]string) []byte {
	t.Helper()
	mke2fs := testtool.Path(t, "mke2fs")
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "ext4")
	for path, content := range files {
		must.Do(t, os.WriteFile(filepath.Join(folder, path), []byte(content), 0o644))
	}
	if out, err := exec.Command(mke2fs, "-q", "-t", "ext4", "-L", label, "-d", folder, file, "8M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	filesystem := must.Get(os.ReadFile(file))(t)
	var esp buffer
	v := fat.Volume{SectorSize: 512, Label: "ESP", Files: map[string]string{"EFI/BOOT/BOOTX64.EFI": "MZ"}}
	must.Do(t, v.WriteTo(&esp))
	image := make([]byte, 20*mebibyte)
	table := gpt.New(512, uint64(len(image)), diskGUID)
	table.Partitions = []gpt.Partition{
		{Number: 1, Type: gpt.TypeESP, GUID: "eeeeeeee-0000-4000-8000-000000000001", First: 2048, Last: 5*2048 - 1},
		{Number: 3, Type: gpt.TypeLinuxData, GUID: rootGUID, First: 6 * 2048, Last: 14*2048 - 1},
	}
	head, tail, err := table.Encode()
	if err != nil {
		t.Fatal(err)
	}
	copy(image, head)
	copy(image[mebibyte:], esp)
	copy(image[6*mebibyte:], filesystem)
	copy(image[len(image)-len(tail):], tail)
	return image
}

// mountKnown is mountPartition, but for FAT on a kernel that has it not: it mounts a folder with
// a loader in its place.
func mountKnown(disk string, p partition, kind string, readOnly bool, do func(*os.Root) error) error {
	err := mountPartition(disk, p, kind, readOnly, do)
	if kind != "vfat" || !errors.Is(err, unix.ENODEV) {
		return err
	}
	folder, err := os.MkdirTemp("", "esp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	err = errors.Join(os.MkdirAll(filepath.Join(folder, "EFI/BOOT"), 0o755), os.WriteFile(filepath.Join(folder, "EFI/BOOT/BOOTX64.EFI"), nil, 0o644))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// TestASeedGoesIntoAFilesystemOfTheImage mounts on a block device, and gives a firmware in a
// folder its entry.
func TestASeedGoesIntoAFilesystemOfTheImage(t *testing.T) {
	device := loopDevice(t, 40, "--partscan")
	d := serve(t, systemImage(t, "boot", map[string]string{firstBoot: ""}))
	d.doc.Seed = &model.InstallSeed{Kind: model.SeedFCOS, Label: "boot", Files: map[string]string{"ignition/config.ign": "{\"secret\": 1}"}, KernelArguments: "ip=dhcp"}
	d.doc.BootEntry = "Ingot web-1"
	firmware := efi.Variables{Folder: t.TempDir()}
	machine := onDevice(t, d, device)
	machine.Mount, machine.Firmware = mountKnown, func() (efi.Variables, error) { return firmware, nil }
	machine.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	must.Do(t, machine.Run(t.Context(), d.url(), "uuid"))
	last, _ := d.outcome()
	if strings.Contains(last.Message, "mount namespace") {
		testtool.Lacks(t, "no mount namespace can be made here")
	}
	if last.Reason != "" || last.Warning != "" || last.Stage != model.DiskRebooting {
		t.Fatalf("last report: %+v", last)
	}
	disk := must.Get(os.ReadFile(device))(t)
	boot := filepath.Join(t.TempDir(), "boot")
	must.Do(t, os.WriteFile(boot, disk[6*mebibyte:14*mebibyte], 0o600))
	tool(t, "e2fsck", "-f", "-n", boot)
	for path, want := range map[string]string{"ignition/config.ign": "{\"secret\": 1}", firstBoot: "set ignition_network_kcmdline=\"ip=dhcp\"\n"} {
		if got := tool(t, "debugfs", "-R", "cat /"+path, boot); !strings.HasSuffix(got, want) {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	state, err := firmware.State()
	if err != nil || state.Options[0].Label != "Ingot web-1" || !bytes.Contains(state.Options[0].Path, []byte("B\x00O\x00O\x00T\x00X\x006\x004\x00")) {
		t.Errorf("firmware has %+v, %v", state, err)
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), "ingot-install") {
		t.Error("something is still mounted")
	}
}

func TestASeedWithoutATargetIsRefused(t *testing.T) {
	tests := map[string]struct {
		label  string
		image  string // the label of its filesystem beside "ESP"
		mount  Mount
		reason model.Reason
	}{
		"no filesystem has the label (N65)":    {label: "OEM", image: "boot", reason: model.ReasonSeedTargetMissing},
		"two filesystems have the label (N65)": {label: "ESP", image: "ESP", reason: model.ReasonSeedTargetMissing},
		"the kernel has no such filesystem (N66)": {
			label: "boot", image: "boot", reason: model.ReasonSeedFilesystem,
			mount: func(string, partition, string, bool, func(*os.Root) error) error { return unix.ENODEV },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := serve(t, systemImage(t, test.image, nil))
			d.doc.Seed = &model.InstallSeed{Kind: model.SeedFlatcar, Label: test.label, Files: map[string]string{"config.ign": "{}"}}
			m := newMemoryDisk(40 * mebibyte)
			machine := machineOf(d, map[string]*memoryDisk{"sda": m})
			machine.Mount = test.mount
			must.Do(t, machine.Run(t.Context(), d.url(), "uuid"))
			if last, _ := d.outcome(); last.Reason != test.reason {
				t.Errorf("reported %q: %q, want %q", last.Reason, last.Message, test.reason)
			}
			if _, ok := gpt.ReadMBR(m.b); ok {
				t.Error("the disk has a partition table")
			}
		})
	}
}
