package inuse

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"ingot/bootsvc/internal/netnstest"
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
		{"link", "set", "rack", "up"},
		{"address", "add", "192.0.2.9/32", "dev", "far"},
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
		if by, used := p.InUse(netip.MustParseAddr("192.0.2.9"), link); !used || by != "02:00:00:00:00:02" {
			t.Errorf("of a device on the link: %q, %v", by, used)
		}
		start := time.Now()
		if by, used := p.InUse(netip.MustParseAddr("192.0.2.10"), link); used {
			t.Errorf("of nobody: %q", by)
		}
		if took := time.Since(start); took < asks*onLink {
			t.Errorf("it was waited for %s only", took)
		}
		if _, used := p.InUse(netip.MustParseAddr("192.0.2.9"), Link{}); !used {
			t.Error("of a device that answers ICMP: not used")
		}
		if _, used := p.InUse(netip.MustParseAddr("198.51.100.9"), Link{}); used {
			t.Error("where there is no way to: used")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, used := p.InUse(netip.MustParseAddr("192.0.2.9"), link); used {
			t.Error("it asks after its end")
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
	request := echoRequest(nonce)
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
		if got := isEchoReply(tc.message, nonce); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
