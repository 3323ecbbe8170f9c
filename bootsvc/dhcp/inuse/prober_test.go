package inuse

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/mdlayher/ndp"

	"ingot/bootsvc/internal/netnstest"
	"ingot/model/must"
)

// inNamespace runs a test in a network namespace of its own, in which a device is on the other end
// of the link rack.
func inNamespace(t *testing.T, test func()) {
	t.Helper()
	netnstest.Run(t, [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "rack", "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "far", "address", "02:00:00:00:00:02"},
		{"address", "add", "192.0.2.1/24", "dev", "rack"},
		{"link", "set", "far", "up"},
		{"link", "set", "rack", "addrgenmode", "none"},
		{"link", "set", "rack", "up"},
		{"address", "add", "192.0.2.9/32", "dev", "far"},
		{"address", "add", "fe80::1/64", "dev", "rack", "nodad"},
		{"address", "add", "fd00::1/64", "dev", "rack", "nodad"},
		{"address", "add", "fd00::9/128", "dev", "far", "nodad"},
	}, func(func(...string)) { test() })
}

func TestWhoUsesAnAddress(t *testing.T) {
	inNamespace(t, func() {
		p, err := Open()
		if err != nil {
			t.Error(err)
			return
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		rack, err := net.InterfaceByName("rack")
		if err != nil {
			t.Error(err)
			return
		}
		link := Link{rack.Index, rack.HardwareAddr}
		for name, tc := range map[string]struct {
			addr string
			link Link
			used bool
			by   string
		}{
			"a device on the link":                  {"192.0.2.9", link, true, "02:00:00:00:00:02"},
			"a device on the link, by IPv6":         {"fd00::9", link, true, "02:00:00:00:00:02"},
			"nobody on the link":                    {addr: "192.0.2.10", link: link},
			"nobody on the link, by IPv6":           {addr: "fd00::10", link: link},
			"a device that answers ICMP":            {addr: "192.0.2.9", used: true},
			"a device that answers ICMPv6":          {addr: "fd00::9", used: true},
			"where there is no way to":              {addr: "198.51.100.9"},
			"where there is no way to by IPv6":      {addr: "fd99::9"},
			"on a link that is none":                {addr: "192.0.2.9", link: Link{1 << 20, link.MAC}},
			"on a link that is none, asked by IPv6": {addr: "fd00::9", link: Link{1 << 20, link.MAC}},
		} {
			start := time.Now()
			if by, used := p.InUse(netip.MustParseAddr(tc.addr), tc.link); used != tc.used || by != tc.by {
				t.Errorf("%s: %q, %v, want %q, %v", name, by, used, tc.by, tc.used)
			}
			if took := time.Since(start); tc.link.Index == rack.Index && !tc.used && took < asks*onLink {
				t.Errorf("%s: it was waited for %s only", name, took)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, addr := range []string{"192.0.2.9", "fd00::9"} {
			if _, used := p.InUse(netip.MustParseAddr(addr), link); used {
				t.Errorf("it asks for %s after its end", addr)
			}
		}
	})
}

func TestARPThatSaysNothing(t *testing.T) {
	probe := arpProbe(netip.MustParseAddr("192.0.2.9"), net.HardwareAddr{2, 0, 0, 0, 0, 1})
	if _, _, ok := arpSender(probe); ok {
		t.Error("who asks for an address has it")
	}
	if _, _, ok := arpSender(probe[:27]); ok {
		t.Error("a part of a packet is one")
	}
	reply := append([]byte(nil), probe...)
	copy(reply[14:], []byte{192, 0, 2, 9})
	if mac, addr, ok := arpSender(reply); !ok || mac != "02:00:00:00:00:01" || addr != netip.MustParseAddr("192.0.2.9") {
		t.Errorf("%s %s %v", mac, addr, ok)
	}
}

func TestOnlyAnAnswerToOurOwnEchoCounts(t *testing.T) {
	nonce := [8]byte{0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4}
	request := echoRequest(echoRequest4, nonce)
	sum := uint32(0)
	for i := 0; i < len(request); i += 2 {
		sum += uint32(request[i])<<8 + uint32(request[i+1])
	}
	if sum = sum>>16 + sum&0xffff; sum != 0xffff {
		t.Errorf("the checksum is wrong: %x", sum)
	}
	answer := bytes.Clone(request)
	answer[0] = 0
	for name, tc := range map[string]struct {
		message []byte
		want    bool
	}{
		"the answer": {answer, true}, "a request": {request, false}, "one to somebody else": {append(answer[:15:15], 9), false}, "one that is cut off": {answer[:8], false},
	} {
		if got := isEchoReply(tc.message, echoReply4, nonce); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestAdvertisementsThatSayNothing(t *testing.T) {
	advertise := func(a *ndp.NeighborAdvertisement) []byte {
		t.Helper()
		return must.Get(ndp.MarshalMessage(a))(t)
	}
	addr := netip.MustParseAddr("fd00::9")
	mac := &ndp.LinkLayerAddress{Direction: ndp.Target, Addr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	whole := advertise(&ndp.NeighborAdvertisement{TargetAddress: addr, Options: []ndp.Option{mac}})
	code := bytes.Clone(whole)
	code[1] = 1
	asks := must.Get(solicitation(addr, mac.Addr))(t)
	for name, tc := range map[string]struct {
		message  []byte
		hopLimit int
		mac      string
		want     bool
	}{
		"one that names a MAC address": {whole, 255, "02:00:00:00:00:01", true},
		"one that names none":          {advertise(&ndp.NeighborAdvertisement{TargetAddress: addr}), 255, "", true},
		"one of another link":          {whole, 254, "", false},
		"one with a code":              {code, 255, "", false},
		"one that is cut off":          {whole[:10], 255, "", false},
		"one of a group":               {advertise(&ndp.NeighborAdvertisement{TargetAddress: netip.MustParseAddr("ff02::1")}), 255, "", false},
		"a question":                   {asks, 255, "", false},
		"nothing":                      {nil, 255, "", false},
	} {
		if by, at, ok := advertiser(tc.message, tc.hopLimit); ok != tc.want || by != tc.mac || ok && at != addr {
			t.Errorf("%s: %q, %s, %t", name, by, at, ok)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	nonce := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	solicits := must.Get(solicitation(netip.MustParseAddr("fd00::9"), net.HardwareAddr{2, 0, 0, 0, 0, 1}))(f)
	for _, message := range [][]byte{
		solicits, arpProbe(netip.MustParseAddr("192.0.2.9"), net.HardwareAddr{2, 0, 0, 0, 0, 1}), echoRequest(echoReply4, nonce),
		{136, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 2, 1, 2, 0, 0, 0, 0, 1},
		{136, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 2, 0},
	} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if mac, addr, ok := advertiser(message, ndp.HopLimit); ok && (!addr.Is6() || addr.IsMulticast() || len(mac) > len("02:00:00:00:00:01")) {
			t.Errorf("%x is of %s, %s", message, mac, addr)
		}
		if mac, addr, ok := arpSender(message); ok && (!addr.Is4() || addr.IsUnspecified() || mac == "") {
			t.Errorf("%x is of %s, %s", message, mac, addr)
		}
		_ = isEchoReply(message, echoReply4, nonce)
	})
}
