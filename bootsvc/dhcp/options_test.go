package dhcp

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
	"ingot/model/must"
)

func TestConfiguredOptions(t *testing.T) {
	endpoint := make(model.DHCPOptions)
	must.Do(t, endpoint.Set("host-name", "rack1-07"))
	bios := firmwares["Dell, BIOS"].options
	all := []byte{12, 17, 26, 42, 66, 67, 121, 150, 209, 210, 249}
	for name, tc := range map[string]struct {
		options      map[byte]any
		network      ClientOptions
		subnet       ClientOptions
		endpoint     model.DHCPOptions
		want         map[byte]string
		file, server string // in the fields of the header
	}{
		"those that a client asks for, and no others": {
			options: map[byte]any{55: []byte{26, 121}}, network: ClientOptions{"mtu": "9000", "wpad": "http://w/p"},
			subnet: ClientOptions{"routes": "10.0.0.0/8 via 192.0.2.1"},
			want:   map[byte]string{26: "#(" /* 9000 */, 121: "08 0a c0 00 02 01"},
		},
		"all, to a client that does not say what it wants": {
			network: ClientOptions{"mtu": "9000"}, want: map[byte]string{26: "#(" /* 9000 */},
		},
		"a subnet's before its network's": {
			network: ClientOptions{"mtu": "9000", "host-name": "a"}, subnet: ClientOptions{"mtu": "1500"},
			want: map[byte]string{12: "a", 26: "05 dc"},
		},
		"an Endpoint's before its subnet's": {
			subnet: ClientOptions{"host-name": "b", "mtu": "1500"}, endpoint: endpoint,
			want: map[byte]string{12: "rack1-07", 26: "05 dc"},
		},
		"an Endpoint's alone": {endpoint: endpoint, want: map[byte]string{12: "rack1-07"}},
		"other time servers in place of ntp": {
			options: map[byte]any{55: []byte{42}}, network: ClientOptions{"ntp-servers": "192.0.2.9"}, want: map[byte]string{42: "c0 00 02 09"},
		},
		"a boot file for devices that are no servers, where old ones look too": {
			options: map[byte]any{55: []byte{66, 67, 150}}, network: ClientOptions{"tftp-servers": "192.0.2.9", "boot-file": "switch.cfg"},
			want: map[byte]string{67: "switch.cfg", 150: "c0 00 02 09"}, file: "switch.cfg", server: "192.0.2.9",
		},
		"no boot file for a server that has no ticket (law 5)": {
			options: with(bios, 55, append([]byte{17, 209, 210}, pxeAsks...)), network: ClientOptions{
				"tftp-server": "192.0.2.9", "tftp-servers": "192.0.2.9", "boot-file": "pxelinux.0", "host-name": "a",
				"17": "iscsi:192.0.2.9::::iqn.a", "209": "pxelinux.cfg", "210": "tftp://192.0.2.9/",
			},
			want: map[byte]string{12: "a", 42: "c0 00 02 03"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hosts()
			cfg.Options, cfg.Subnets[0].Options = tc.network, tc.subnet
			s := testServer(t, Options{Networks: []Network{cfg}, Tickets: tickets{}, Loaders: loaders(t)})
			s.SetReservations([]lease.Reservation{{MAC: mac1, Name: "e", Address: addr("192.0.2.77"), Options: tc.endpoint}})
			for kind, options := range map[dhcpv4.MessageType]map[byte]any{
				dhcpv4.MessageTypeDiscover: tc.options,
				dhcpv4.MessageTypeRequest:  with(tc.options, 50, addr("192.0.2.77")),
			} {
				got, _ := hear(t, s, packetOf(t, kind, mac1, nil, options), anyone, port4Server, all...)
				want := map[string]string{}
				for code, value := range tc.want {
					want[fmt.Sprint(code)] = value
				}
				if diff := cmp.Diff(want, got.Options); diff != "" || got.File != tc.file || got.Next != tc.server {
					t.Errorf("%s: file %q by %q, options -want +got:\n%s", kind, got.File, got.Next, diff)
				}
			}
		})
	}
}

func with(options map[byte]any, code byte, value any) map[byte]any {
	all := maps.Clone(options)
	if all == nil {
		all = make(map[byte]any)
	}
	all[code] = value
	return all
}
