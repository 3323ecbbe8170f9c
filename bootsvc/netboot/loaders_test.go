package netboot

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
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
	must.Do(t, os.Chtimes(filepath.Join(first, "ipxe.efi"), time.Time{}, armed))
	if got := contents(t, l, "ipxe.efi"); got != "THIS IS ANOTHER." {
		t.Errorf("after a change it is %q", got)
	}
	if text, _ := io.ReadAll(held); string(text) != "this is ipxe.efi" {
		t.Errorf("one that was open changed into %q", text)
	}
	must.Do(t, os.Remove(filepath.Join(first, "ipxe.efi")))
	if got := contents(t, l, "ipxe.efi"); got != "the second folder's" {
		t.Errorf("once it is gone it is %q", got)
	}
	if diff := cmp.Diff([]string{"ipxe.efi", "undionly.kpxe"}, l.present()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestOnlyLoadersCanBeOpened(t *testing.T) {
	dir := folder(t, "ipxe.efi", "secret", "grubia32.efi")
	must.Do(t, os.Mkdir(filepath.Join(dir, "snponly.efi"), 0o700))
	write(t, dir, "undionly.kpxe", "")
	must.Do(t, os.Truncate(filepath.Join(dir, "undionly.kpxe"), maxLoader+1))
	write(t, dir, "ipxe.pxe", "")
	l := OpenLoaders([]string{dir})
	for _, name := range []string{
		"", "secret", "grubia32.efi", "../" + filepath.Base(dir) + "/ipxe.efi", "./ipxe.efi", "IPXE.EFI", "ipxe.efi\x00", "snponly.efi",
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
		"no boot loader ipxe.efi or snponly.efi or snp.efi for UEFI machines (amd64) in " + dir +
			", /boot-that-is-not-there; install the package ipxe; those machines cannot boot by PXE",
		"no boot loader snp-arm64.efi or snponly-arm64.efi or ipxe-arm64.efi for UEFI machines (arm64) in " + dir +
			", /boot-that-is-not-there; install the package ipxe of Debian 13, or fetch https://boot.ipxe.org/arm64-efi/snponly.efi " +
			"and save it as snponly-arm64.efi; those machines cannot boot by PXE",
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

func TestWhichOfSeveralLoadersAMachineIsTold(t *testing.T) {
	dir := folder(t, "undionly.kpxe", "ipxe.pxe", "ipxe.efi", "snponly.efi", "ipxe-arm64.efi", "shimx64.efi.signed", "grubnetx64.efi.signed")
	must.Do(t, os.Mkdir(filepath.Join(dir, "arm64-efi"), 0o700))
	write(t, dir, "arm64-efi/snponly.efi", "of boot.ipxe.org")
	const asking = "02:00:00:00:00:01"
	var log bytes.Buffer
	l := OpenLoaders([]string{dir})
	l.Choose(LoaderChoice{
		Default: map[string]LoaderKind{"amd64": LoaderSNPOnly, "386": LoaderIPXE},
		Of: func(server model.ServerName, mac string) LoaderKind {
			return map[string]LoaderKind{"native": LoaderIPXE, "firmware": LoaderSNPOnly, "all": LoaderSNP, "secure": LoaderShim, asking: LoaderIPXE}[string(server)+mac]
		},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for title, tc := range map[string]struct {
		arch   Arch
		server model.ServerName
		mac    string
		want   string
		reason Reason
	}{
		"the platform's default":                       {arch: ArchX64, want: "snponly.efi"},
		"the first that is there, without a default":   {arch: ArchARM64, want: "snponly-arm64.efi"},
		"a server with drivers of iPXE's":              {arch: ArchX64, server: "native", want: "ipxe.efi"},
		"the same of another architecture":             {arch: ArchARM64, server: "native", want: "ipxe-arm64.efi"},
		"the same with a BIOS":                         {arch: ArchBIOS, server: "native", want: "ipxe.pxe"},
		"a server with the firmware's driver":          {arch: ArchARM64, server: "firmware", want: "snponly-arm64.efi"},
		"the same with a BIOS, which has one":          {arch: ArchBIOS, server: "firmware", want: "undionly.kpxe"},
		"a BIOS has the drivers of all cards":          {arch: ArchBIOS, server: "all", want: "undionly.kpxe"},
		"what is asked for and missing is not another": {arch: ArchX64, server: "all", reason: ReasonNoLoader},
		"a network card of no known server":            {arch: ArchX64, mac: asking, want: "ipxe.efi"},
		"a server with Secure Boot":                    {arch: ArchX64, server: "secure", want: "shimx64.efi"},
		"the same by HTTP":                             {arch: ArchX64HTTP, server: "secure", want: "shimx64.efi"},
		"the same with a BIOS, which has none":         {arch: ArchBIOS, server: "secure", reason: ReasonNoLoader},
		"the same of another architecture, where none": {arch: ArchARM64, server: "secure", reason: ReasonNoLoader},
		"a default that is missing":                    {arch: ArchIA32, reason: ReasonNoLoader},
		"firmware that nothing is known for":           {arch: ArchUnknown, server: "native", reason: ReasonUnknownArch},
	} {
		name, reason := l.choose(Client{Arch: tc.arch, MAC: tc.mac}, tc.server)
		if name != tc.want || reason != tc.reason {
			t.Errorf("%s: got %q (%s), want %q (%s)", title, name, reason, tc.want, tc.reason)
		}
	}
	if got := contents(t, l, "snponly-arm64.efi"); got != "of boot.ipxe.org" {
		t.Errorf("a loader in the folder of its architecture is %q", got)
	}
	if got := contents(t, l, "grubx64.efi"); got != "this is grubnetx64.efi.signed" {
		t.Errorf("what the shim asks for beside itself is %q", got)
	}
	log.Reset()
	for range 3 {
		l.choose(Client{Arch: ArchRISCV64, MAC: asking}, "s9")
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "server=s9") || !strings.Contains(got, "no boot loader snp-riscv64.efi or ") {
		t.Errorf("logged: %s", got)
	}
	want := []string{"no boot loader ipxe-ia32.efi for UEFI machines (386) in " + dir + "; install the package ipxe or build one; those machines cannot boot by PXE"}
	if diff := cmp.Diff(want, l.Missing([]string{"amd64", "arm64", "386"})); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"amd64", "arm64"}, l.UEFI()); diff != "" {
		t.Errorf("UEFI (-want +got):\n%s", diff)
	}
}

func TestAShimIsForThoseAloneThatAskForIt(t *testing.T) {
	l := OpenLoaders([]string{folder(t, "shimx64.efi", "grubx64.efi", "mmx64.efi", "shimaa64.efi")})
	for _, arch := range []Arch{ArchX64, ArchARM64} {
		if name, reason := l.choose(Client{Arch: arch}, "s1"); reason != ReasonNoLoader {
			t.Errorf("%s is told %q", arch, name)
		}
	}
	l.Choose(LoaderChoice{Default: map[string]LoaderKind{"arm64": LoaderShim}})
	if name, _ := l.choose(Client{Arch: ArchARM64}, "s1"); name != "shimaa64.efi" {
		t.Errorf("by default arm64 is told %q", name)
	}
}

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
