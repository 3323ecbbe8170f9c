package syntax

import (
	"strings"
	"testing"
)

func TestMachineID(t *testing.T) {
	for given, want := range map[string]string{
		"38373000-3534-584D-5130-333030434A59":   "38373000-3534-584d-5130-333030434a59",
		"02-00-00-AB-00-01":                      "02:00:00:ab:00:01",
		"02:00:00:ab:00:01":                      "02:00:00:ab:00:01",
		"020000ab0001":                           "", // iPXE has no such form
		"{38373000-3534-584d-5130-333030434a59}": "",
		"38373000-3534-584d-5130-333030434a5":    "",
		"02:00:00:ab:00:0x":                      "",
		"":                                       "",
	} {
		if got, ok := MachineID(given); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t", given, got, ok)
		}
	}
}

func TestUUIDs(t *testing.T) {
	const uuid = "38373000-3534-584d-5130-333030434a59"
	for _, s := range []string{"", strings.ToUpper(uuid), "{" + uuid + "}", strings.ReplaceAll(uuid, "-", "")} {
		if UUID(s) {
			t.Errorf("%q is taken for canonical", s)
		}
	}
	if !UUID(uuid) {
		t.Error("a canonical UUID is not")
	}
}

func TestPrintable(t *testing.T) {
	if got := Printable("a\n\x7fü" + strings.Repeat("b", 300)); got != "a???"+strings.Repeat("b", 196)+"…" {
		t.Errorf("got %q", got)
	}
}

func TestDiskFile(t *testing.T) {
	for name, want := range map[string]string{
		"debian-13-generic-amd64.qcow2":          "qcow2",
		"out/Disk.RAW.zst":                       "raw+zstd",
		"ubuntu-24.04-server-cloudimg-amd64.img": "raw",
		"flatcar_production_image.bin.bz2":       "raw+bzip2",
		"metal.raw.xz":                           "raw+xz",
		"disk.img.gz":                            "raw+gzip",
		"disk.raw.tar":                           "",
		"raw":                                    "",
		"":                                       "",
	} {
		if got := DiskFile(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
