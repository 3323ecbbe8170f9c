package fat

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/filesystem"
	"ingot/model/must"
	"ingot/model/testtool"
)

type memory struct{ b []byte }

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	if at < 0 || at+int64(len(p)) > int64(len(m.b)) {
		return 0, fmt.Errorf("write of %d bytes at %d of %d", len(p), at, len(m.b))
	}
	return copy(m.b[at:], p), nil
}

func made(t *testing.T, v Volume) []byte {
	t.Helper()
	size := must.Get(v.Bytes())(t)
	m := &memory{bytes.Repeat([]byte{0xa5}, int(size))} // what was there before does not matter
	must.Do(t, v.WriteTo(m))
	return m.b
}

func TestVolumesAreAsOthersReadThem(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<20/16)
	tests := map[string]struct {
		volume Volume
		size   int
		kind   string
	}{
		"a seed of NoCloud": {
			Volume{SectorSize: 512, Label: "cidata", Serial: 0x1234abcd, Files: map[string]string{
				"user-data": "#cloud-config\n", "meta-data": "instance-id: i-1\n", "vendor-data": "", "network-config": strings.Repeat("x", 4097),
			}}, 4 << 20, "FAT12",
		},
		"a config drive": {
			Volume{SectorSize: 512, Label: "config-2", Files: map[string]string{
				"openstack/latest/meta_data.json": "{}", "openstack/latest/user_data": "#!/bin/sh\n", "openstack/latest/vendor_data.json": "{}",
				"openstack/content/0000": "a", "a file whose name goes over several entries of its folder.text": "b",
			}}, 4 << 20, "FAT12",
		},
		"on a disk of sectors of 4096 bytes": {
			Volume{SectorSize: 4096, Label: "cidata", Before: 1 << 40, Files: map[string]string{"user-data": large, "meta-data": "m", "sub/folder/file": "f"}}, 4 << 20, "FAT12",
		},
		"as large as FAT12 goes": {
			Volume{SectorSize: 512, Label: "cidata", Files: map[string]string{"user-data": strings.Repeat(large, 14)}}, 15 << 20, "FAT12",
		},
		"away from where FAT16 begins": {
			Volume{SectorSize: 512, Label: "cidata", Files: map[string]string{"user-data": strings.Repeat(large, 15) + large[:1<<19]}}, 17 << 20, "FAT16",
		},
		"of FAT16": {
			Volume{SectorSize: 512, Label: "cidata", Files: map[string]string{"user-data": strings.Repeat(large, 50)}}, 51 << 20, "FAT16",
		},
		"of FAT16 on sectors of 4096 bytes": {
			Volume{SectorSize: 4096, Label: "cidata", Files: map[string]string{"user-data": strings.Repeat(large, 62)}}, 63 << 20, "FAT16",
		},
		"with many files in a folder": {Volume{SectorSize: 512, Label: "cidata", Files: many(20)}, 4 << 20, "FAT12"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			image := made(t, test.volume)
			if len(image) != test.size || !bytes.Contains(image[54:62], []byte(test.kind)) {
				t.Errorf("volume of %d bytes, %q: want %d, %s", len(image), image[54:62], test.size, test.kind)
			}
			id, _ := filesystem.Identify(bytes.NewReader(image), int64(len(image)))
			if id.Label != test.volume.Label {
				t.Errorf("label is %q, want %q", id.Label, test.volume.Label)
			}
			file := filepath.Join(t.TempDir(), "image")
			must.Do(t, os.WriteFile(file, image, 0o600))
			if out := tool(t, "fsck.vfat", "-n", "-v", file); !strings.Contains(out, fmt.Sprintf("%d files", entriesOf(test.volume))) {
				t.Errorf("fsck.vfat:\n%s", out)
			}
			for path, want := range test.volume.Files {
				got := tool(t, "mtype", "-i", file, "::/"+path)
				if diff := cmp.Diff(len(want), len(got)); diff != "" || got != want {
					t.Errorf("%s has %d bytes, want %d, or they differ", path, len(got), len(want))
				}
			}
		})
	}
}

func many(n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files[fmt.Sprintf("folder/file-%d.text", i)] = fmt.Sprint(i)
	}
	return files
}

// entriesOf is how many files fsck.vfat counts: folders, and the label, count.
func entriesOf(v Volume) int {
	all := map[string]bool{"label": true}
	for path := range v.Files {
		for ; path != "."; path = filepath.Dir(path) {
			all["/"+path] = true
		}
	}
	return len(all)
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testtool.Path(t, name), args...)
	cmd.Env = append(os.Environ(), "MTOOLS_SKIP_CHECK=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestVolumesThatCannotBe(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"more than a volume holds":    {map[string]string{"user-data": strings.Repeat("x", 64<<20)}, "the files do not fit"},
		"a path that leads out":       {map[string]string{"../user-data": ""}, "is no path of a file"},
		"a path from the root":        {map[string]string{"/user-data": ""}, "is no path of a file"},
		"a path that ends in a slash": {map[string]string{"user-data/": ""}, "is no path of a file"},
		"a name that FAT has not":     {map[string]string{"a:b": ""}, "cannot be the name of a file"},
		"a file that is a folder too": {map[string]string{"a": "", "a/b": ""}, "a"},
		"a name of control letters":   {map[string]string{"a\nb": ""}, "it has control characters"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if size, err := (Volume{SectorSize: 512, Files: test.files}).Bytes(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("volume has %d bytes, error %v, want %q", size, err, test.want)
			}
		})
	}
}

func TestTheSameFilesMakeTheSameVolume(t *testing.T) {
	v := Volume{SectorSize: 512, Label: "cidata", Files: many(50)}
	if !bytes.Equal(made(t, v), made(t, v)) {
		t.Error("two volumes of the same files differ")
	}
}
