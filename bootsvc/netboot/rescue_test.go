package netboot

import (
	"net/netip"
	"testing"
)

func TestStrangersAreLedToTheRescueScript(t *testing.T) {
	known := true
	r := &Rescue{Known: func() bool { return known }, Named: func(id string) bool { return id == "02:00:00:00:00:09" }}
	if !r.Stranger("00000000-0000-4000-8000-000000000077", "02:00:00:00:00:07") {
		t.Error("a stranger is not led to the script")
	}
	if r.Stranger("00000000-0000-4000-8000-000000000077", "02:00:00:00:00:09") {
		t.Error("a machine that Git names is taken for a stranger")
	}
	if (*Rescue)(nil).Stranger("02:00:00:00:00:07") {
		t.Error("a stranger is led to a script that there is not")
	}
	if known = false; r.Stranger("02:00:00:00:00:07") {
		t.Error("a machine is led to the script before all servers are known")
	}
}

func TestTheWayToTheRescueScript(t *testing.T) {
	l := OpenLoaders([]string{folder(t, "undionly.kpxe", "ipxe.efi")})
	site := Site{HTTP: "http://10.0.0.1:8082", TFTP: netip.MustParseAddr("10.0.0.1")}
	for title, tc := range map[string]struct {
		c    Client
		want Answer
	}{
		"a BIOS":         {Client{Kind: KindPXE, Arch: ArchBIOS}, Answer{File: "undionly.kpxe", Loader: true, VendorClass: "PXEClient"}},
		"UEFI":           {Client{Kind: KindPXE, Arch: ArchX64}, Answer{File: "ipxe.efi", Loader: true, VendorClass: "PXEClient"}},
		"UEFI HTTP boot": {Client{Kind: KindHTTP, Arch: ArchX64HTTP}, Answer{File: "http://10.0.0.1:8082/loader/ipxe.efi", HTTP: true, Loader: true, VendorClass: "HTTPClient"}},
		"iPXE":           {Client{Kind: KindIPXE, Arch: ArchX64}, Answer{File: "http://10.0.0.1:8082/ipxe/", HTTP: true, VendorClass: "PXEClient"}},
		"no loader":      {Client{Kind: KindPXE, Arch: ArchARM64}, Answer{Reason: ReasonNoLoader}},
		"metalprobe":     {Client{Kind: KindProbe}, Answer{Reason: ReasonNoTicket}},
		"an ordinary client, as each workstation has": {Client{Kind: KindNone}, Answer{Reason: ReasonNoTicket}},
	} {
		got, ok := site.RescueFile(tc.c, l)
		if got != tc.want || ok != (tc.want.Reason == "") {
			t.Errorf("%s: got %+v, %v, want %+v", title, got, ok, tc.want)
		}
	}
}
