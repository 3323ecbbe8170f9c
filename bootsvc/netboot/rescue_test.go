package netboot

import (
	"net/netip"
	"testing"

	"ingot/model"
)

// rescue is a Rescue where all is known, s9 is Available and Git names one more machine.
func rescue(available bool) *Rescue {
	r := &Rescue{
		Known: func() bool { return true },
		Named: func(id string) bool { return id == "02:00:00:00:00:09" },
	}
	if available {
		r.Available = func(s model.ServerName) bool { return s == "s9" }
	}
	return r
}

func TestWhoIsLedToTheRescueScript(t *testing.T) {
	fresh := &model.Ticket{ID: "t1"}
	booted := &model.Ticket{ID: "t1", Ended: model.TicketBooted}
	always := &model.Ticket{ID: "t1", Ended: model.TicketBooted, Always: true}
	off := &model.Ticket{ID: "t1", AwaitingOff: true}
	for title, tc := range map[string]struct {
		of   *Rescue
		o    model.TicketHolder
		want bool
	}{
		"nobody, where there is no script":               {nil, model.TicketHolder{Server: "s9"}, false},
		"a server that is available":                     {rescue(true), model.TicketHolder{Server: "s9"}, true},
		"one whose ticket has ended":                     {rescue(true), model.TicketHolder{Server: "s9", Ticket: booted}, true},
		"not where it is for strangers":                  {rescue(false), model.TicketHolder{Server: "s9"}, false},
		"not a server that is Reserved":                  {rescue(true), model.TicketHolder{Server: "s1", Ticket: booted}, false},
		"not one that was adopted, and had no ticket":    {rescue(true), model.TicketHolder{Server: "s1"}, false},
		"not one with a ticket":                          {rescue(true), model.TicketHolder{Server: "s9", Ticket: fresh}, false},
		"not one whose ticket waits":                     {rescue(true), model.TicketHolder{Server: "s9", Ticket: off}, false},
		"not one that boots always":                      {rescue(true), model.TicketHolder{Server: "s9", Ticket: always}, false},
		"not one whose ticket is open, and cannot boot ": {rescue(true), model.TicketHolder{Server: "s9", Ticket: fresh, Progress: &model.Progress{Ticket: "t1", ScriptAt: armed, IgnitionAt: armed}}, false},
	} {
		if got := tc.of.Server(tc.o); got != tc.want {
			t.Errorf("%s: got %v", title, got)
		}
	}
	if !rescue(false).Stranger("00000000-0000-4000-8000-000000000077", "02:00:00:00:00:07") {
		t.Error("a stranger is not led to the script")
	}
	if rescue(false).Stranger("00000000-0000-4000-8000-000000000077", "02:00:00:00:00:09") {
		t.Error("a machine that Git names is taken for a stranger")
	}
	var none *Rescue
	if none.Stranger("02:00:00:00:00:07") {
		t.Error("a stranger is led to a script that there is not")
	}
	early := rescue(true)
	early.Known = func() bool { return false }
	if early.Stranger("02:00:00:00:00:07") || early.Server(model.TicketHolder{Server: "s9"}) {
		t.Error("somebody is led to the script before all servers are known")
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
		got, ok := site.RescueFile(tc.c, "", l)
		if got != tc.want || ok != (tc.want.Reason == "") {
			t.Errorf("%s: got %+v, %v, want %+v", title, got, ok, tc.want)
		}
	}
}
