package netboot

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

var (
	site  = Site{HTTP: "http://192.0.2.1:8082", TFTP: netip.MustParseAddr("192.0.2.1")}
	site6 = Site{HTTP: "http://[2001:db8::1]:8082", TFTP: netip.MustParseAddr("2001:db8::1")}
	armed = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

func ticket(change func(*model.Ticket)) *model.Ticket {
	t := &model.Ticket{
		ID: "s1-1", Server: "s1", UUID: uuidText, Purpose: model.PurposeDiscovery, ArmedAt: armed,
		Image: model.PinnedImage{
			Repository: "registry.example/os/probe", Digest: "sha256:" + strings.Repeat("a", 64), Architecture: "amd64",
		},
	}
	if change != nil {
		change(t)
	}
	return t
}

func withUKI(t *model.Ticket) {
	t.Image.UKI = &model.Layer{Digest: "sha256:" + strings.Repeat("b", 64), Size: 1}
}

func folder(t testing.TB, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		write(t, dir, name, "this is "+name)
	}
	return dir
}

func write(t testing.TB, dir, name, contents string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(contents), 0o600))
}

func TestBootFile(t *testing.T) {
	all := OpenLoaders([]string{
		folder(
			t, "undionly.kpxe", "ipxe.efi", "snponly.efi", "ipxe-ia32.efi", "snp-arm32.efi", "snp-arm64.efi", "ipxe-arm64.efi",
			"snp-riscv64.efi", "ipxe-loong64.efi",
		),
	})
	few := OpenLoaders([]string{folder(t, "snponly.efi", "snponly-arm64.efi")})
	uki := "http://192.0.2.1:8082/httpboot/registry.example/os/probe/sha256-" + strings.Repeat("b", 64) + ".efi?uuid=" + uuidText
	pxe := func(a Arch) Client { return Client{Kind: KindPXE, Arch: a} }
	http := func(a Arch) Client { return Client{Kind: KindHTTP, Arch: a} }
	told := func(name string) Answer { return Answer{File: name, Loader: true, VendorClass: "PXEClient"} }
	loaded := func(name string) Answer {
		return Answer{File: "http://192.0.2.1:8082/loader/" + name, HTTP: true, Loader: true, VendorClass: "HTTPClient"}
	}
	const withoutName = len("registry.example/os/probe")
	long := func(n int) string {
		return "r.example/" + strings.Repeat("x", n-(len(uki)-withoutName)-len("r.example/"))
	} // for a URL of n bytes
	none := func(r Reason) Answer { return Answer{Reason: r} }
	for title, tc := range map[string]struct {
		client  Client
		site    Site
		loaders *Loaders
		ticket  func(*model.Ticket)
		far     *model.Progress
		want    Answer
	}{
		"H08: BIOS":                         {client: pxe(0), want: told("undionly.kpxe")},
		"H08: IA32 UEFI":                    {client: pxe(6), want: told("ipxe-ia32.efi")},
		"H08: x64 UEFI":                     {client: pxe(7), want: told("ipxe.efi")},
		"H08: x64 UEFI by the other number": {client: pxe(9), want: told("ipxe.efi")},
		"H08: ARM 32":                       {client: pxe(10), want: told("snp-arm32.efi")},
		"H08: ARM 64":                       {client: pxe(11), want: told("snp-arm64.efi")},
		"H08: RISC-V 64":                    {client: pxe(27), want: told("snp-riscv64.efi")},
		"H08: RISC-V 32 has none here":      {client: pxe(25), want: none(ReasonNoLoader)},
		"H08: LoongArch 64":                 {client: pxe(39), want: told("ipxe-loong64.efi")},
		"H08: a Raspberry Pi":               {client: pxe(41), want: told("snp-arm64.efi")},
		"H08: IA32 UEFI by HTTP":            {client: http(15), want: loaded("ipxe-ia32.efi")},
		"H08: x64 UEFI by HTTP":             {client: http(16), want: loaded("ipxe.efi")},
		"H08: ARM 32 by HTTP":               {client: http(18), want: loaded("snp-arm32.efi")},
		"H08: ARM 64 by HTTP":               {client: http(19), want: loaded("snp-arm64.efi")},
		"H08: BIOS by HTTP":                 {client: http(20), want: loaded("undionly.kpxe")},
		"H08: RISC-V 64 by HTTP":            {client: http(28), want: loaded("snp-riscv64.efi")},
		"H08: an architecture that Ingot has nothing for": {client: pxe(12), want: none(ReasonUnknownArch)},
		"H08: U-Boot that is no UEFI":                     {client: pxe(22), want: none(ReasonUnknownArch)},
		"H08: an architecture that nobody knows":          {client: http(4711), want: none(ReasonUnknownArch)},
		"an architecture that is not said":                {client: pxe(ArchUnknown), want: none(ReasonUnknownArch)},
		"the other loader is there":                       {client: pxe(7), loaders: few, want: told("snponly.efi")},
		"the other loader for ARM is there":               {client: pxe(11), loaders: few, want: told("snponly-arm64.efi")},
		"no loader is there":                              {client: pxe(0), loaders: few, want: none(ReasonNoLoader)},
		"TFTP is off":                                     {client: pxe(0), site: Site{HTTP: site.HTTP}, want: none(ReasonNoTFTP)},
		"PXE over IPv6 shows no vendor class": {
			client: Client{Kind: KindPXE, Arch: 7, V6: true}, site: site6, want: Answer{File: "ipxe.efi", Loader: true},
		},
		"HTTP over IPv6 shows one": {
			client: Client{Kind: KindHTTP, Arch: 16, V6: true}, site: site6,
			want: Answer{File: "http://[2001:db8::1]:8082/loader/ipxe.efi", HTTP: true, Loader: true, VendorClass: "HTTPClient"},
		},
		"T05: iPXE is told its script, never a loader": {
			client: Client{Kind: KindIPXE, Arch: 7},
			want:   Answer{File: "http://192.0.2.1:8082/ipxe/" + uuidText, HTTP: true, VendorClass: "PXEClient"},
		},
		"iPXE needs no loader and no TFTP": {
			client: Client{Kind: KindIPXE, Arch: 4711, V6: true}, site: Site{HTTP: "https://boot.example"}, loaders: OpenLoaders(nil),
			want: Answer{File: "https://boot.example/ipxe/" + uuidText, HTTP: true},
		},
		"HTTP boots a UKI": {
			client: http(16), ticket: withUKI, want: Answer{File: uki, HTTP: true, VendorClass: "HTTPClient"},
		},
		"a UKI needs no loader": {
			client: http(16), ticket: withUKI, loaders: OpenLoaders(nil), want: Answer{File: uki, HTTP: true, VendorClass: "HTTPClient"},
		},
		"a UKI for another architecture is left alone": {client: http(19), ticket: withUKI, want: loaded("snp-arm64.efi")},
		"32-bit UEFI cannot start a UKI":               {client: http(15), ticket: withUKI, want: loaded("ipxe-ia32.efi")},
		"BIOS cannot start a UKI":                      {client: http(20), ticket: withUKI, want: loaded("undionly.kpxe")},
		"PXE goes to a UKI by way of iPXE":             {client: pxe(7), ticket: withUKI, want: told("ipxe.efi")},
		"H12: a URL that is too long": {
			client: http(16), ticket: func(t *model.Ticket) { withUKI(t); t.Image.Repository = long(256) }, want: none(ReasonTooLong),
		},
		"H12: a URL that just fits": {client: http(16), ticket: func(t *model.Ticket) {
			withUKI(t)
			t.Image.Repository = "r.example/" + strings.Repeat("x", 255-len(uki)+len("registry.example/os/probe")-len("r.example/"))
		}, want: Answer{File: strings.Replace(uki, "registry.example/os/probe", long(255), 1), HTTP: true, VendorClass: "HTTPClient"}},
		"who does not ask":                          {client: Client{Arch: 7}, want: none(ReasonNotAsked)},
		"law 1: a ticket whose Ignition was served": {client: pxe(7), far: &model.Progress{IgnitionAt: armed}, want: none(ReasonNoTicket)},
		"law 1: iPXE with such a ticket": {
			client: Client{Kind: KindIPXE}, far: &model.Progress{IgnitionAt: armed}, want: none(ReasonNoTicket),
		},
		"law 1: a ticket that is spent": {
			client: pxe(7), ticket: func(t *model.Ticket) { t.Ended = model.TicketSpent }, want: none(ReasonNoTicket),
		},
		"a ticket for always": {
			client: pxe(7), ticket: func(t *model.Ticket) { t.Ended, t.Always = model.TicketBooted, true }, want: told("ipxe.efi"),
		},
		"metalprobe is told where its Ignition is": {
			client: Client{Kind: KindProbe, Arch: ArchUnknown},
			want:   Answer{File: "http://192.0.2.1:8082/ignition/" + uuidText, HTTP: true},
		},
		"T14: metalprobe is told so again": {
			client: Client{Kind: KindProbe}, far: &model.Progress{IgnitionAt: armed},
			want: Answer{File: "http://192.0.2.1:8082/ignition/" + uuidText, HTTP: true},
		},
		"metalprobe with a ticket that is spent": {
			client: Client{Kind: KindProbe}, ticket: func(t *model.Ticket) { t.Ended = model.TicketSpent }, want: none(ReasonNoTicket),
		},
	} {
		t.Run(title, func(t *testing.T) {
			o := model.TicketHolder{Ticket: ticket(tc.ticket), Progress: tc.far}
			if tc.far != nil {
				tc.far.Ticket = o.Ticket.ID
			}
			at, loaders := tc.site, tc.loaders
			if at.HTTP == "" {
				at = site
			}
			if loaders == nil {
				loaders = all
			}
			got, ok := at.BootFile(tc.client, o, loaders)
			if ok != (tc.want.Reason == "") {
				t.Errorf("there is a boot file: %v", ok)
			}
			if ok && got.Ticket != o.Ticket {
				t.Error("the answer lacks its ticket")
			}
			got.Ticket = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, kind := range []Kind{KindPXE, KindHTTP, KindIPXE, KindProbe} {
		if a, ok := site.BootFile(Client{Kind: kind, Arch: ArchX64}, model.TicketHolder{}, all); ok || a.Reason != ReasonNoTicket {
			t.Errorf("without a ticket %s is told %+v", kind, a)
		}
	}
}

func TestURLs(t *testing.T) {
	for want, tc := range map[string]struct {
		answer Answer
		site   Site
	}{
		"tftp://192.0.2.1/ipxe.efi":       {Answer{File: "ipxe.efi"}, site},
		"tftp://[2001:db8::1]/ipxe.efi":   {Answer{File: "ipxe.efi"}, site6},
		"tftp://[fe80::1]/ipxe.efi":       {Answer{File: "ipxe.efi"}, Site{TFTP: netip.MustParseAddr("fe80::1%eth0")}},
		"http://192.0.2.1:8082/ipxe/uuid": {Answer{File: "http://192.0.2.1:8082/ipxe/uuid", HTTP: true}, site6},
	} {
		if got := tc.answer.URL(tc.site); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What is said of a boot file names no URL, for one holds what only its machine is to know.
func TestWhatIsSaidOfABootFile(t *testing.T) {
	for want, a := range map[string]Answer{
		"":                        {Reason: ReasonNotAsked},
		"no boot file: no ticket": {Kind: KindPXE, Reason: ReasonNoTicket},
		"boots undionly.kpxe":     {Kind: KindPXE, Loader: true, File: "undionly.kpxe"},
		"boots ipxe.efi":          {Kind: KindHTTP, Loader: true, HTTP: true, File: "http://192.0.2.1:8082/loader/ipxe.efi"},
		"boots its script":        {Kind: KindIPXE, HTTP: true, File: "http://192.0.2.1:8082/ipxe/" + uuidText},
		"boots a UKI":             {Kind: KindHTTP, HTTP: true, File: "http://192.0.2.1:8082/httpboot/x"},
		"fetches Ignition":        {Kind: KindProbe, HTTP: true, File: "http://192.0.2.1:8082/ignition/" + uuidText},
	} {
		if got := a.Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
