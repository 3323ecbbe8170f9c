package dhcp

import (
	"net"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/netboot"
)

func TestWhatIsHeardOfOtherServers(t *testing.T) {
	const theirs = "192.0.2.77"
	other, ours := net.ParseIP("192.0.2.5").To4(), net.ParseIP("192.0.2.2").To4()
	wish := net.ParseIP(theirs).To4()
	relayed := func(p *dhcpv4.DHCPv4) {
		p.GatewayIPAddr = net.ParseIP("192.0.2.1").To4()
		p.UpdateOption(dhcpv4.OptRelayAgentInfo(dhcpv4.OptGeneric(dhcpv4.AgentCircuitIDSubOption, []byte("Gi1/0/7"))))
	}
	has := func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = wish }
	for title, tc := range map[string]struct {
		proxy   bool
		kind    dhcpv4.MessageType
		from    string
		port    uint16
		change  func(*dhcpv4.DHCPv4)
		options map[byte]any
		holder  string
		relayed string // port
	}{
		"an address of another server's, beside us as a proxy": {
			proxy: true, kind: dhcpv4.MessageTypeRequest, from: anyone, port: port4Server,
			options: map[byte]any{50: []byte(wish), 54: []byte(other)}, holder: mac1,
		},
		"one that a client has already": {true, dhcpv4.MessageTypeRequest, anyone, port4Server, has, nil, mac1, ""},
		"one behind a relay": {
			proxy: true, kind: dhcpv4.MessageTypeRequest, from: "192.0.2.1:67", port: port4Server, change: relayed,
			options: map[byte]any{50: []byte(wish), 54: []byte(other)}, holder: mac1, relayed: "Gi1/0/7",
		},
		"one of another server's where we lease": {
			kind: dhcpv4.MessageTypeRequest, from: anyone, port: port4Server, options: map[byte]any{50: []byte(wish), 54: []byte(other)},
			holder: mac1,
		},
		"not what is asked of us": {
			kind: dhcpv4.MessageTypeRequest, from: anyone, port: port4Server, options: map[byte]any{50: []byte(wish), 54: []byte(ours)},
		},
		"not what is wished for before any server offers it": {
			proxy: true, kind: dhcpv4.MessageTypeDiscover, from: anyone, port: port4Server, options: map[byte]any{50: []byte(wish)},
		},
		"not what a client says to us alone": {true, dhcpv4.MessageTypeRequest, theirs + ":68", portPXE, has, nil, "", ""},
	} {
		t.Run(title, func(t *testing.T) {
			cfg := hosts()
			if tc.proxy {
				cfg.Mode, cfg.Subnets = ModeProxy, []Subnet{{CIDR: cfg.Subnets[0].CIDR}}
			}
			heard := netboot.NewHeard(nil)
			s := testServer(t, Options{Networks: []Network{cfg}, Heard: heard})
			hear(t, s, packetOf(t, tc.kind, mac1, tc.change, tc.options), tc.from, tc.port)
			if mac, _ := heard.Holder(addr(theirs)); mac != tc.holder {
				t.Errorf("%q is heard to have it, want %q", mac, tc.holder)
			}
			if port := heard.Port(mac1); port != tc.relayed {
				t.Errorf("heard on port %q, want %q", port, tc.relayed)
			}
		})
	}
}
