package dhcp

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model/must"
)

// withoutEnd takes the option END off a packet, and the zeros behind it.
func withoutEnd(t testing.TB, data []byte) []byte {
	t.Helper()
	data = bytes.TrimRight(data, "\x00")
	if len(data) == 0 || data[len(data)-1] != 255 {
		t.Fatalf("no option END: % x", data)
	}
	data[len(data)-1] = 0
	return data[:len(data)-1]
}

// overloaded is a request with its options in the fields file and sname, as option 52 says.
func overloaded(t testing.TB, fields byte, file, sname []byte) []byte {
	t.Helper()
	data := packetOf(t, dhcpv4.MessageTypeNone, mac1, nil, map[byte]any{52: []byte{fields}})
	copy(data[file4:cookie4], file)
	copy(data[sname4:file4], sname)
	return data
}

// infiniBandID is the client identifier of an InfiniBand card: type, IAID, a DUID of its vendor's
// that ends in the port's GUID.
var infiniBandID = []byte{255, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0xc9, 0, 0x7c, 0xfe, 0x90, 0x03, 0x00, 0xae, 0x2f, 0x10}

func infiniBand(t testing.TB, id []byte) []byte {
	t.Helper()
	options := map[byte]any{}
	if id != nil {
		options[61] = id
	}
	return packetOf(t, dhcpv4.MessageTypeDiscover, mac1, func(p *dhcpv4.DHCPv4) { p.HWType, p.ClientHWAddr = 32, nil }, options)
}

func TestPacketsThatOtherServersTake(t *testing.T) {
	request := []byte{53, 1, 3, 50, 4, 192, 0, 2, 10}
	ack := said{Outcome: "ack", Type: "ACK", You: "192.0.2.10", Lease: "192.0.2.10"}
	for name, tc := range map[string]struct {
		data []byte
		want said
	}{
		"without an end of the options": {
			withoutEnd(t, packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, nil)), said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10"},
		},
		"without an end, with zeros": {
			append(withoutEnd(t, packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, nil)), make([]byte, 40)...),
			said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10"},
		},
		"cut off in an option":              {withoutEnd(t, packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, nil))[:242], said{Drop: "malformed"}},
		"cut off before the options":        {make([]byte, 200), said{Drop: "malformed"}},
		"options in file":                   {overloaded(t, 1, append(request, 255), nil), ack},
		"options in sname":                  {overloaded(t, 2, nil, append(request, 255)), ack},
		"options in both, without an end":   {overloaded(t, 3, request[:3], request[3:]), ack},
		"one option in two parts":           {overloaded(t, 3, append(request[:3:3], 50, 2, 192, 0), []byte{50, 2, 2, 10, 255}), ack},
		"options that file only seems to":   {overloaded(t, 2, append(request, 255), []byte{255}), said{Drop: "bootp"}},
		"an option that leaves its field":   {overloaded(t, 2, nil, append(bytes.Repeat([]byte{0}, 62), 53, 9)), said{Drop: "malformed"}},
		"a type that is said twice":         {overloaded(t, 3, request, request), said{Drop: "bootp"}},
		"an overload that is none":          {overloaded(t, 4, request, request), said{Drop: "bootp"}},
		"an InfiniBand card":                {infiniBand(t, infiniBandID), said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10"}},
		"an InfiniBand card without a name": {infiniBand(t, nil), said{Drop: "hardware"}},
	} {
		t.Run(name, func(t *testing.T) {
			buffer := tc.data[:cap(tc.data)]
			before := bytes.Clone(buffer)
			got, _ := hear(t, testServer(t, Options{}), tc.data, anyone, port4Server)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !bytes.Equal(before, buffer) {
				t.Error("the packet was changed, which is its reader's")
			}
		})
	}
}

// A relay looks for its option among the options alone, so what a client has of it elsewhere
// is the client's word.
func TestNoClientSpeaksForItsRelay(t *testing.T) {
	relays := []byte{1, 4, 'p', 'o', 'r', 't'}
	for name, tc := range map[string]struct{ has, want []byte }{
		"beside what the relay says":    {relays, relays},
		"where the relay says nothing":  {nil, nil},
		"beside an option that is long": {bytes.Repeat(relays, 20), bytes.Repeat(relays, 20)},
	} {
		t.Run(name, func(t *testing.T) {
			options := map[byte]any{52: []byte{2}}
			if tc.has != nil {
				options[82] = tc.has
			}
			data := packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, options)
			copy(data[sname4:file4], []byte{82, 6, 5, 4, 198, 51, 100, 0, 255})
			p := must.Get(parse4(data))(t)
			if got := p.Options.Get(dhcpv4.OptionRelayAgentInformation); !bytes.Equal(got, tc.want) {
				t.Errorf("the relay is said to say % x, want % x", got, tc.want)
			}
		})
	}
}

func TestInfiniBandIdentifiers(t *testing.T) {
	for name, tc := range map[string]struct {
		id   []byte
		want string
	}{
		"a GUID made of a MAC address as its vendor does": {infiniBandID, "7c:fe:90:ae:2f:10"},
		"a GUID made of a MAC address as EUI-64 is": {
			append([]byte{0}, 0x7c, 0xfe, 0x90, 0xff, 0xfe, 0xae, 0x2f, 0x10), "7c:fe:90:ae:2f:10",
		},
		"a GUID of a group address is none": {
			append([]byte{0}, 0x7d, 0xfe, 0x90, 0xff, 0xfe, 0xae, 0x2f, 0x10), "3e:1a:f2:c8:e3:b6",
		},
		"another identifier": {[]byte{0, 'a'}, "02:2a:69:79:e6:da"},
	} {
		if got := infiniBandMAC(tc.id); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// What a card says of itself is no evidence, and nobody can send it a frame.
func TestAnInfiniBandCardsLeaseGivesNoRights(t *testing.T) {
	s := testServer(t, Options{})
	n := service4{s.networks[0]}
	p, drop := n.accept4(infiniBand(t, infiniBandID), netip.MustParseAddrPort(anyone), port4Server, t0)
	if drop != drop4None {
		t.Fatalf("dropped: %s", drop)
	}
	a := n.decide4(p, t0)
	if to := n.destination4(p, a); to != (destination4{address: everybody4}) {
		t.Errorf("the answer goes to %+v", to)
	}
	q := n.query4(p, a.reply.yiaddr, t0)
	if l, state := s.table.Renewal(q); state != lease.RenewalFree || !l.Unproven || l.MAC != "7c:fe:90:ae:2f:10" {
		t.Errorf("its lease is %+v (%v)", l, state)
	}
}

func TestRapidCommit4(t *testing.T) {
	rapid := func(n *Network) { n.RapidCommit = true }
	for name, tc := range map[string]struct {
		network func(*Network)
		options map[byte]any
		want    said
	}{
		"a client that asks for its lease at once has it": {
			network: rapid, options: map[byte]any{80: []byte{}},
			want: said{Outcome: "ack", Type: "ACK", You: "192.0.2.10", Lease: "192.0.2.10", Options: map[string]string{"80": ""}},
		},
		"a client that does not ask is offered an address": {
			network: rapid, want: said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10", Options: map[string]string{}},
		},
		"where it is not configured it is an offer": {
			network: func(*Network) {}, options: map[byte]any{80: []byte{}},
			want: said{Outcome: "offer", Type: "OFFER", You: "192.0.2.10", Options: map[string]string{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hosts()
			tc.network(&cfg)
			got, _ := hear(t, testServer(t, Options{Networks: []Network{cfg}}), packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, tc.options), anyone, port4Server, 80)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
