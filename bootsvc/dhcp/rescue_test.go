package dhcp

import (
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// TestTheWayToTheRescueScript asks what to boot as machines without a ticket.
func TestTheWayToTheRescueScript(t *testing.T) {
	strangers := &netboot.Rescue{Known: func() bool { return true }, Named: func(id string) bool { return id == mac2 }}
	everybody := &netboot.Rescue{Known: strangers.Known, Named: strangers.Named, Available: func(s model.ServerName) bool { return s == "s1" }}
	running := discovery()
	running.Ticket.Ended = model.TicketBooted
	for title, tc := range map[string]struct {
		rescue *netboot.Rescue
		known  tickets
		mac    string
		want   string // "" is nothing
	}{
		"a stranger":                              {strangers, nil, mac1, "loader"},
		"a stranger where there is no script":     {nil, nil, mac1, ""},
		"a machine that Git names":                {strangers, nil, mac2, ""},
		"a server without a ticket, no stranger":  {strangers, tickets{mac1: {Server: "s1"}}, mac1, ""},
		"the same, where it is for available":     {everybody, tickets{mac1: {Server: "s1"}}, mac1, "loader"},
		"a server that is not available":          {everybody, tickets{mac1: {Server: "s2", Ticket: running.Ticket}}, mac1, ""},
		"a server with a ticket goes its own way": {everybody, tickets{mac1: discovery()}, mac1, "ticket"},
	} {
		t.Run(title, func(t *testing.T) {
			s := testServer(t, Options{Tickets: tc.known, Loaders: loaders(t), Rescue: tc.rescue})
			for name, fw := range firmwares {
				if fw.kind == netboot.KindNone || fw.kind == netboot.KindProbe || fw.file == "" {
					continue
				}
				p, _ := service4{s.networks[0]}.accept4(packetOf(t, dhcpv4.MessageTypeDiscover, tc.mac, nil, fw.options), netip.MustParseAddrPort(anyone), port4Server, t0)
				a, _, ok := s.networks[0].boot(client4(p), netip.MustParseAddr("192.0.2.2"), t0)
				script := fw.kind == netboot.KindIPXE && a.File == "http://192.0.2.2:8082/ipxe/"
				switch {
				case ok != (tc.want != ""):
					t.Errorf("%s is told %q, %v (%s)", name, a.File, ok, a.Reason)
				case tc.want == "loader" && (a.Ticket != nil || !a.Loader && !script):
					t.Errorf("%s is told %q with ticket %v", name, a.File, a.Ticket)
				case tc.want == "ticket" && a.Ticket == nil:
					t.Errorf("%s is told %q, which is nobody's", name, a.File)
				}
			}
		})
	}
}
