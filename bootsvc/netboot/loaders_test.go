package netboot

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func contents(t *testing.T, l *Loaders, name string) string {
	t.Helper()
	f, size, err := l.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil || int64(len(text)) != size {
		t.Errorf("%s: %d bytes of %d, %v", name, len(text), size, err)
	}
	return string(text)
}

func TestLoadersFollowTheFolder(t *testing.T) {
	first, second := folder(t, "ipxe.efi"), folder(t, "ipxe.efi", "undionly.kpxe")
	write(t, second, "ipxe.efi", "the second folder's")
	l := OpenLoaders([]string{filepath.Join(first, "missing"), first, second})
	if got := contents(t, l, "ipxe.efi"); got != "this is ipxe.efi" {
		t.Errorf("the first folder wins, but it is %q", got)
	}
	held, _, err := l.Open("ipxe.efi")
	if err != nil {
		t.Fatal(err)
	}
	write(t, first, "ipxe.efi", "THIS IS ANOTHER.") // as long as before
	if err := os.Chtimes(filepath.Join(first, "ipxe.efi"), time.Time{}, armed); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, l, "ipxe.efi"); got != "THIS IS ANOTHER." {
		t.Errorf("after a change it is %q", got)
	}
	if text, _ := io.ReadAll(held); string(text) != "this is ipxe.efi" {
		t.Errorf("one that was open changed into %q", text)
	}
	if err := os.Remove(filepath.Join(first, "ipxe.efi")); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, l, "ipxe.efi"); got != "the second folder's" {
		t.Errorf("once it is gone it is %q", got)
	}
	if diff := cmp.Diff([]string{"ipxe.efi", "undionly.kpxe"}, l.present()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestOnlyLoadersCanBeOpened(t *testing.T) {
	dir := folder(t, "ipxe.efi", "secret", "grubx64.efi")
	if err := os.Mkdir(filepath.Join(dir, "snponly.efi"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "undionly.kpxe", "")
	if err := os.Truncate(filepath.Join(dir, "undionly.kpxe"), maxLoader+1); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "ipxe.pxe", "")
	l := OpenLoaders([]string{dir})
	for _, name := range []string{
		"", "secret", "grubx64.efi", "../" + filepath.Base(dir) + "/ipxe.efi", "./ipxe.efi", "IPXE.EFI", "ipxe.efi\x00", "snponly.efi",
		"undionly.kpxe", "ipxe.pxe", "/etc/passwd",
	} {
		if f, _, err := l.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q is opened: %v, %v", name, f, err)
		}
	}
	var none *Loaders
	if _, _, err := none.Open("ipxe.efi"); !errors.Is(err, fs.ErrNotExist) || none.present() != nil {
		t.Errorf("without folders: %v, %v", err, none.present())
	}
}

func TestMissingLoadersAreSaid(t *testing.T) {
	dir := folder(t, "ipxe.pxe")
	l := OpenLoaders([]string{dir, "/boot-that-is-not-there"})
	want := []string{
		"no boot loader ipxe.efi or snponly.efi for UEFI machines (amd64) in " + dir +
			", /boot-that-is-not-there; install the package ipxe or build one; those machines cannot boot by PXE",
		"no boot loader snp-arm64.efi or snponly-arm64.efi or ipxe-arm64.efi for UEFI machines (arm64) in " + dir +
			", /boot-that-is-not-there; install the package ipxe or build one; those machines cannot boot by PXE",
	}
	if diff := cmp.Diff(want, l.Missing([]string{"amd64", "arm64"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	write(t, dir, "snponly.efi", "x")
	if got := l.Missing([]string{"amd64"}); got != nil {
		t.Errorf("with both there, missing are %q", got)
	}
	if got := OpenLoaders(nil).Missing([]string{"riscv64"}); len(got) != 1 {
		t.Errorf("without folders, missing are %q", got)
	}
}

// present returns the boot loaders that are there now, sorted.
func (l *Loaders) present() []string {
	var names []string
	if l == nil {
		return nil
	}
	for name := range l.names {
		if _, _, err := l.find(name); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
