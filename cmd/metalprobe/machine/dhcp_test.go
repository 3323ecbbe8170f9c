package machine

import (
	"encoding/hex"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"ingot/bootsvc/netboot"
	"ingot/model/must"
)

const productUUID = "4c4c4544-0011-2233-4455-667788990011"

func TestBothSidesKnowTheUserClass(t *testing.T) {
	if userClass != netboot.ProbeUserClass {
		t.Errorf("the probe says %q, Ingot waits for %q", userClass, netboot.ProbeUserClass)
	}
	m := must.Get(dhcpv4.New(testNIC().request4()...))(t)
	if got := m.UserClass(); len(got) != 1 || got[0] != netboot.ProbeUserClass {
		t.Errorf("DHCPv4 user class %q", got)
	}
	if got := hex.EncodeToString(m.Options.Get(dhcpv4.OptionClientMachineIdentifier)); got != "0044454c4c110033224455667788990011" {
		t.Errorf("option 97 is %s, want the UUID as firmware sends it", got)
	}
	six := must.Get(dhcpv6.NewMessage(testNIC().request6()...))(t)
	if got := six.Options.UserClasses(); len(got) != 1 || string(got[0]) != netboot.ProbeUserClass {
		t.Errorf("DHCPv6 user class %q", got)
	}
	duid := dhcpv6.DUID(&dhcpv6.DUIDUUID{UUID: parseUUID(productUUID)})
	if got := six.Options.ClientID().String(); !cmp.Equal(six.Options.ClientID(), duid) {
		t.Errorf("DUID %s", got)
	}
}

func testNIC() *nic {
	return &nic{name: "eth0", mac: net.HardwareAddr{2, 0, 0, 0, 0, 1}, id: &identity{uuid: parseUUID(productUUID)}}
}

func offer(kind dhcpv4.MessageType, address string, options ...dhcpv4.Option) *dhcpv4.DHCPv4 {
	m, _ := dhcpv4.New(dhcpv4.WithMessageType(kind), dhcpv4.WithYourIP(net.ParseIP(address).To4()))
	for _, o := range options {
		m.UpdateOption(o)
	}
	return m
}

var (
	serverA = dhcpv4.OptServerIdentifier(net.IP{192, 0, 2, 1})
	serverB = dhcpv4.OptServerIdentifier(net.IP{192, 0, 2, 2})
	file    = dhcpv4.OptBootFileName("http://192.0.2.1/ignition/u")
)

func TestOffers(t *testing.T) {
	plain := offer(dhcpv4.MessageTypeOffer, "192.0.2.7", serverA)
	whole := offer(dhcpv4.MessageTypeOffer, "192.0.2.8", serverB, file)
	proxy := offer(dhcpv4.MessageTypeOffer, "0.0.0.0", serverB, file)
	firmware := offer(dhcpv4.MessageTypeOffer, "192.0.2.9", serverA, dhcpv4.OptBootFileName("undionly.kpxe"))
	for title, tc := range map[string]struct {
		fileNeeded bool
		messages   []*dhcpv4.DHCPv4
		enoughAt   int // 0 = never
		best       *dhcpv4.DHCPv4
		file       string
	}{
		"the first is enough when no file is needed": {
			fileNeeded: false, messages: []*dhcpv4.DHCPv4{plain, whole}, enoughAt: 1, best: plain, file: "",
		},
		"one with a file is waited for": {
			fileNeeded: true, messages: []*dhcpv4.DHCPv4{plain, whole}, enoughAt: 2, best: whole,
			file: "http://192.0.2.1/ignition/u",
		},
		"one may lease and the other tell": {
			fileNeeded: true, messages: []*dhcpv4.DHCPv4{proxy, plain}, enoughAt: 2, best: plain,
			file: "http://192.0.2.1/ignition/u",
		},
		"one that leases nothing is not enough": {
			fileNeeded: false, messages: []*dhcpv4.DHCPv4{proxy}, enoughAt: 0, best: nil,
			file: "http://192.0.2.1/ignition/u",
		},
		"a file for firmware is none": {
			fileNeeded: true, messages: []*dhcpv4.DHCPv4{firmware}, enoughAt: 0, best: firmware, file: "",
		},
		"an offer of nobody is none": {
			fileNeeded: false, messages: []*dhcpv4.DHCPv4{offer(dhcpv4.MessageTypeOffer, "192.0.2.7")}, enoughAt: 0,
			best: nil, file: "",
		},
		"an acknowledgement is no offer": {
			fileNeeded: false, messages: []*dhcpv4.DHCPv4{offer(dhcpv4.MessageTypeAck, "192.0.2.7", serverA)},
			enoughAt: 0, best: nil, file: "",
		},
		"the first that has a file is kept": {
			fileNeeded: true, messages: []*dhcpv4.DHCPv4{whole, plain}, enoughAt: 1, best: whole,
			file: "http://192.0.2.1/ignition/u",
		},
	} {
		t.Run(title, func(t *testing.T) {
			o := offers4{fileNeeded: tc.fileNeeded}
			enoughAt := 0
			for i, m := range tc.messages {
				if o.enough(m) {
					enoughAt = i + 1
					break
				}
			}
			if enoughAt != tc.enoughAt || o.best != tc.best || o.file != tc.file {
				t.Errorf("enough at %d, best %v, file %q", enoughAt, o.best, o.file)
			}
		})
	}
}

func TestParseLease(t *testing.T) {
	mask := dhcpv4.OptSubnetMask(net.CIDRMask(24, 32))
	router := dhcpv4.OptRouter(net.IP{192, 0, 2, 1})
	subnet := hop{to: netip.MustParsePrefix("192.0.2.0/24")}
	everywhere := hop{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("192.0.2.1")}
	for title, tc := range map[string]struct {
		message *dhcpv4.DHCPv4
		want    *lease
	}{
		"a lease": {
			message: offer(dhcpv4.MessageTypeAck, "192.0.2.7", serverA, mask, router, file,
				dhcpv4.OptDNS(net.IP{192, 0, 2, 53}), dhcpv4.OptIPAddressLeaseTime(time.Hour), dhcpv4.OptRenewTimeValue(10*time.Minute)),
			want: &lease{
				address: netip.MustParsePrefix("192.0.2.7/24"), routes: []hop{subnet, everywhere},
				dns: []netip.Addr{netip.MustParseAddr("192.0.2.53")}, bootFile: "http://192.0.2.1/ignition/u",
				valid: time.Hour, renew: 10 * time.Minute,
			},
		},
		"routes of option 121 take the router's place": {
			message: offer(dhcpv4.MessageTypeAck, "192.0.2.7", serverA, mask, router,
				dhcpv4.OptIPAddressLeaseTime(time.Hour), dhcpv4.OptClasslessStaticRoute(&dhcpv4.Route{
					Dest:   &net.IPNet{IP: net.IP{198, 51, 100, 0}, Mask: net.CIDRMask(24, 32)},
					Router: net.IP{192, 0, 2, 3},
				})),
			want: &lease{
				address: netip.MustParsePrefix("192.0.2.7/24"),
				routes:  []hop{subnet, {netip.MustParsePrefix("198.51.100.0/24"), netip.MustParseAddr("192.0.2.3")}},
				valid:   time.Hour, renew: 30 * time.Minute,
			},
		},
		"times that nobody can keep, and no mask": {
			message: offer(dhcpv4.MessageTypeAck, "192.0.2.7", serverA,
				dhcpv4.OptIPAddressLeaseTime(time.Second), dhcpv4.OptRenewTimeValue(time.Hour)),
			want: &lease{
				address: netip.MustParsePrefix("192.0.2.7/32"),
				routes:  []hop{{to: netip.MustParsePrefix("192.0.2.7/32")}}, valid: time.Minute,
				renew: 30 * time.Second,
			},
		},
		"no address":           {message: offer(dhcpv4.MessageTypeAck, "0.0.0.0", serverA), want: nil},
		"an address of groups": {message: offer(dhcpv4.MessageTypeAck, "224.0.0.1", serverA), want: nil},
		"loopback":             {message: offer(dhcpv4.MessageTypeAck, "127.0.0.1", serverA), want: nil},
	} {
		t.Run(title, func(t *testing.T) {
			got, err := parseLease(tc.message, "")
			if tc.want == nil {
				if err == nil {
					t.Errorf("got %+v, want an error", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*tc.want, got, cmp.AllowUnexported(lease{}, hop{}), cmpopts.IgnoreFields(lease{}, "acknowledged"),
				cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
				t.Errorf("lease (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseLease6(t *testing.T) {
	given := func(address string, valid time.Duration) dhcpv6.Modifier {
		return dhcpv6.WithIANA(dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(address), ValidLifetime: valid, PreferredLifetime: valid})
	}
	url := dhcpv6.WithOption(dhcpv6.OptBootFileURL("http://[2001:db8::1]/ignition/u"))
	for title, tc := range map[string]struct {
		options  []dhcpv6.Modifier
		address  netip.Prefix
		bootFile string
		valid    time.Duration
		refused  bool
	}{
		"a lease": {
			options: []dhcpv6.Modifier{given("2001:db8::7", time.Hour), url},
			address: netip.MustParsePrefix("2001:db8::7/128"), bootFile: "http://[2001:db8::1]/ignition/u",
			valid: time.Hour,
		},
		"facts only":         {options: []dhcpv6.Modifier{url}, bootFile: "http://[2001:db8::1]/ignition/u"},
		"a file for others":  {options: []dhcpv6.Modifier{dhcpv6.WithOption(dhcpv6.OptBootFileURL("tftp://[2001:db8::1]/ipxe.efi"))}},
		"no address":         {options: []dhcpv6.Modifier{dhcpv6.WithIANA()}, refused: true},
		"a lease of no time": {options: []dhcpv6.Modifier{given("2001:db8::7", 0)}, refused: true},
		"a group's address":  {options: []dhcpv6.Modifier{given("ff02::1", time.Hour)}, refused: true},
	} {
		t.Run(title, func(t *testing.T) {
			m := must.Get(dhcpv6.NewMessage(tc.options...))(t)
			got, err := parseLease6(m)
			if (err != nil) != tc.refused {
				t.Fatalf("error %v", err)
			}
			if got.address != tc.address || got.bootFile != tc.bootFile || got.valid != tc.valid {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestOwnAddresses(t *testing.T) {
	for line, want := range map[string]string{
		"20010db8000000000000000000000007 02 40 00 00     eth0": "2001:db8::7/64",
		"fe80000000000000505400fffe123456 02 40 20 80     eth0": "fe80::5054:ff:fe12:3456/64",
		"fe80000000000000505400fffe123456 02 40 20 c0     eth0": "invalid Prefix", // tentative
		"20010db8000000000000000000000007 03 40 00 00     eth1": "invalid Prefix",
		"20010db8 02 40 00 00 eth0":                             "invalid Prefix",
		"":                                                      "invalid Prefix",
	} {
		if got, ok := parseOwn(line, "eth0"); got.String() != want || ok != got.IsValid() {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}
