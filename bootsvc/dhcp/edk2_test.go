package dhcp

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/time/rate"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// wireOption is an option in a packet.
type wireOption struct {
	Code  byte
	Value []byte
	End   int // offset of the byte behind the value
}

// edk2Options parses a packet as EDK2 does (Dhcp4Dxe/Dhcp4Option.c DhcpIterateOptions). It returns
// nil if an option is longer than the packet, or if END is missing.
func edk2Options(packet []byte) (all []wireOption) {
	for at := options4; at < len(packet); {
		switch code := packet[at]; code {
		case dhcpv4.OptionPad.Code():
			at++
		case dhcpv4.OptionEnd.Code():
			return all
		default:
			value := at + 2
			if value > len(packet) || value+int(packet[at+1]) > len(packet) {
				return nil
			}
			at = value + int(packet[at+1])
			all = append(all, wireOption{code, packet[value:at], at})
		}
	}
	return nil
}

// edk2Copy returns the copy of an OFFER that EDK2 changes and then uses: a NUL follows the value of
// option 67, unless the value ends in NUL.
func edk2Copy(offer []byte) []byte {
	changed := slices.Clone(offer)
	for _, o := range edk2Options(offer) {
		if o.Code == dhcpv4.OptionBootfileName.Code() && !bytes.HasSuffix(o.Value, []byte{0}) {
			changed[o.End] = 0
		}
	}
	return changed
}

// leaseTimes differ in the bytes of options 51, 58 and 59.
func leaseTimes() (all []time.Duration) {
	for _, seconds := range []time.Duration{60, 540, 600, 780, 1320, 3360, 3600, 3601, 5400, 7200, 61200, 86400, 2592000} {
		all = append(all, seconds*time.Second)
	}
	for d := time.Minute; d < 5*24*time.Hour; d += 1009*time.Minute + 7*time.Second {
		all = append(all, d)
	}
	return all
}

// serverAddresses have 7 to 15 characters.
var serverAddresses = []string{
	"1.2.3.4", "10.7.1.1", "10.77.1.1", "10.77.1.10", "192.0.2.100", "172.16.1.111", "192.168.1.111",
	"192.168.100.10", "172.16.100.111", "192.168.100.100",
}

// machineIDs are values of option 97, which replies repeat.
var machineIDs = [][]byte{swapped, straight, {0, 255, 51, 4, 0, 0, 67, 54, 58, 1, 60, 61, 66, 3, 16, 1, 2}}

// edk2Clients are clients whose replies have a PAD behind option 67.
func edk2Clients() map[string]map[byte]any {
	all := map[string]map[byte]any{
		"HTTP boot without option 93": {60: "HTTPClient:Arch:00016:UNDI:003001"},
		"no vendor class":             {55: []byte{1, 3, 51, 54, 66, 67}, 93: uint16(7)},
		"small replies":               with(firmwares["HPE, HTTP boot"].options, 57, uint16(576)),
	}
	for name, fw := range firmwares {
		if arch, ok := fw.options[93]; ok && arch != uint16(0) {
			all[name] = fw.options
		}
	}
	return all
}

// TestEDK2KeepsOptions: EDK2 declines a lease if its copy of the OFFER has lost the subnet mask.
func TestEDK2KeepsOptions(t *testing.T) {
	for name, change := range map[string]func(*Network){
		"all settings":                         func(*Network) {},
		"no gateway":                           func(n *Network) { n.Subnets[0].Gateway = netip.Addr{} },
		"no settings":                          func(n *Network) { n.Subnets[0] = Subnet{CIDR: n.Subnets[0].CIDR, Ranges: n.Subnets[0].Ranges} },
		"replies of the maximum size":          func(n *Network) { n.Subnets[0].Domain = strings.Repeat("long.", 45) + "example" },
		"boot file of the operator":            func(n *Network) { n.Options = ClientOptions{"boot-file": "a.efi"} },
		"boot file and server of the operator": func(n *Network) { n.Options = ClientOptions{"boot-file": "a.efi", "tftp-server": "192.0.2.9"} },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, holders, boot := hosts(), tickets{}, netip.Addr{}
			change(&cfg)
			cfg.Subnets[0].LeaseTime = 0 // the default
			s := testServer(t, Options{
				Networks: []Network{cfg}, Tickets: holders, Loaders: loaders(t),
				Site: func(string, netip.Addr) netboot.Site {
					return netboot.Site{HTTP: "http://" + netip.AddrPortFrom(boot, 8082).String(), TFTP: boot}
				},
			})
			s.limiter.rate = rate.Inf // all requests have one time and one MAC address
			times := append(leaseTimes(), s.networks[0].leases.Subnets[0].LeaseTime)
			for client, options := range edk2Clients() {
				for _, id := range machineIDs {
					holder := discovery()
					holder.Ticket.UUID = model.UUID(id[1:]).String()
					holders[mac1] = holder
					discover := packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, with(options, 97, id))
					for _, address := range serverAddresses {
						boot = addr(address)
						checkEDK2(t, s, times, discover, fmt.Sprintf("%s, UUID %s, from %s", client, holder.Ticket.UUID, address))
					}
				}
			}
		})
	}
}

// checkEDK2 compares the options of the OFFER with those of EDK2's copy, for each lease time.
func checkEDK2(t *testing.T, s *Server, times []time.Duration, discover []byte, name string) {
	t.Helper()
	for _, d := range times {
		s.networks[0].leases.Subnets[0].LeaseTime = d
		offer := replyTo(t, s, discover, anyone, port4Server)
		want, got := edk2Options(offer), edk2Options(edk2Copy(offer))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s, leased for %s: options are\n%v, want\n%v", name, d, got, want)
		}
	}
}

// TestBootFilePadding: old boot ROMs of a BIOS do not accept a PAD between options.
func TestBootFilePadding(t *testing.T) {
	for name, tc := range map[string]struct {
		options map[byte]any
		own     bool // the operator configured the boot file
		port    uint16
		want    bool
	}{
		"UEFI PXE":                         {options: firmwares["Dell, UEFI"].options, port: port4Server, want: true},
		"UEFI PXE on port 4011":            {options: firmwares["Dell, UEFI"].options, port: portPXE, want: true},
		"UEFI HTTP boot":                   {options: firmwares["HPE, HTTP boot"].options, port: port4Server, want: true},
		"UEFI HTTP boot without option 93": {options: map[byte]any{60: "HTTPClient:Arch:00016:UNDI:003001"}, port: port4Server, want: true},
		"boot file of the operator":        {options: map[byte]any{93: uint16(11)}, own: true, port: port4Server, want: true},
		"boot file of the operator, BIOS":  {options: map[byte]any{93: uint16(0)}, own: true, port: port4Server},
		"boot file of the operator, other": {own: true, port: port4Server},
		"BIOS PXE":                         {options: firmwares["Dell, BIOS"].options, port: port4Server},
		"BIOS PXE on port 4011":            {options: firmwares["Dell, BIOS"].options, port: portPXE},
		"BIOS PXE without option 93":       {options: firmwares["Supermicro, BIOS, without option 93"].options, port: port4Server},
		"probe":                            {options: firmwares["metalprobe as init"].options, port: port4Server},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, kind, from := hosts(), dhcpv4.MessageTypeDiscover, anyone
			if tc.own {
				cfg.Options = ClientOptions{"boot-file": "a.efi"}
			}
			if tc.port == portPXE {
				cfg.Mode, cfg.Subnets, kind, from = ModeProxy, nil, dhcpv4.MessageTypeRequest, "192.0.2.77:68"
			}
			s := testServer(t, Options{Networks: []Network{cfg}, Tickets: tickets{mac1: discovery()}, Loaders: loaders(t)})
			reply := replyTo(t, s, packetOf(t, kind, mac1, nil, tc.options), from, tc.port)
			all := edk2Options(reply)
			at := slices.IndexFunc(all, func(o wireOption) bool { return o.Code == dhcpv4.OptionBootfileName.Code() })
			if at < 0 {
				t.Fatalf("no option 67: %v", all)
			}
			if got := reply[all[at].End] == dhcpv4.OptionPad.Code(); got != tc.want {
				t.Errorf("PAD behind option 67: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestBootFilePaddingFits: a reply that has room for option 67 alone has neither option 67 nor PAD.
func TestBootFilePaddingFits(t *testing.T) {
	uefi := packet4{DHCPv4: &dhcpv4.DHCPv4{Options: dhcpv4.Options{93: {0, 7}}}, mac: mac1}
	r := newReply4(uefi, dhcpv4.MessageTypeOffer, netip.Addr{})
	r.add(dhcpv4.OptionBootfileName.Code(), []byte(strings.Repeat("a", 250)))
	for limit, want := range map[int]int{240 + 3 + 252 + 1 + 1: 2, 240 + 3 + 252 + 1: 1} { // header, type, option 67, PAD, END
		if reply := r.append(nil, limit); len(reply) > limit || len(edk2Options(reply)) != want {
			t.Errorf("limit %d: %d bytes with %d options, want %d", limit, len(reply), len(edk2Options(reply)), want)
		}
	}
}

func replyTo(t *testing.T, s *Server, data []byte, from string, port uint16) []byte {
	t.Helper()
	n := service4{s.networks[0]}
	p, drop := n.accept4(data, netip.MustParseAddrPort(from), port, t0)
	if drop != drop4None {
		t.Fatalf("dropped: %s", drop)
	}
	s.loopLimiter = netboot.NewLoaderLimiter()
	a := n.decide4(p, t0)
	if a.reply == nil {
		t.Fatalf("no reply: %s", a.outcome)
	}
	reply := a.reply.append(nil, maxReply4(p))
	if len(reply) > maxReply4(p) {
		t.Fatalf("the reply has %d bytes, want at most %d", len(reply), maxReply4(p))
	}
	return reply
}
