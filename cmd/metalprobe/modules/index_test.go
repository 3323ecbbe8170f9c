package modules

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model/must"
)

var sample = Index{
	Modules: map[string][]string{
		"virtio": {}, "virtio_net": {"virtio", "net_failover"}, "net_failover": {},
		"ahci": {"libata"}, "libata": {}, "evdev": {}, "sd_mod": {},
	},
	Aliases: []Alias{
		{"virtio:d00000001v*", "virtio_net"},
		{"pci:v*d*sv*sd*bc01sc06i01*", "ahci"},
		{"pci:v00008086d00002922sv*sd*bc*sc*i*", "ahci"},
		{"input:b*v*p*e*-e*k*r*a*m*l*s*f*w*", "evdev"},
		{"scsi:t-0x0[0-7]*", "sd_mod"},
		{"broken[", "ahci"},
		{"char-major-1/*", "evdev"},
	},
}

func TestFor(t *testing.T) {
	for title, tc := range map[string]struct {
		wanted string
		want   []string
	}{
		"a device":                               {"virtio:d00000001v00001AF4", []string{"virtio_net"}},
		"a device by its class and by its maker": {"pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01", []string{"ahci"}},
		"a pattern with a dash and commas":       {"input:b0019v0000p0001e0000-e0,1,k74,ramlsfw", []string{"evdev"}},
		"a range of characters":                  {"scsi:t-0x00", []string{"sd_mod"}},
		"a wildcard takes slashes, too":          {"char-major-1/2/3", []string{"evdev"}},
		"a module by its name":                   {"virtio-net", []string{"virtio_net"}},
		"another device":                         {"pci:v00008086d00001533sv0sd0bc02sc00i00", nil},
		"a device whose alias only begins so":    {"virtio:d00000001", nil},
		"nothing":                                {"", nil},
		"a pattern that is broken":               {"broken[", nil},
	} {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sample.For(tc.wanted)); diff != "" {
				t.Errorf("modules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	text := sample.Encode()
	got := must.Get(Parse(bytes.NewReader(text)))(t)
	order := cmpopts.SortSlices(func(a, b Alias) bool { return a.Module+a.Pattern < b.Module+b.Pattern })
	if diff := cmp.Diff(sample, got, order); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
	if !bytes.Equal(text, got.Encode()) {
		t.Error("the same index is written in two ways")
	}
}

func TestAnIndexThatIsNone(t *testing.T) {
	_, err := Parse(strings.NewReader("module a\nalias a\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v, want an error that names line 2", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample.Encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := Parse(bytes.NewReader(text))
		if err != nil {
			return
		}
		x.For("pci:v00008086d00002922sv0sd0bc01sc06i01")
		again, err := Parse(bytes.NewReader(x.Encode()))
		if err != nil || len(again.Modules) != len(x.Modules) {
			t.Errorf("what was written cannot be read: %v", err)
		}
	})
}
