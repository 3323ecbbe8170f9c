package dhcp

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"ingot/bootsvc/netboot"
	"ingot/model/must"
)

// Packets in tests are written as tables, an option a line:
//
//	SOLICIT 0a0b0c                        a message type and transaction id
//	  1 0003 0001 525400120001            an option's code and its value in hexadecimal
//	  3 00000001 00000000 00000000        what is indented further lies within the option
//	    5 fd00::42 00000000 00000000      addresses may be written as such,
//	  15 "iPXE"                           and texts too, with _ for a blank
//	  16 00000137 +"HTTPClient"           + writes the text's length before it
//	# a comment
//
// RELAY-FORW is followed by hop count, link-address and peer-address.

// names6 are the message types in these tables.
var names6 = map[string]dhcpv6.MessageType{
	"SOLICIT": 1, "ADVERTISE": 2, "REQUEST": 3, "CONFIRM": 4, "RENEW": 5, "REBIND": 6, "REPLY": 7, "RELEASE": 8,
	"DECLINE": 9, "RECONFIGURE": 10, "INFORMATION-REQUEST": 11, "RELAY-FORW": 12, "RELAY-REPL": 13,
}

// packet6Of returns the packet that a table describes.
func packet6Of(t testing.TB, table string) []byte {
	t.Helper()
	var lines []string
	for line := range strings.Lines(table) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " \n"); line != "" {
			lines = append(lines, line)
		}
	}
	b, rest, err := block6(lines)
	if err != nil || len(rest) > 0 {
		t.Fatalf("table of a packet: %v, %d lines left over", err, len(rest))
	}
	return b
}

func indent6(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// block6 returns the bytes of the first line and of what is indented below it.
func block6(lines []string) (b []byte, rest []string, err error) {
	level, words := indent6(lines[0]), strings.Fields(lines[0])
	message, isMessage := names6[words[0]]
	code := 0
	if isMessage {
		b = append(b, byte(message))
	} else if code, err = strconv.Atoi(words[0]); err != nil {
		return nil, nil, err
	}
	for _, word := range words[1:] {
		value, err := value6(word)
		if err != nil {
			return nil, nil, err
		}
		b = append(b, value...)
	}
	for rest = lines[1:]; len(rest) > 0 && indent6(rest[0]) > level; {
		var inner []byte
		if inner, rest, err = block6(rest); err != nil {
			return nil, nil, err
		}
		b = append(b, inner...)
	}
	if !isMessage {
		header := binary.BigEndian.AppendUint16(nil, uint16(code))
		b = append(binary.BigEndian.AppendUint16(header, uint16(len(b))), b...)
	}
	return b, rest, nil
}

func value6(word string) ([]byte, error) {
	if text, ok := strings.CutPrefix(word, "+"); ok {
		text = strings.Trim(text, `"`)
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...), nil
	}
	if strings.HasPrefix(word, `"`) {
		return []byte(strings.ReplaceAll(strings.Trim(word, `"`), "_", " ")), nil
	}
	if a, err := netip.ParseAddr(word); err == nil {
		return a.AsSlice(), nil
	}
	b, err := hex.DecodeString(word)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", word, err)
	}
	return b, nil
}

// golden6 compares got with a file in testdata/v6, or writes it when UPDATE is set.
func golden6(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "v6", name)
	if os.Getenv("UPDATE") != "" {
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestParseMessage6(t *testing.T) {
	const id = "\n 1 0003 0001 525400120001"
	llt := []byte{0, 3, 0, 1, 0x52, 0x54, 0, 0x12, 0, 1}
	server := []byte{0, 4, 1, 2}
	for name, c := range map[string]struct {
		table string
		want  message6
		err   error
	}{
		"a Solicit with all that concerns a server": {
			table: `SOLICIT 0a0b0c
				1 0003 0001 525400120001
				3 00000007 00000e10 00001518
					5 fd00::42 00000000 00000000
				25 00000008 00000000 00000000
					26 00000000 00000000 38 fd00:1::
				6 003b 0017
				6 0018
				14
				61 0010 0007
				62 010310
				15 +"iPXE"
				16 00000137 +"HTTPClient:Arch:00016:UNDI:003016"`,
			want: message6{
				kind: dhcpv6.MessageTypeSolicit, clientID: llt, rapid: true, asked: []dhcpv6.OptionCode{59, 23, 24},
				ias: []ia6{
					{dhcpv6.OptionIANA, 7, []netip.Prefix{netip.MustParsePrefix("fd00::42/128")}},
					{dhcpv6.OptionIAPD, 8, []netip.Prefix{netip.MustParsePrefix("fd00:1::/56")}},
				},
				archs: []netboot.Arch{16, 7}, nic: []byte{1, 3, 16}, userClasses: [][]byte{[]byte("iPXE")},
				vendorClasses: []string{"HTTPClient:Arch:00016:UNDI:003016"},
			},
		},
		"a user class without its length": {
			table: "SOLICIT 0a0b0c" + id + "\n 15 \"iPXE\"",
			want:  message6{kind: dhcpv6.MessageTypeSolicit, clientID: llt, userClasses: [][]byte{[]byte("iPXE")}},
		},
		"an odd option that does not concern us": {
			table: "SOLICIT 0a0b0c" + id + "\n 39 ff\n 56 ff\n 17 00", want: message6{kind: dhcpv6.MessageTypeSolicit, clientID: llt},
		},
		"a Renew names its server": {
			table: "RENEW 0a0b0c" + id + "\n 2 0004 0102", want: message6{kind: dhcpv6.MessageTypeRenew, clientID: llt, serverID: server},
		},
		"an Information-Request needs no client": {
			table: "INFORMATION-REQUEST 0a0b0c\n 6 003b",
			want:  message6{kind: dhcpv6.MessageTypeInformationRequest, asked: []dhcpv6.OptionCode{59}},
		},
		"an Information-Request wants no lease": {table: "INFORMATION-REQUEST 0a0b0c\n 3 00000001 00000000 00000000", err: drop6Conflict},
		"a Solicit without client identifier":   {table: "SOLICIT 0a0b0c", err: drop6Conflict},
		"a Solicit to one server":               {table: "SOLICIT 0a0b0c" + id + "\n 2 0004 0102", err: drop6Conflict},
		"a Request to no server":                {table: "REQUEST 0a0b0c" + id, err: drop6Conflict},
		"a Release without client identifier":   {table: "RELEASE 0a0b0c\n 2 0004 0102", err: drop6Conflict},
		"an Advertise is another server's":      {table: "ADVERTISE 0a0b0c" + id, err: drop6Type},
		"a Reconfigure is another server's":     {table: "RECONFIGURE 0a0b0c" + id, err: drop6Type},
		"a type that nobody knows":              {table: "SOLICIT 0a0b0c", err: drop6Conflict},
		"two client identifiers":                {table: "SOLICIT 0a0b0c" + id + id, err: drop6Malformed},
		"a client identifier of no bytes":       {table: "SOLICIT 0a0b0c\n 1", err: drop6Malformed},
		"a client identifier that is too long":  {table: "SOLICIT 0a0b0c\n 1 " + strings.Repeat("00", 131), err: drop6Malformed},
		"an identity association cut short":     {table: "SOLICIT 0a0b0c" + id + "\n 3 00000001 00000000", err: drop6Malformed},
		"an address cut short": {
			table: "SOLICIT 0a0b0c" + id + "\n 3 00000001 00000000 00000000\n  5 fd00::1 00000000", err: drop6Malformed,
		},
		"a prefix longer than an address": {
			table: "SOLICIT 0a0b0c" + id + "\n 25 00000001 00000000 00000000\n  26 00000000 00000000 81 fd00::", err: drop6Malformed,
		},
		"more identity associations than anybody": {
			table: "SOLICIT 0a0b0c" + id + strings.Repeat("\n 3 00000001 00000000 00000000", maxIAs6+1), err: drop6Malformed,
		},
		"more addresses than anybody": {
			table: "SOLICIT 0a0b0c" + id + "\n 3 00000001 00000000 00000000" + strings.Repeat("\n  5 fd00::1 00000000 00000000", 9),
			err:   drop6Malformed,
		},
		"an identity association within another's": {
			table: "SOLICIT 0a0b0c" + id + "\n 3 00000001 00000000 00000000\n  3 00",
			want:  message6{kind: dhcpv6.MessageTypeSolicit, clientID: llt, ias: []ia6{{kind: dhcpv6.OptionIANA, id: 1}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseMessage6(packet6Of(t, c.table))
			if err != c.err { //nolint:errorlint // the value itself is the label of a metric
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			c.want.xid = dhcpv6.TransactionID{10, 11, 12}
			if diff := cmp.Diff(
				c.want, got, cmp.AllowUnexported(message6{}, ia6{}), cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty(),
			); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// relayed6 wraps the table of a message in those of relays, the innermost first.
func relayed6(message string, relays ...string) string {
	for _, relay := range relays {
		var inner strings.Builder
		for line := range strings.Lines(strings.ReplaceAll(message, "\t", "    ")) {
			inner.WriteString("        " + line)
		}
		message = relay + "\n    9\n" + inner.String()
	}
	return message
}

func TestRelays6Nested(t *testing.T) {
	nest := func(depth int) []byte {
		b := packet6Of(t, "SOLICIT 0a0b0c\n 1 0003 0001 525400120001")
		for i := range depth {
			outer := append([]byte{12, byte(i)}, make([]byte, 32)...)
			outer = append(outer, 0, 9, byte(len(b)>>8), byte(len(b)))
			b = append(outer, b...)
		}
		return b
	}
	for depth, want := range map[int]error{0: nil, 1: nil, 32: nil, 33: drop6Nesting, 500: drop6Nesting} {
		p, err := parsePacket6(nest(depth), netip.MustParseAddr("fe80::1"))
		if err != want || err == nil && len(p.relays) != depth { //nolint:errorlint // the value itself
			t.Errorf("%d relays: found %d, error %v, want %v", depth, len(p.relays), err, want)
		}
	}
}

func TestRelay6Malformed(t *testing.T) {
	for name, table := range map[string]string{
		"no message in it":     "RELAY-FORW 00 fd00:7::1 fe80::1\n 18 00",
		"an empty message":     "RELAY-FORW 00 fd00:7::1 fe80::1\n 9",
		"a header cut short":   "RELAY-FORW 00 fd00:7::1",
		"a relay's own answer": "RELAY-REPL 00 fd00:7::1 fe80::1\n 9 01",
		"half a message":       "RELAY-FORW 00 fd00:7::1 fe80::1\n 9 0102",
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := parsePacket6(packet6Of(t, table), netip.MustParseAddr("fd00::1")); err == nil {
				t.Errorf("taken as %+v", p)
			}
		})
	}
}

func TestWhichCardAsks6(t *testing.T) {
	const (
		none  = "1 0004 00112233445566778899aabbccddeeff"
		ll    = "1 0003 0001 525400120003"
		llt   = "1 0001 0001 2a3b4c5d 525400120004"
		eui64 = "fe80::5054:ff:fe12:5" // of 52:54:00:12:00:05
		other = "fe80::1"
		frame = "52:54:00:12:00:06"
	)
	relay := func(peer, options string) string { return "RELAY-FORW 00 fd00:7::1 " + peer + options }
	saw := func(table, from, frame, mac string) whoAsks6 { return whoAsks6{table, from, frame, card{mac: mac}} }
	says := func(table, from, mac string) whoAsks6 {
		return whoAsks6{table, from, "", card{mac: mac, unproven: true}}
	}
	for name, c := range map[string]whoAsks6{
		"the relay saw it": saw(relayed6("SOLICIT 0a0b0c\n "+ll, relay(eui64, "\n    79 0001 525400120001")), other, frame, "52:54:00:12:00:01"),
		"only the relay next to the client saw it": says(
			relayed6("SOLICIT 0a0b0c\n "+ll, relay(eui64, ""), relay(other, "\n    79 0001 525400120001")), other, "52:54:00:12:00:05"),
		"the relay saw an address of InfiniBand": says(
			relayed6("SOLICIT 0a0b0c\n "+ll, relay(eui64, "\n    79 0020 525400120001")), other, "52:54:00:12:00:05"),
		"the relay saw an address of eight bytes": says(
			relayed6("SOLICIT 0a0b0c\n "+ll, relay(eui64, "\n    79 0001 5254001200010203")), other, "52:54:00:12:00:05"),
		"the relay's frame is not the client's":                 says(relayed6("SOLICIT 0a0b0c\n "+ll, relay(other, "")), other, ""),
		"the frame shows it":                                    saw("SOLICIT 0a0b0c\n "+ll, other, frame, frame),
		"the frame shows it, whatever the address is made of":   saw("SOLICIT 0a0b0c\n "+ll, eui64, frame, frame),
		"its address is made of it, whatever the DUID-LL names": says("SOLICIT 0a0b0c\n "+ll, eui64, "52:54:00:12:00:05"),
		"its address tells it to the relay":                     says(relayed6("SOLICIT 0a0b0c\n "+llt, relay(eui64, "")), other, "52:54:00:12:00:05"),
		"its address tells it, with a zone":                     says("SOLICIT 0a0b0c\n "+none, eui64+"%eth0", "52:54:00:12:00:05"),
		"the relay's address does not":                          says(relayed6("SOLICIT 0a0b0c\n "+none, relay(other, "")), eui64, ""),
		"the MAC address in a DUID-LL does not":                 says("SOLICIT 0a0b0c\n "+ll, other, ""),
		"an Information-Request without DUID":                   says("INFORMATION-REQUEST 0a0b0c", eui64, "52:54:00:12:00:05"),
	} {
		t.Run(name, func(t *testing.T) {
			p := must.Get(parsePacket6(packet6Of(t, c.table), netip.MustParseAddr(c.from)))(t)
			p.believed = p.relays
			got := p.card(c.frame)
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// whoAsks6 is a packet, the address and Ethernet address that it came from, and what asks.
type whoAsks6 struct {
	table, from, frame string
	want               card
}
