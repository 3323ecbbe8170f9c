package netboot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

const (
	uuidText    = "4c4c4544-0011-2233-8044-b5c04f333232"
	uuidSwapped = "44454c4c-1100-3322-8044-b5c04f333232"
)

var uuidBytes = []byte("\x4c\x4c\x45\x44\x00\x11\x22\x33\x80\x44\xb5\xc0\x4f\x33\x32\x32")

func option97(b []byte) []byte { return append([]byte{0}, b...) }

func TestClassify(t *testing.T) {
	const (
		bios = "PXEClient:Arch:00000:UNDI:002001"
		uefi = "PXEClient:Arch:00007:UNDI:003016"
		http = "HTTPClient:Arch:00016:UNDI:003001"
	)
	both := []string{uuidText, uuidSwapped}
	nic := []byte{1, 3, 16}
	class := func(values ...string) (out [][]byte) {
		for _, v := range values {
			out = append(out, []byte(v))
		}
		return out
	}
	for title, tc := range map[string]struct {
		raw  Raw
		want Client
	}{
		"a phone asks for an address":                     {Raw{VendorClasses: []string{"android-dhcp-14"}}, Client{Arch: ArchUnknown}},
		"BIOS asks to boot":                               {Raw{VendorClasses: []string{bios}, Archs: []Arch{0}, NIC: []byte{1, 2, 1}, UUID: option97(uuidBytes)}, Client{Kind: KindPXE, UUIDs: both}},
		"UEFI asks to boot":                               {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, NIC: nic, UUID: option97(uuidBytes)}, Client{Kind: KindPXE, Arch: ArchX64, UUIDs: both}},
		"UEFI asks to boot by HTTP":                       {Raw{VendorClasses: []string{http}, Archs: []Arch{16}, NIC: nic}, Client{Kind: KindHTTP, Arch: ArchX64HTTP}},
		"iPXE sends a bare user class":                    {Raw{VendorClasses: []string{bios}, Archs: []Arch{0}, UserClasses: class("iPXE")}, Client{Kind: KindIPXE}},
		"H10: iPXE's class stands in a list":              {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, UserClasses: class("\x04iPXE")}, Client{Kind: KindIPXE, Arch: ArchX64}},
		"H10: iPXE's class stands behind another":         {Raw{UserClasses: class("\x03abc\x04iPXE"), Archs: []Arch{7}}, Client{Kind: KindIPXE, Arch: ArchX64}},
		"H10: iPXE's class is a value of several":         {Raw{V6: true, UserClasses: class("abc", "iPXE"), Archs: []Arch{7}}, Client{V6: true, Kind: KindIPXE, Arch: ArchX64}},
		"H10: Tinkerbell's iPXE is iPXE":                  {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, UserClasses: class("Tinkerbell")}, Client{Kind: KindIPXE, Arch: ArchX64}},
		"T05: iPXE by HTTP boot is iPXE":                  {Raw{VendorClasses: []string{http}, Archs: []Arch{16}, UserClasses: class("iPXE")}, Client{Kind: KindIPXE, Arch: ArchX64HTTP}},
		"another user class is firmware's":                {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, UserClasses: class("iPXE2", "\x09iPXE", "\x00iPXE")}, Client{Kind: KindPXE, Arch: ArchX64}},
		"metalprobe looks for its Ignition":               {Raw{UserClasses: class("\x0bingot-probe"), UUID: option97(uuidBytes)}, Client{Kind: KindProbe, Arch: ArchUnknown, UUIDs: both}},
		"metalprobe looks over IPv6":                      {Raw{V6: true, MAC: "52:54:00:00:00:01", UserClasses: class("ingot-probe")}, Client{V6: true, MAC: "52:54:00:00:00:01", Kind: KindProbe, Arch: ArchUnknown}},
		"H07: without option 93 the text says it":         {Raw{VendorClasses: []string{"PXEClient:Arch:00011:UNDI:003016"}}, Client{Kind: KindPXE, Arch: ArchARM64}},
		"H07: of two the first that is known counts":      {Raw{VendorClasses: []string{uefi}, Archs: []Arch{9999, 11}}, Client{Kind: KindPXE, Arch: ArchARM64}},
		"H07: none of two is known, but the text":         {Raw{VendorClasses: []string{uefi}, Archs: []Arch{9999, 12}}, Client{Kind: KindPXE, Arch: ArchX64}},
		"H07: option 93 wins over the text":               {Raw{VendorClasses: []string{uefi}, Archs: []Arch{0}}, Client{Kind: KindPXE}},
		"H08: an architecture that nobody knows":          {Raw{VendorClasses: []string{"PXEClient:Arch:00012:UNDI:003016"}, Archs: []Arch{12}}, Client{Kind: KindPXE, Arch: 12}},
		"H09: option 60 is cut off":                       {Raw{VendorClasses: []string{"PXEClient:Arch:000"}, Archs: []Arch{0}}, Client{}},
		"H09: option 60 is only the beginning":            {Raw{VendorClasses: []string{"PXEClient"}, Archs: []Arch{7}}, Client{Arch: ArchX64}},
		"H09: option 60 is a lookalike":                   {Raw{VendorClasses: []string{"PXEClientele of the house"}, Archs: []Arch{7}}, Client{Arch: ArchX64}},
		"H09: the text's architecture is no number":       {Raw{VendorClasses: []string{"PXEClient:Arch:0000x:UNDI:003016"}}, Client{Kind: KindPXE, Arch: ArchUnknown}},
		"H09: option 94 is too short":                     {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, NIC: []byte{1, 3}}, Client{Arch: ArchX64}},
		"H09: option 94 is empty":                         {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, NIC: []byte{}}, Client{Arch: ArchX64}},
		"H09: option 97 is too short":                     {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, UUID: uuidBytes}, Client{Arch: ArchX64}},
		"H09: option 97 is too long":                      {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, UUID: make([]byte, 18)}, Client{Arch: ArchX64}},
		"H09: option 97 is of another type":               {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, UUID: append([]byte{1}, uuidBytes...)}, Client{Arch: ArchX64}},
		"firmware without a UUID has none":                {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, UUID: make([]byte, 17)}, Client{Kind: KindPXE, Arch: ArchX64}},
		"firmware without a UUID sets all bits":           {Raw{VendorClasses: []string{uefi}, Archs: []Arch{7}, UUID: append([]byte{0}, strings.Repeat("\xff", 16)...)}, Client{Kind: KindPXE, Arch: ArchX64}},
		"a DUID-UUID is the UUID":                         {Raw{V6: true, VendorClasses: []string{uefi}, Archs: []Arch{7}, DUID: append([]byte{0, 4}, uuidBytes...)}, Client{V6: true, Kind: KindPXE, Arch: ArchX64, UUIDs: both}},
		"a DUID of another type says nothing":             {Raw{V6: true, VendorClasses: []string{uefi}, Archs: []Arch{7}, DUID: append([]byte{0, 1}, uuidBytes...)}, Client{V6: true, Kind: KindPXE, Arch: ArchX64}},
		"a DUID-UUID that is cut off says nothing":        {Raw{V6: true, VendorClasses: []string{uefi}, Archs: []Arch{7}, DUID: []byte{0, 4, 1}}, Client{V6: true, Kind: KindPXE, Arch: ArchX64}},
		"two DUIDs of one machine are one pair of UUIDs":  {Raw{V6: true, UserClasses: class("iPXE"), Archs: []Arch{7}, UUID: option97(uuidBytes), DUID: append([]byte{0, 4}, uuidBytes...)}, Client{V6: true, Kind: KindIPXE, Arch: ArchX64, UUIDs: both}},
		"of several vendor classes firmware's own counts": {Raw{V6: true, VendorClasses: []string{"", "x", http}, Archs: []Arch{16}}, Client{V6: true, Kind: KindHTTP, Arch: ArchX64HTTP}},
	} {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Classify(tc.raw)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestArchitectures(t *testing.T) {
	for a := range Arch(50) {
		if _, ok := archs[a]; ok != (a <= 41) {
			t.Errorf("architecture %d: named %v", a, ok)
		}
	}
	for a, want := range map[Arch]string{0: "x86 BIOS", 16: "x64 UEFI boot from HTTP", 41: "ARM rpiboot", 42: "architecture 42", ArchUnknown: "unknown"} {
		if got := a.String(); got != want {
			t.Errorf("%d is %q, want %q", a, got, want)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add("PXEClient:Arch:00007:UNDI:003016", []byte("\x04iPXE"), []byte{0, 7}, []byte{1, 3, 16}, option97(uuidBytes), append([]byte{0, 4}, uuidBytes...))
	f.Add("HTTPClient:Arch:99999", []byte("\xff"), []byte{}, []byte{}, []byte{}, []byte{0})
	f.Fuzz(func(t *testing.T, vendor string, user, arch, nic, uuid, duid []byte) {
		raw := Raw{VendorClasses: []string{vendor}, UserClasses: [][]byte{user}, NIC: nic, UUID: uuid, DUID: duid}
		for i := 0; i+1 < len(arch); i += 2 {
			raw.Archs = append(raw.Archs, Arch(arch[i])<<8|Arch(arch[i+1]))
		}
		c := Classify(raw)
		for _, id := range c.UUIDs {
			if canonical, err := model.CanonicalUUID(id); err != nil || canonical != id {
				t.Fatalf("UUID %q", id)
			}
		}
		holder := model.TicketHolder{Ticket: ticket(nil)}
		a, ok := site.BootFile(c, holder, nil)
		if ok != (a.Reason == "") || ok && (a.File == "" || a.Loader) {
			t.Fatalf("%+v is told %+v, %v", c, a, ok)
		}
	})
}
