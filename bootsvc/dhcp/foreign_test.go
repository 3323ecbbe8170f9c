package dhcp

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/model"
	"ingot/model/must"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func TestLeaseOfAnotherServer(t *testing.T) {
	fetched := discovery()
	fetched.Progress = &model.Progress{Ticket: "t1", ScriptAt: t0}
	for name, tc := range map[string]struct {
		proxy    bool
		firmware string // "" for an operating system
		ticket   model.TicketHolder
		want     string
	}{
		"a machine that boots takes it beside us":   {firmware: "Dell, UEFI", want: "a machine that boots takes its address"},
		"an operating system takes it":              {},
		"firmware takes it where we are a proxy":    {proxy: true, firmware: "Dell, UEFI", ticket: discovery()},
		"iPXE asks repeatedly, and fetches nothing": {proxy: true, firmware: "iPXE, bare user class", ticket: discovery(), want: "iPXE does not fetch its script"},
		"iPXE fetches its script":                   {proxy: true, firmware: "iPXE, bare user class", ticket: fetched},
		"iPXE without a ticket":                     {proxy: true, firmware: "iPXE, bare user class"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hosts()
			if tc.proxy {
				cfg.Mode, cfg.Subnets = ModeProxy, []Subnet{{CIDR: cfg.Subnets[0].CIDR}}
			}
			var log lines
			now, all := t0, tickets{}
			if tc.ticket.Ticket != nil {
				all[uuid] = tc.ticket
			}
			s := testServer(t, Options{
				Networks: []Network{cfg}, Tickets: all, Loaders: loaders(t), Log: slog.New(slog.NewTextHandler(&log, nil)),
				Clock: func() time.Time { return now },
			})
			for range 6 {
				now = now.Add(30 * time.Second)
				options := with(firmwares[tc.firmware].options, 54, addr("192.0.2.9"))
				options[50] = addr("192.0.2.77")
				service4{s.networks[0]}.handle4(packetOf(t, dhcpv4.MessageTypeRequest, mac1, nil, options), netip.MustParseAddrPort(anyone), port4Server)
			}
			got := log.String()
			if tc.want == "" && got != "" || tc.want != "" && (strings.Count(got, tc.want) != 1 || !strings.Contains(got, "msg=\"another DHCP server interferes with booting\" network=hosts server=192.0.2.9 mac="+mac1)) {
				t.Errorf("logged:\n%swant once %q", got, tc.want)
			}
		})
	}
}

// TestForeignServersAreBounded: their addresses can be made up.
func TestForeignServersAreBounded(t *testing.T) {
	var f foreignServers
	n := 0
	for i := range 1000 {
		if f.isNew(foreignServer{"hosts", "m", netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}) {
			n++
		}
	}
	if n != maxForeign || f.isNew(foreignServer{"hosts", "m", addr("10.0.0.0")}) {
		t.Errorf("%d are warned of, want %d", n, maxForeign)
	}
}

// TestOverheardOffers: another server's boot file is noticed on the link, in both modes, and once.
func TestOverheardOffers(t *testing.T) {
	if !insideNamespace(t) {
		return
	}
	plug(t, "srv0", "cli0")
	run(t, "ip", "addr", "add", "192.0.2.9/24", "dev", "cli0")
	for _, mode := range []Mode{ModeServer, ModeProxy} {
		n := hosts()
		if n.Interface, n.Mode = "srv0", mode; mode == ModeProxy {
			n.Subnets = nil
		}
		var log lines
		_, stop := start(t, Options{Networks: []Network{n}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		eventually(t, "it is served", func() bool { return strings.Contains(log.String(), "DHCP answers") })
		other := must.Get(listen("cli0", netip.MustParseAddrPort("192.0.2.9:67")))(t)
		answer := func(server string, kind dhcpv4.MessageType, file string) {
			p := must.Get(dhcpv4.New(dhcpv4.WithMessageType(kind), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.ParseIP(server)))))(t)
			p.OpCode, p.ClientHWAddr, p.BootFileName = dhcpv4.OpcodeBootReply, net.HardwareAddr{2, 0, 0, 0, 0, 1}, file
			must.Do(t, other.Send(p.ToBytes(), nil, everybody4))
		}
		answer("192.0.2.2", dhcpv4.MessageTypeOffer, "own.efi") // our own address
		answer("192.0.2.7", dhcpv4.MessageTypeOffer, "")
		for range 3 {
			answer("192.0.2.9", dhcpv4.MessageTypeOffer, "theirs.efi")
		}
		answer("192.0.2.8", dhcpv4.MessageTypeAck, "last.efi")
		eventually(t, "the last is noticed", func() bool { return strings.Contains(log.String(), "last.efi") })
		stop()
		must.Do(t, other.Close())
		want := fmt.Sprintf(`server=192.0.2.9 mac=%s reason="it offers a boot file" file=theirs.efi`, mac1)
		if got := log.String(); strings.Count(got, want) != 1 || strings.Count(got, "it offers a boot file") != 2 {
			t.Errorf("%s: logged:\n%s", mode, got)
		}
	}
}
