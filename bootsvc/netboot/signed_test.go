package netboot

import (
	"bytes"
	"testing"

	"ingot/bootsvc/netboot/netboottest"
	"ingot/model"
)

func TestWhichLoadersAreKnownToBeUnsigned(t *testing.T) {
	signed, unsigned := string(netboottest.Program(true)), string(netboottest.Program(false))
	for title, test := range map[string]struct {
		files  map[string]string
		choice LoaderChoice
		arch   string
		want   string
	}{
		"one without a signature":                   {files: map[string]string{"ipxe.efi": unsigned}, want: "ipxe.efi"},
		"one for another architecture":              {files: map[string]string{"ipxe.efi": signed, "snp-arm64.efi": unsigned}, arch: "arm64", want: "snp-arm64.efi"},
		"not one with a signature":                  {files: map[string]string{"ipxe.efi": signed, "snponly.efi": unsigned}},
		"not one that is no UEFI program":           {files: map[string]string{"ipxe.efi": "#!ipxe"}},
		"not one for BIOS":                          {files: map[string]string{"undionly.kpxe": unsigned}},
		"not one that is not there":                 {},
		"not where the architecture is no platform": {files: map[string]string{"ipxe.efi": unsigned}, arch: "sparc"},
		"the one that all machines are told": {
			files:  map[string]string{"ipxe.efi": signed, "snponly.efi": unsigned},
			choice: LoaderChoice{Default: map[string]LoaderKind{"amd64": LoaderSNPOnly}}, want: "snponly.efi",
		},
		"not another than the server's own": {
			files: map[string]string{"ipxe.efi": unsigned, "snponly.efi": signed},
			choice: LoaderChoice{Of: func(s model.ServerName, _ string) LoaderKind {
				return map[model.ServerName]LoaderKind{"s1": LoaderSNPOnly}[s]
			}},
		},
		"not a shim": {
			files:  map[string]string{"ipxe.efi": unsigned, "shimx64.efi": unsigned},
			choice: LoaderChoice{Default: map[string]LoaderKind{"amd64": LoaderShim}},
		},
	} {
		dir := folder(t)
		for name, text := range test.files {
			write(t, dir, name, text)
		}
		l := OpenLoaders([]string{dir})
		l.Choose(test.choice)
		arch := test.arch
		if arch == "" {
			arch = "amd64"
		}
		if got := l.Unsigned(arch, "s1"); got != test.want {
			t.Errorf("%s: got %q, want %q", title, got, test.want)
		}
	}
	if got := (*Loaders)(nil).Unsigned("amd64", "s1"); got != "" {
		t.Errorf("without any folder it is %q", got)
	}
}

func FuzzSignature(f *testing.F) {
	f.Add(netboottest.Program(true))
	f.Add(netboottest.Program(false)[:0x90])
	f.Fuzz(func(_ *testing.T, file []byte) { KnownUnsigned(bytes.NewReader(file)) })
}
