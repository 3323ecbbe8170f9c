package daemon

import (
	"net"
	"net/netip"
	"testing"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// fixed is a listener that only has an address.
type fixed struct {
	net.Listener
	at *net.TCPAddr
}

func (f fixed) Addr() net.Addr { return f.at }

func TestWhereMachinesReachTheBootService(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	everywhere := &net.TCPAddr{IP: net.IPv6unspecified, Port: 8082}
	for name, tc := range map[string]struct {
		url, networkURL, tftp string
		listener              *net.TCPAddr
		local                 netip.Addr
		want                  netboot.Site
	}{
		"at this machine's address on their network": {
			listener: everywhere, local: v4,
			want: netboot.Site{HTTP: "http://10.0.0.1:8082"},
		},
		"at this machine's IPv6 address on their network": {
			listener: everywhere, local: v6,
			want: netboot.Site{HTTP: "http://[fd00::1]:8082"},
		},
		"at the one address that is listened on": {
			listener: &net.TCPAddr{IP: net.IPv4(10, 9, 0, 1), Port: 80}, local: v4,
			want: netboot.Site{HTTP: "http://10.9.0.1:80"},
		},
		"where boot.url says": {
			url: "http://boot.example/", listener: everywhere, local: v6,
			want: netboot.Site{HTTP: "http://boot.example"},
		},
		"where their network's bootURL says": {
			url: "http://boot.example", networkURL: "http://n1.example", listener: everywhere, local: v4,
			want: netboot.Site{HTTP: "http://n1.example"},
		},
		"not at an IPv4 address when they speak IPv6": {
			url: "http://192.0.2.1:8082", listener: everywhere, local: v6,
			want: netboot.Site{HTTP: "http://[fd00::1]:8082"},
		},
		"TFTP at this machine's address on their network": {
			tftp: ":69", listener: everywhere, local: v4,
			want: netboot.Site{HTTP: "http://10.0.0.1:8082", TFTP: v4},
		},
		"TFTP at the one address that is listened on": {
			tftp: "10.9.0.1:69", listener: everywhere, local: v4,
			want: netboot.Site{HTTP: "http://10.0.0.1:8082", TFTP: netip.MustParseAddr("10.9.0.1")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(&core{listeners: &listeners{boot: fixed{at: tc.listener}}})
			d.opts.Boot.URL, d.opts.TFTP.Listen = tc.url, tc.tftp
			d.opts.DHCP = []dhcp.Network{{Name: "n1", BootURL: tc.networkURL}}
			if got := d.network.site("n1", tc.local); got != tc.want {
				t.Errorf("told %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestWhereReportsMayComeFrom(t *testing.T) {
	claim, cleanup := &model.Ticket{Purpose: model.PurposeClaim}, &model.Ticket{Purpose: model.PurposeCleanup}
	for title, tc := range map[string]struct {
		ticket *model.Ticket
		token  bool
		want   netboot.AddressRule
	}{
		"a claim's, with its token, from addresses of its own":     {ticket: claim, token: true, want: netboot.BindNothing},
		"a claim's, without a token, from where its ticket may be": {ticket: claim, token: false, want: netboot.BindMachine},
		"a probe's from where its ticket may be":                   {ticket: cleanup, token: true, want: netboot.BindMachine},
		"that of a server without a ticket from there as well":     {ticket: nil, token: true, want: netboot.BindMachine},
	} {
		if got := reportRules(netboot.AddressRules{Rule: netboot.BindMachine}, tc.ticket, tc.token).Rule; got != tc.want {
			t.Errorf("%s: bound by %s, want %s", title, got, tc.want)
		}
	}
}
