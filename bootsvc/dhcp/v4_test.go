package dhcp

import (
	"bytes"
	stdcmp "cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/model"
	"ingot/model/must"
)

// packetOf returns a client's packet. Options are code and value; a value is text,
// an address, bytes or a number of 16 bits.
func packetOf(t testing.TB, kind dhcpv4.MessageType, mac string, change func(*dhcpv4.DHCPv4), options map[byte]any) []byte {
	t.Helper()
	hw := must.Get(net.ParseMAC(mac))(t)
	p := must.Get(dhcpv4.New(dhcpv4.WithHwAddr(hw), dhcpv4.WithTransactionID(dhcpv4.TransactionID{1, 2, 3, 4})))(t)
	if kind != dhcpv4.MessageTypeNone {
		p.UpdateOption(dhcpv4.OptMessageType(kind))
	}
	for code, v := range options {
		p.UpdateOption(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(code), bytesOf(t, v)))
	}
	if change != nil {
		change(p)
	}
	return p.ToBytes()
}

func bytesOf(t testing.TB, v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	case uint16:
		return []byte{byte(v >> 8), byte(v)}
	case netip.Addr:
		return v.AsSlice()
	}
	t.Fatalf("no option value: %T", v)
	return nil
}

// said is an answer, as text to compare.
type said struct {
	Outcome string
	Drop    string
	Type    string
	You     string            // yiaddr
	Next    string            // siaddr
	File    string            // field file
	Lease   string            // address to be stored, "-" before one to be forgotten
	Noted   string            // the architecture that is noted with a ticket
	Options map[string]string // those that the test names
}

// hear decides about a packet that comes to port 67 or 4011 of the first network.
func hear(t testing.TB, s *Server, data []byte, from string, port uint16, show ...byte) (said, *dhcpv4.DHCPv4) {
	t.Helper()
	n := service4{s.networks[0]}
	p, drop := n.accept4(data, netip.MustParseAddrPort(from), port, t0)
	if drop != drop4None {
		return said{Drop: string(drop)}, nil
	}
	a := n.decide4(p, t0)
	got := said{Outcome: a.outcome}
	if a.told.Ticket != nil {
		got.Noted = a.told.Arch.String()
	}
	if a.lease != nil {
		got.Lease = a.lease.Address.String()
		if a.lease.Expires.IsZero() {
			got.Lease = "-" + got.Lease
		}
	}
	if a.reply == nil {
		return got, nil
	}
	wire := a.reply.append(nil, maxReply4(p))
	if len(wire) < 300 || len(wire) > maxReply4(p) {
		t.Errorf("the answer has %d bytes, want 300 to %d", len(wire), maxReply4(p))
	}
	reply, err := dhcpv4.FromBytes(wire)
	if err != nil {
		t.Fatalf("the answer cannot be parsed: %v", err)
	}
	got.Type, got.File = reply.MessageType().String(), reply.BootFileName
	if !reply.YourIPAddr.IsUnspecified() {
		got.You = reply.YourIPAddr.String()
	}
	if !reply.ServerIPAddr.IsUnspecified() {
		got.Next = reply.ServerIPAddr.String()
	}
	for _, code := range show {
		if got.Options == nil {
			got.Options = map[string]string{}
		}
		if v, ok := reply.Options[code]; ok {
			got.Options[fmt.Sprint(code)] = textOf(v)
		}
	}
	return got, reply
}

func textOf(b []byte) string {
	if strings.ContainsFunc(string(b), func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Sprintf("% x", b)
	}
	return string(b)
}

const anyone = "0.0.0.0:68" // a client without address

func twoSubnets(n *Network) {
	n.Subnets = append(n.Subnets, Subnet{CIDR: netip.MustParsePrefix("198.51.100.0/24"), Ranges: []lease.Range{rangeOf("198.51.100.9-198.51.100.9")}})
}

func TestDecide4(t *testing.T) {
	sid := addr("192.0.2.2")
	relayed := func(giaddr string) func(*dhcpv4.DHCPv4) {
		return func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.ParseIP(giaddr).To4() }
	}
	renewing := func(ciaddr string) func(*dhcpv4.DHCPv4) {
		return func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.ParseIP(ciaddr).To4() }
	}
	for name, tc := range map[string]struct {
		leases  []string // MAC addresses that have leases, from 192.0.2.10 on
		kind    dhcpv4.MessageType
		change  func(*dhcpv4.DHCPv4)
		options map[byte]any
		from    string
		show    []byte
		network func(*Network)
		want    said
	}{
		"a discover is offered an address, and what it needs to use it": {
			kind: dhcpv4.MessageTypeDiscover, show: []byte{1, 3, 6, 15, 42, 51, 54, 58, 59},
			want: said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10", Options: map[string]string{
				"1": "ff ff ff 00", "3": "c0 00 02 01", "6": "c0 00 02 02", "15": "example.com", "51": "00 00 0e 10",
				"54": "c0 00 02 02", "58": "00 00 07 08", "59": "00 00 0c 4e",
			}},
		},
		"time servers are told to clients that ask": {
			kind: dhcpv4.MessageTypeDiscover, options: map[byte]any{55: []byte{1, 42}}, show: []byte{42},
			want: said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10", Options: map[string]string{"42": "c0 00 02 03"}},
		},
		"client and machine identifiers and the relay's option are echoed": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("192.0.2.1"), from: "192.0.2.1:67",
			options: map[byte]any{
				61: []byte{1, 2, 0, 0, 0, 0, 1}, 82: []byte{1, 4, 'e', 't', 'h', '7'},
				97: append([]byte{0}, make([]byte, 16)...),
			},
			show: []byte{61, 82, 97},
			want: said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10", Options: map[string]string{
				"61": "01 02 00 00 00 00 01", "82": "01 04 65 74 68 37", "97": strings.TrimSpace(strings.Repeat("00 ", 17)),
			}},
		},
		"a request for what was offered is acknowledged once it is stored": {
			kind: dhcpv4.MessageTypeRequest, options: map[byte]any{50: addr("192.0.2.10"), 54: sid},
			want: said{Outcome: "ack", Type: "ACK", You: "192.0.2.10", Lease: "192.0.2.10"},
		},
		"a request to another server is none of ours": {
			kind: dhcpv4.MessageTypeRequest, options: map[byte]any{50: addr("192.0.2.10"), 54: addr("192.0.2.66")},
			want: said{Outcome: "other server"},
		},
		"a reboot with an address of another subnet is refused": {
			kind: dhcpv4.MessageTypeRequest, options: map[byte]any{50: addr("198.51.100.7")},
			want: said{Outcome: "nak", Type: "NAK"},
		},
		"a reboot with somebody else's address is refused": {
			leases: []string{mac2}, kind: dhcpv4.MessageTypeRequest, options: map[byte]any{50: addr("192.0.2.10")},
			want: said{Outcome: "nak", Type: "NAK"},
		},
		"a reboot with an address that is not from our range is left to others": {
			kind: dhcpv4.MessageTypeRequest, options: map[byte]any{50: addr("192.0.2.200")},
			want: said{Outcome: "unknown address"},
		},
		"a renewal is acknowledged": {
			leases: []string{mac1}, kind: dhcpv4.MessageTypeRequest, change: renewing("192.0.2.10"), from: "192.0.2.10:68",
			want: said{Outcome: "ack", Type: "ACK", You: "192.0.2.10", Lease: "192.0.2.10"},
		},
		"a request that names no address is not answered": {
			kind: dhcpv4.MessageTypeRequest, want: said{Outcome: "no address named"},
		},
		"a full pool is silent": {
			leases: []string{mac2, mac3, "02:00:00:00:00:04"}, kind: dhcpv4.MessageTypeDiscover, want: said{Outcome: "exhausted"},
		},
		"an address that is given back is forgotten": {
			leases: []string{mac1}, kind: dhcpv4.MessageTypeRelease, change: renewing("192.0.2.10"), from: "192.0.2.10:68",
			options: map[byte]any{54: sid},
			want:    said{Outcome: "released", Lease: "-192.0.2.10"},
		},
		"what iPXE gives back late is not its own when the system has asked": {
			leases: []string{mac1}, kind: dhcpv4.MessageTypeRelease, change: renewing("192.0.2.10"),
			options: map[byte]any{54: sid, 61: []byte{1, 2, 0, 0, 0, 0, 1}}, want: said{Outcome: "not its own"},
		},
		"nobody gives back another's address": {
			leases: []string{mac2}, kind: dhcpv4.MessageTypeRelease, change: renewing("192.0.2.10"), options: map[byte]any{54: sid},
			want: said{Outcome: "not its own"},
		},
		"an address in use is set aside": {
			leases: []string{mac1}, kind: dhcpv4.MessageTypeDecline, options: map[byte]any{50: addr("192.0.2.10"), 54: sid},
			want: said{Outcome: "declined", Lease: "192.0.2.10"},
		},
		"nobody declines another's address": {
			leases: []string{mac2}, kind: dhcpv4.MessageTypeDecline, options: map[byte]any{50: addr("192.0.2.10"), 54: sid},
			want: said{Outcome: "not its own"},
		},
		"who has an address is told the rest, without a lease": {
			kind: dhcpv4.MessageTypeInform, change: renewing("192.0.2.99"), from: "192.0.2.99:68", show: []byte{1, 51},
			want: said{Outcome: "ack", Type: "ACK", Options: map[string]string{"1": "ff ff ff 00"}},
		},
		"a relay's link selection counts before its address": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("192.0.2.1"), from: "192.0.2.1:67",
			network: twoSubnets, options: map[byte]any{82: []byte{5, 4, 198, 51, 100, 0}},
			want: said{Outcome: "offer", Type: "OFFER", You: "198.51.100.9"},
		},
		"a relay whose address is not of ours, as that of a fabric's switch, is answered for the link that it selects": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("10.255.0.7"), from: "10.255.0.7:67", show: []byte{82},
			options: map[byte]any{82: []byte{5, 4, 192, 0, 2, 1}},
			want:    said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10", Options: map[string]string{"82": "05 04 c0 00 02 01"}},
		},
		"a relay that selects a link that is not ours is dropped": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("192.0.2.1"), from: "192.0.2.1:67",
			options: map[byte]any{82: []byte{5, 4, 203, 0, 113, 0}}, want: said{Drop: "relay"},
		},
		"an answer is not sent to an address that is not ours because somebody names it": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("203.0.113.9"), from: "10.255.0.7:67",
			options: map[byte]any{82: []byte{5, 4, 192, 0, 2, 1}}, want: said{Drop: "untrusted"},
		},
		"a relay that is configured may send from another address than it names": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("203.0.113.9"), from: "10.255.0.7:67",
			network: func(n *Network) { n.Relays = []string{"10.255.0.0/24"} },
			options: map[byte]any{82: []byte{5, 4, 192, 0, 2, 1}}, want: said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10"},
		},
		"a subnet that is selected counts before the relay's address": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("192.0.2.1"), from: "192.0.2.1:67", network: twoSubnets, show: []byte{118},
			options: map[byte]any{118: addr("198.51.100.0")},
			want:    said{Outcome: "offer", Type: "OFFER", You: "198.51.100.9", Options: map[string]string{"118": "c6 33 64 00"}},
		},
		"a relay's link selection counts before the subnet that is selected": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("192.0.2.1"), from: "192.0.2.1:67", network: twoSubnets,
			options: map[byte]any{82: []byte{5, 4, 192, 0, 2, 0}, 118: addr("198.51.100.0")},
			want:    said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10"},
		},
		"a client on our link cannot select a subnet that is not of it": {
			kind: dhcpv4.MessageTypeDiscover, network: twoSubnets, options: map[byte]any{118: addr("198.51.100.0")},
			want: said{Outcome: "exhausted"},
		},
		"a relay's override is what clients take for the server": {
			kind: dhcpv4.MessageTypeRequest, change: relayed("192.0.2.1"), from: "192.0.2.1:67", show: []byte{54},
			options: map[byte]any{50: addr("192.0.2.10"), 54: addr("192.0.2.1"), 82: []byte{11, 4, 192, 0, 2, 1}},
			want: said{
				Outcome: "ack", Type: "ACK", You: "192.0.2.10", Lease: "192.0.2.10",
				Options: map[string]string{"54": "c0 00 02 01"},
			},
		},
		"a relay of a subnet that is not ours is dropped": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("203.0.113.1"), from: "203.0.113.1:67", want: said{Drop: "relay"},
		},
		"a relay that is configured is answered": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("192.0.2.1"), from: "10.7.0.1:67",
			network: func(n *Network) { n.Relays = []string{"192.0.2.1", "10.0.0.0/8"} },
			want:    said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10"},
		},
		"who is no relay that is configured is dropped": {
			kind: dhcpv4.MessageTypeDiscover, change: relayed("192.0.2.1"), from: "192.0.2.66:67",
			network: func(n *Network) { n.Relays = []string{"192.0.2.1", "10.0.0.0/8"} }, want: said{Drop: "untrusted"},
		},
		"who needs no relay is answered wherever relays are": {
			kind: dhcpv4.MessageTypeDiscover, network: func(n *Network) { n.Relays = []string{"10.0.0.1"} },
			want: said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10"},
		},
		"a source that is not of the link is dropped": {
			kind: dhcpv4.MessageTypeDiscover, from: "203.0.113.1:68", want: said{Drop: "source"},
		},
		"an address to answer to that is not of ours is dropped": {
			kind: dhcpv4.MessageTypeInform, change: renewing("203.0.113.1"), from: "192.0.2.99:68", want: said{Drop: "source"},
		},
		"BOOTP is dropped": {want: said{Drop: "bootp"}},
		"a group MAC address is dropped": {
			kind: dhcpv4.MessageTypeDiscover, change: func(p *dhcpv4.DHCPv4) { p.ClientHWAddr[0] = 1 }, want: said{Drop: "hardware"},
		},
		"a short MAC address is dropped": {
			kind: dhcpv4.MessageTypeDiscover, change: func(p *dhcpv4.DHCPv4) { p.ClientHWAddr = p.ClientHWAddr[:4] },
			want: said{Drop: "hardware"},
		},
		"an answer is no question": {
			kind: dhcpv4.MessageTypeDiscover, change: func(p *dhcpv4.DHCPv4) { p.OpCode = 2 }, want: said{Drop: "malformed"},
		},
		"a MAC address that is denied": {
			kind: dhcpv4.MessageTypeDiscover, network: func(n *Network) { n.MACDeny = []string{"02:00"} }, want: said{Drop: "filter"},
		},
		"a MAC address that is not allowed": {
			kind: dhcpv4.MessageTypeDiscover, network: func(n *Network) { n.MACAllow = []string{"A0:36:9F"} }, want: said{Drop: "filter"},
		},
		"a MAC address that is allowed, in any case": {
			kind: dhcpv4.MessageTypeDiscover, network: func(n *Network) { n.MACAllow = []string{"02:00:00:00:00:01"} },
			want: said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10"},
		},
		"a proxy never answers a request on port 67": {
			kind: dhcpv4.MessageTypeRequest, options: map[byte]any{50: addr("198.51.100.7")},
			network: func(n *Network) { n.Mode, n.Subnets = ModeProxy, nil }, want: said{Outcome: "ignored"},
		},
		"a proxy offers nothing to a client that does not boot": {
			kind: dhcpv4.MessageTypeDiscover, network: func(n *Network) { n.Mode, n.Subnets = ModeProxy, nil },
			want: said{Outcome: "nothing to boot"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hosts()
			if tc.network != nil {
				tc.network(&cfg)
			}
			s := testServer(t, Options{Networks: []Network{cfg}})
			for _, mac := range tc.leases {
				leaseTo(t, s, mac)
			}
			from := tc.from
			if from == "" {
				from = anyone
			}
			got, _ := hear(t, s, packetOf(t, tc.kind, mac1, tc.change, tc.options), from, port4Server, tc.show...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// swapped is uuid as firmware sends it in option 97, with the first three fields
// little-endian.
var swapped = []byte{0, 0x44, 0x45, 0x4c, 0x4c, 0x11, 0, 0x33, 0x22, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb}

var straight = []byte{0, 0x4c, 0x4c, 0x45, 0x44, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb}

// pxeAsks is the parameter request list of PXE firmware (PXE 2.1, table 2-1).
var pxeAsks = []byte{
	1, 2, 3, 4, 5, 6, 11, 12, 13, 15, 16, 17, 18, 22, 23, 28, 40, 41, 42, 43, 50, 51, 54, 58, 59, 60, 66, 67, 97, 128, 129, 130, 131,
	132, 133, 134, 135,
}

// firmwares are discovers as firmware sends them, by the Preboot Execution
// Environment 2.1, the UEFI specification, RFC 4578 and RFC 5970, and what is told
// of the vendors' machines in public.
var firmwares = map[string]struct {
	options  map[byte]any
	kind     netboot.Kind
	class    string // option 60 of the answer
	file     string
	arch     string // that is noted
	tftp     bool
	uuidless bool // found by MAC address
}{
	"Dell, BIOS": {
		options: map[byte]any{
			55: pxeAsks, 57: uint16(1260), 60: "PXEClient:Arch:00000:UNDI:002001", 93: uint16(0), 94: []byte{1, 2, 1}, 97: swapped,
		},
		kind: netboot.KindPXE, class: "PXEClient", file: "undionly.kpxe", arch: "x86 BIOS", tftp: true,
	},
	"Dell, UEFI": {
		options: map[byte]any{
			55: pxeAsks, 57: uint16(1472), 60: "PXEClient:Arch:00007:UNDI:003016", 93: uint16(7), 94: []byte{1, 3, 16}, 97: swapped,
		},
		kind: netboot.KindPXE, class: "PXEClient", file: "ipxe.efi", arch: "x64 UEFI", tftp: true,
	},
	"HPE, UEFI, which says 9 for x86-64": {
		options: map[byte]any{
			55: pxeAsks, 57: uint16(1472), 60: "PXEClient:Arch:00009:UNDI:003016", 93: uint16(9), 94: []byte{1, 3, 16}, 97: straight,
			61: straight,
		},
		kind: netboot.KindPXE, class: "PXEClient", file: "ipxe.efi", arch: "EBC", tftp: true,
	},
	"HPE, HTTP boot": {
		options: map[byte]any{55: []byte{
			1, 2, 3, 4, 5, 6, 12, 13, 15, 17, 18, 22, 23, 28, 40, 41, 42, 43, 50, 51, 54, 58, 59, 60, 66, 67, 97, 128,
		},
			57: uint16(1472), 60: "HTTPClient:Arch:00016:UNDI:003001", 93: uint16(16), 94: []byte{1, 3, 1}, 97: swapped},
		kind: netboot.KindHTTP, class: "HTTPClient", file: "http://192.0.2.2:8082/loader/ipxe.efi", arch: "x64 UEFI boot from HTTP",
	},
	"Supermicro, BIOS, without option 93": {
		options: map[byte]any{55: pxeAsks, 60: "PXEClient:Arch:00000:UNDI:002001", 94: []byte{1, 2, 1}, 97: swapped},
		kind:    netboot.KindPXE, class: "PXEClient", file: "undionly.kpxe", arch: "x86 BIOS", tftp: true,
	},
	"Lenovo, UEFI, user class missing and two architectures": {
		options: map[byte]any{
			55: pxeAsks, 57: uint16(1472), 60: "PXEClient:Arch:00007:UNDI:003001", 93: []byte{0xff, 0xff, 0, 7}, 94: []byte{1, 3, 1},
			97: swapped,
		},
		kind: netboot.KindPXE, class: "PXEClient", file: "ipxe.efi", arch: "x64 UEFI", tftp: true,
	},
	"AMI, UEFI, UUID not set": {
		options: map[byte]any{
			55: pxeAsks, 57: uint16(1472), 60: "PXEClient:Arch:00007:UNDI:003016", 93: uint16(7), 94: []byte{1, 3, 16},
			97: append([]byte{0}, []byte(strings.Repeat("\xff", 16))...),
		},
		uuidless: true,
		kind:     netboot.KindPXE, class: "PXEClient", file: "ipxe.efi", arch: "x64 UEFI", tftp: true,
	},
	"iPXE, bare user class": {
		options: map[byte]any{
			55: []byte{1, 3, 6, 7, 12, 15, 17, 26, 43, 60, 66, 67, 119, 128, 175, 203}, 57: uint16(1472),
			60: "PXEClient:Arch:00007:UNDI:003010", 61: []byte{1, 2, 0, 0, 0, 0, 1}, 77: "iPXE", 93: uint16(7), 94: []byte{1, 3, 10},
			97: swapped, 175: []byte{177, 5, 1, 0x80, 0x86, 0x10, 0x0e, 19, 1, 1},
		},
		kind: netboot.KindIPXE, class: "PXEClient", file: "http://192.0.2.2:8082/ipxe/" + uuid, arch: "x64 UEFI",
	},
	"U-Boot, arm64": {
		options: map[byte]any{
			55: []byte{1, 3, 6, 12, 17, 66, 67}, 57: uint16(576), 60: "U-Boot.armv8", 93: uint16(0x16), 94: []byte{1, 0, 0}, 97: straight,
		},
		kind: netboot.KindNone,
	},
	"metalprobe as init": {
		options: map[byte]any{55: []byte{1, 3, 6, 67}, 77: netboot.ProbeUserClass, 97: straight},
		kind:    netboot.KindProbe, file: "http://192.0.2.2:8082/ignition/" + uuid, arch: "unknown",
	},
}

func loaders(t testing.TB) *netboot.Loaders {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"undionly.kpxe", "ipxe.efi", "snponly.efi"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	return netboot.OpenLoaders([]string{dir})
}

func TestFirmware4(t *testing.T) {
	for name, fw := range firmwares {
		offers := tickets{uuid: discovery()}
		if fw.uuidless {
			offers = tickets{mac1: discovery()}
		}
		s := testServer(t, Options{Tickets: offers, Loaders: loaders(t)})
		t.Run(name+" is told its boot file", func(t *testing.T) {
			p, _ := service4{s.networks[0]}.accept4(
				packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, fw.options), netip.MustParseAddrPort(anyone), port4Server, t0,
			)
			if kind := client4(p).Kind; kind != fw.kind {
				t.Errorf("taken for %q, want %q", kind, fw.kind)
			}
			want := said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10", File: fw.file, Options: map[string]string{}}
			if fw.class != "" {
				want.Options["60"] = fw.class
			}
			if fw.file != "" {
				want.Options["67"] = fw.file
			}
			if fw.tftp {
				want.Next, want.Options["66"], want.Options["43"] = "192.0.2.2", "192.0.2.2", "06 01 08 ff"
			}
			if fw.kind == netboot.KindIPXE {
				want.Options["175"] = "b0 01 01"
			}
			show := []byte{43, 60, 66, 67, 175}
			got, _ := hear(t, s, packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, fw.options), anyone, port4Server, show...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("discover: -want +got:\n%s", diff)
			}
			fw.options[50], fw.options[54] = addr("192.0.2.10"), addr("192.0.2.2")
			got, _ = hear(t, s, packetOf(t, dhcpv4.MessageTypeRequest, mac1, nil, fw.options), anyone, port4Server, show...)
			delete(fw.options, 50)
			delete(fw.options, 54)
			want.Outcome, want.Type, want.Lease, want.Noted = "ack", "ACK", "192.0.2.10", fw.arch
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request: -want +got:\n%s", diff)
			}
		})
		t.Run(name+" without a ticket is told an address only", func(t *testing.T) {
			s := testServer(t, Options{Tickets: tickets{uuid: {}, mac1: {}}, Loaders: loaders(t)})
			got, _ := hear(t, s, packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, fw.options), anyone, port4Server, 43, 60, 66, 67, 175)
			want := said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10", Options: map[string]string{}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestProxy4(t *testing.T) {
	proxied := Network{Name: "hosts", Interface: "eth0", Role: model.RoleHost, Mode: ModeProxy}
	server := func(t *testing.T) *Server {
		return testServer(t, Options{Networks: []Network{proxied}, Tickets: tickets{uuid: discovery()}, Loaders: loaders(t)})
	}
	show := []byte{1, 43, 51, 54, 60, 67, 175}
	uefi, ipxe := firmwares["Dell, UEFI"], firmwares["iPXE, bare user class"]
	t.Run("firmware is told its boot file beside the offer of another server", func(t *testing.T) {
		got, _ := hear(t, server(t), packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, uefi.options), anyone, port4Server, show...)
		want := said{Outcome: "told", Type: "OFFER", Next: "192.0.2.2", File: "ipxe.efi", Noted: "x64 UEFI", Options: map[string]string{
			"43": "06 01 08 ff", "54": "c0 00 02 02", "60": "PXEClient", "67": "ipxe.efi",
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("firmware that asks again on port 4011 is told there", func(t *testing.T) {
		has := func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.IP{192, 0, 2, 77} }
		got, _ := hear(t, server(t), packetOf(t, dhcpv4.MessageTypeRequest, mac1, has, uefi.options), "192.0.2.77:68", portPXE, show...)
		want := said{Outcome: "told", Type: "ACK", Next: "192.0.2.2", File: "ipxe.efi", Noted: "x64 UEFI", Options: map[string]string{
			"43": "06 01 08 ff", "54": "c0 00 02 02", "60": "PXEClient", "67": "ipxe.efi",
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("iPXE takes the offer for a PXE server's, and goes on to its script", func(t *testing.T) {
		got, _ := hear(t, server(t), packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, ipxe.options), anyone, port4Server, show...)
		script := "http://192.0.2.2:8082/ipxe/" + uuid
		want := said{Outcome: "told", Type: "OFFER", Next: "192.0.2.2", File: script, Noted: "x64 UEFI", Options: map[string]string{
			"54": "c0 00 02 02", "60": "PXEClient", "67": script,
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestLongBootFile(t *testing.T) {
	long := "http://192.0.2.2:8082/ipxe/" + strings.Repeat("a", 200)
	p := packet4{DHCPv4: &dhcpv4.DHCPv4{Options: dhcpv4.Options{}}, mac: mac1}
	r := newReply4(p, dhcpv4.MessageTypeOffer, addr("192.0.2.2"))
	r.boot(p, netboot.Answer{File: long, HTTP: true}, netboot.Site{}, false)
	reply, err := dhcpv4.FromBytes(r.append(nil, 548))
	if err != nil || reply.BootFileName != "" || string(reply.Options.Get(dhcpv4.OptionBootfileName)) != long {
		t.Errorf("field file %q, option 67 %q, %v", reply.BootFileName, reply.Options.Get(dhcpv4.OptionBootfileName), err)
	}
}

// TestRequiredOptions: whatever a relay, a client and the configuration add, each OFFER and ACK has what its client needs,
// and fits once the relay has removed option 82.
func TestRequiredOptions(t *testing.T) {
	for _, mode := range []Mode{ModeServer, ModeProxy} {
		for _, relay := range []int{0, 1, 100, 239, 240, 255, 256, 400, 600, 1200, 1472} {
			for _, id := range []int{2, 100, 255} {
				for _, size := range []int{0, 576, 1000, 1500} {
					for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest} {
						checkRequired(t, mode, kind, relay, id, size)
					}
				}
			}
		}
	}
}

// checkRequired checks an answer to UEFI that sends option 61 with id bytes behind a relay that adds relay bytes.
func checkRequired(t *testing.T, mode Mode, kind dhcpv4.MessageType, relay, id, size int) {
	t.Helper()
	title := fmt.Sprintf("%s %s with option 82 of %d, option 61 of %d and option 57 of %d", mode, kind, relay, id, size)
	cfg := hosts()
	cfg.Options = ClientOptions{"host-name": OptionText(strings.Repeat("h", 63)), "224": OptionText(strings.Repeat("x", 250))}
	required, port, wish := []byte{53, 54, 51, 1, 67}, uint16(port4Server), addr("192.0.2.10")
	if mode == ModeProxy {
		cfg.Mode, cfg.Subnets, cfg.Options = mode, []Subnet{{CIDR: cfg.Subnets[0].CIDR}}, nil
		if required = []byte{53, 54, 60, 67, 43, 97}; kind == dhcpv4.MessageTypeRequest {
			port = portPXE
		}
	}
	s := testServer(t, Options{Networks: []Network{cfg}, Tickets: tickets{uuid: discovery()}, Loaders: loaders(t)})
	options := with(firmwares["Dell, UEFI"].options, 61, bytes.Repeat([]byte{1}, id))
	if kind == dhcpv4.MessageTypeRequest && mode != ModeProxy {
		options[50] = wish
	}
	if delete(options, 57); size > 0 {
		options[57] = []byte{byte(size >> 8), byte(size)}
	}
	if relay > 0 {
		options[82] = bytes.Repeat([]byte{9}, relay)
	}
	change := func(p *dhcpv4.DHCPv4) {
		if relay > 0 {
			p.GatewayIPAddr = net.IP{192, 0, 2, 1}
		}
		if port == portPXE {
			p.ClientIPAddr = net.IP{192, 0, 2, 77}
		}
	}
	data := packetOf(t, kind, mac1, change, options)
	n := service4{s.networks[0]}
	p, drop := n.accept4(data, netip.MustParseAddrPort("192.0.2.1:67"), port, t0)
	a := n.decide4(p, t0)
	if drop != drop4None || a.reply == nil {
		t.Fatalf("%s: %s, %s", title, drop, a.outcome)
	}
	wire := a.reply.append(nil, maxReply4(p))
	reply, err := dhcpv4.FromBytes(wire)
	if err != nil {
		t.Fatalf("%s: %v", title, err)
	}
	for _, code := range required {
		if len(reply.Options[code]) == 0 {
			t.Errorf("%s: option %d is missing", title, code)
		}
	}
	added := optionSize4(options82(p))
	if len(wire)-added > maxReply4(p) || len(wire) > max(maxSize4-headers4, defaultSize4-headers4+added) || !bytes.Equal(reply.Options[82], options82(p)) {
		t.Errorf("%s: %d bytes, option 82 with %d", title, len(wire), len(reply.Options[82]))
	}
}

func options82(p packet4) []byte { return p.Options.Get(dhcpv4.OptionRelayAgentInformation) }

func TestRefusalThroughARelayIsBroadcast(t *testing.T) {
	data := packetOf(
		t, dhcpv4.MessageTypeRequest, mac1, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{192, 0, 2, 1} },
		map[byte]any{50: addr("198.51.100.7")},
	)
	got, reply := hear(t, testServer(t, Options{}), data, "192.0.2.1:67", port4Server)
	if got.Outcome != "nak" || !reply.IsBroadcast() || len(reply.Options.Get(dhcpv4.OptionIPAddressLeaseTime)) > 0 {
		t.Errorf("got %s", reply.Summary())
	}
}

func TestWay4(t *testing.T) {
	offered := reply4{yiaddr: addr("192.0.2.10")}
	for name, tc := range map[string]struct {
		change func(*dhcpv4.DHCPv4)
		option []byte // 82
		from   string
		port   uint16
		listen string // instead of an interface
		reply  reply4
		want   string
		frame  bool
	}{
		"to a client without address in a frame": {reply: offered, want: "192.0.2.10:68", frame: true},
		"to all, when the client wants it so": {
			change: func(p *dhcpv4.DHCPv4) { p.SetBroadcast() }, reply: offered, want: "255.255.255.255:68",
		},
		"to all, when the client has no address": {want: "255.255.255.255:68"},
		"to the address that a client has": {
			change: func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.IP{192, 0, 2, 9} }, reply: offered, want: "192.0.2.9:68",
		},
		"a refusal to all, for the address is in doubt": {
			change: func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.IP{192, 0, 2, 9} }, reply: reply4{nak: true}, want: "255.255.255.255:68",
		},
		"a refusal to its client where no client is on our link": {
			change: func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.IP{192, 0, 2, 9} }, listen: "192.0.2.2",
			reply: reply4{nak: true}, want: "192.0.2.9:68",
		},
		"to the relay": {change: func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{192, 0, 2, 1} }, reply: offered, want: "192.0.2.1:67"},
		"to the relay's port": {
			change: func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{192, 0, 2, 1} }, option: []byte{19, 0}, from: "192.0.2.1:6767",
			reply: offered, want: "192.0.2.1:6767",
		},
		"to the port that firmware asks from": {from: "192.0.2.9:4011", port: portPXE, want: "192.0.2.9:4011"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hosts()
			if tc.listen != "" {
				cfg.Interface, cfg.Listen = "", tc.listen
			}
			n := service4{testServer(t, Options{Networks: []Network{cfg}}).networks[0]}
			options := map[byte]any{}
			if tc.option != nil {
				options[82] = tc.option
			}
			from := netip.MustParseAddrPort(stdcmp.Or(tc.from, anyone))
			data := packetOf(t, dhcpv4.MessageTypeRequest, mac1, tc.change, options)
			p, drop := n.accept4(data, from, stdcmp.Or(tc.port, port4Server), t0)
			if drop != drop4None {
				t.Fatalf("dropped: %s", drop)
			}
			want := destination4{netip.MustParseAddrPort(tc.want), tc.frame}
			if got := n.destination4(p, answer4{reply: &tc.reply, client: from.Addr()}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func FuzzHandle4(f *testing.F) {
	for _, fw := range firmwares {
		f.Add(packetOf(f, dhcpv4.MessageTypeDiscover, mac1, nil, fw.options), false)
		fw.options[50] = addr("192.0.2.10")
		f.Add(packetOf(f, dhcpv4.MessageTypeRequest, mac1, nil, fw.options), true)
		delete(fw.options, 50)
	}
	f.Add(
		packetOf(
			f, dhcpv4.MessageTypeDiscover, mac1, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{192, 0, 2, 1} },
			map[byte]any{82: []byte{5, 4, 192, 0, 2, 0, 11, 4, 192, 0, 2, 1, 19, 0}},
		),
		false,
	)
	for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDecline, dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeInform} {
		has := func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.IP{192, 0, 2, 10} }
		f.Add(packetOf(f, kind, mac1, has, map[byte]any{50: addr("192.0.2.10"), 61: []byte{255, 0, 0, 0, 1, 0, 2, 0, 0, 0xab, 0x11, 0x7e}}), false)
	}
	request := []byte{53, 1, 3, 50, 4, 192, 0, 2, 10}
	for _, data := range [][]byte{
		withoutEnd(f, packetOf(f, dhcpv4.MessageTypeDiscover, mac1, nil, map[byte]any{80: []byte{}})),
		overloaded(f, 1, request, nil), overloaded(f, 2, nil, request), overloaded(f, 3, request[:3], request[3:]),
		infiniBand(f, infiniBandID), infiniBand(f, nil),
		packetOf(
			f, dhcpv4.MessageTypeDiscover, mac1, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{192, 0, 2, 77} },
			map[byte]any{82: []byte{1, 3, 'e', '/', '7', 2, 2, 's', '1', 5, 4, 192, 0, 2, 0}, 118: addr("192.0.2.0")},
		),
	} {
		f.Add(data, false)
		f.Add(data, true)
	}
	boots := loaders(f)
	f.Fuzz(func(t *testing.T, data []byte, proxy bool) {
		cfg := hosts()
		if proxy {
			cfg.Mode, cfg.Subnets = ModeProxy, nil
		}
		cfg.RapidCommit = true
		s := testServer(t, Options{Networks: []Network{cfg}, Tickets: tickets{uuid: discovery(), mac1: discovery()}, Loaders: boots})
		for _, port := range []uint16{port4Server, portPXE} {
			n := service4{s.networks[0]}
			p, drop := n.accept4(data, netip.MustParseAddrPort("192.0.2.77:68"), port, t0)
			if drop != drop4None {
				continue
			}
			a := n.decide4(p, t0)
			if a.reply == nil {
				continue
			}
			wire := a.reply.append(nil, maxReply4(p))
			reply, err := dhcpv4.FromBytes(wire)
			if err != nil {
				t.Fatalf("the answer cannot be parsed: %v\n% x", err, wire)
			}
			if you := address4(reply.YourIPAddr); you.IsValid() && (proxy || !cfg.Subnets[0].CIDR.Contains(you)) {
				t.Fatalf("the answer gives %s", you)
			}
		}
	})
}

// TestAPortCountsFromARelayThatIsConfigured: anybody who reaches us can say in a relay's name where
// he is plugged in.
func TestAPortCountsFromARelayThatIsConfigured(t *testing.T) {
	for name, tc := range map[string]struct {
		relays []string
		from   string
		giaddr string
		want   string
	}{
		"a relay that is configured":      {relays: []string{"192.0.2.1"}, from: "192.0.2.1:67", giaddr: "192.0.2.1", want: "192.0.2.77"},
		"no relay is configured":          {from: "192.0.2.1:67", giaddr: "192.0.2.1", want: "192.0.2.10"},
		"a client that says it of itself": {relays: []string{"192.0.2.1"}, from: anyone, giaddr: "0.0.0.0", want: "192.0.2.10"},
		"another relay":                   {relays: []string{"192.0.2.1"}, from: "192.0.2.3:67", giaddr: "192.0.2.1", want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hosts()
			cfg.Relays = tc.relays
			s := testServer(t, Options{Networks: []Network{cfg}})
			s.SetReservations([]lease.Reservation{{Port: model.RelayPort{CircuitID: "eth7"}, Name: "e", Address: addr("192.0.2.77")}})
			relayed := func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.ParseIP(tc.giaddr).To4() }
			got, _ := hear(t, s, packetOf(t, dhcpv4.MessageTypeDiscover, mac1, relayed, map[byte]any{82: []byte{1, 4, 'e', 't', 'h', '7'}}), tc.from, port4Server)
			if got.You != tc.want {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

// TestAClientIdentifierReservesAndProvesNothing (law 5): the lease is the MAC address's that asked, so
// nobody boots as another by showing his client identifier.
func TestAClientIdentifierReservesAndProvesNothing(t *testing.T) {
	s := testServer(t, Options{Clock: func() time.Time { return t0 }})
	s.SetReservations([]lease.Reservation{{MAC: mac1, ClientID: "0102", Name: "e", Address: addr("192.0.2.77")}})
	got, _ := hear(t, s, packetOf(t, dhcpv4.MessageTypeRequest, mac2, nil, map[byte]any{50: addr("192.0.2.77"), 61: []byte{1, 2}}), anyone, port4Server)
	if got.Lease != "192.0.2.77" {
		t.Fatalf("got %+v", got)
	}
	q := lease.Query{Network: s.networks[0].leases, Subnets: s.networks[0].leases.Subnets, MAC: mac2, ClientID: "0102", Wish: addr("192.0.2.77"), Now: t0}
	l, _ := s.table.Renewal(q)
	if l.MAC != mac2 {
		t.Errorf("the lease is %s's, want that of %s, which asked", l.MAC, mac2)
	}
}
