package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/bootsvc/dhcp/inuse"
	"ingot/bootsvc/dhcp/lease"
)

// givesFirst returns the addresses that a packet is given where the link is asked first, and for which it was
// asked, in order.
func (l *lab6) givesFirst(others *neighbours6, packet, from string) (given, asked []string) {
	l.Helper()
	l.server.conflicts = newConflicts(others)
	data := l.table(packet)
	x, err := l.hear6(data, netip.MustParseAddrPort(from), l.frame(data, from))
	if err != nil {
		l.Fatal(err)
	}
	d, err := l.decide6(x)
	if err != nil {
		l.Fatal(err)
	}
	if d, err = l.unused6(x, d); err != nil {
		return []string{err.Error()}, others.inOrder()
	}
	for _, ia := range d.ias {
		if a := ia.lease; a.prefix.IsValid() {
			given = append(given, a.prefix.Addr().String())
		}
	}
	return given, others.inOrder()
}

// neighbours6 are neighbours that several are asked for at once.
type neighbours6 struct {
	neighbours
	one chan struct{}
}

func (n *neighbours6) InUse(addr netip.Addr, on inuse.Link) (by string, used bool) {
	n.one <- struct{}{}
	defer func() { <-n.one }()
	return n.neighbours.InUse(addr, on)
}

func (n *neighbours6) inOrder() []string { return slices.Sorted(slices.Values(n.asked)) }

func TestAnAddressThatASilentDeviceUsesIsNotAdvertised6(t *testing.T) {
	const (
		stranger = "02:00:00:00:00:99"
		solicit  = "SOLICIT 000001\n 1 $client" + ia1
		request  = "REQUEST 000001\n 1 $client" + server6 + ia1
		has10    = "\n  5 fd00::10 00000000 00000000"
	)
	no := false
	ten, eleven := netip.MustParseAddr("fd00::10"), netip.MustParseAddr("fd00::11")
	for name, c := range map[string]struct {
		uses     map[netip.Addr]string
		all      string
		reserved string // for mac6
		setUp    func(*lab6)
		change   func(*Network)
		packet   string
		from     string
		want     string
		asked    string
	}{
		"nobody uses it":                           {packet: solicit, want: "fd00::10", asked: "fd00::10 on 2"},
		"somebody uses it":                         {uses: map[netip.Addr]string{ten: stranger}, packet: solicit, want: "fd00::11", asked: "fd00::10 on 2, fd00::11 on 2"},
		"somebody who names no MAC address does":   {uses: map[netip.Addr]string{ten: ""}, packet: at6(solicit, saw6), from: relayed7, want: "fd00::11", asked: "fd00::10 on 2, fd00::11 on 2"},
		"a client behind a relay may be routed to": {packet: relayed6(solicit, "RELAY-FORW 00 fd07::1 fe80::2"+saw6), from: relayed7, change: otherLink6, want: "fd07::10", asked: "fd07::10 on 0"},
		"its own client uses it":                   {uses: map[netip.Addr]string{ten: mac6}, packet: solicit, want: "fd00::10", asked: "fd00::10 on 2"},
		"all are in use":                           {all: "", uses: map[netip.Addr]string{ten: stranger, eleven: stranger}, change: twoLeft6, packet: solicit, want: "", asked: "fd00::10 on 2, fd00::11 on 2"},
		"it is reserved, and in use":               {uses: map[netip.Addr]string{netip.MustParseAddr("fd00::77"): stranger}, reserved: "fd00::77", packet: solicit, want: "fd00::10", asked: "fd00::10 on 2, fd00::77 on 2"},
		"it is reserved, and behind a relay somebody answers": {
			uses: map[netip.Addr]string{netip.MustParseAddr("fd07::77"): ""}, reserved: "fd07::77", change: otherLink6,
			packet: relayed6(solicit, "RELAY-FORW 00 fd07::1 fe80::2"+saw6), from: relayed7, want: "fd07::77", asked: "fd07::77 on 0",
		},
		"the client has it":              {all: stranger, setUp: func(l *lab6) { l.wants(request, onLink6, "fd00::10") }, packet: solicit, want: "fd00::10"},
		"the network is not to be asked": {all: stranger, change: func(n *Network) { n.Probe = &no }, packet: solicit, want: "fd00::10"},
		"a request, too":                 {uses: map[netip.Addr]string{ten: stranger}, packet: request, want: "fd00::11", asked: "fd00::10 on 2, fd00::11 on 2"},
		"who renews uses it itself":      {all: stranger, packet: "RENEW 000001\n 1 $client" + server6 + ia1 + has10, want: "fd00::10"},
		"of two, one is in use": {
			uses: map[netip.Addr]string{ten: stranger}, packet: solicit + ia2,
			want: "fd00::12, fd00::11", asked: "fd00::10 on 2, fd00::11 on 2, fd00::12 on 2",
		},
		"what is derived is this client's": {
			all: stranger, change: func(n *Network) { n.Subnets[0].Ranges, n.Subnets[0].Derive = nil, DeriveOnmetal },
			packet: at6(solicit, saw6), from: relayed7, want: "fd00::2",
		},
		"a prefix is nobody's address": {
			all: stranger, change: func(n *Network) {
				n.Subnets[0].Delegate = lease.Delegation{From: netip.MustParsePrefix("fd00:1::/60"), Bits: 62}
			},
			packet: "SOLICIT 000001\n 1 $client\n 25 00000001 00000000 00000000", want: "fd00:1::",
		},
		"so many are in use that it is tried no longer": {
			uses: map[netip.Addr]string{
				ten: "02:00:00:00:01:00", eleven: "02:00:00:00:01:01", netip.MustParseAddr("fd00::12"): "02:00:00:00:01:02", netip.MustParseAddr("fd00::13"): "02:00:00:00:01:03",
			},
			packet: solicit, want: drop6InUse.Error(), asked: "fd00::10 on 2, fd00::11 on 2, fd00::12 on 2, fd00::13 on 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := plain6()
			if c.change != nil {
				c.change(&cfg)
			}
			l := newLab6(t, cfg)
			if c.reserved != "" {
				l.server.SetReservations([]lease.Reservation{{MAC: mac6, Name: "s1", Address: netip.MustParseAddr(c.reserved)}})
			}
			if c.setUp != nil {
				c.setUp(l)
			}
			if c.from == "" {
				c.from = onLink6
			}
			others := &neighbours6{neighbours{macs: c.uses, all: c.all}, make(chan struct{}, 1)}
			given, asked := l.givesFirst(others, c.packet, c.from)
			if got := strings.Join(given, ", "); got != c.want {
				t.Errorf("given %q, want %q", got, c.want)
			}
			if got := strings.Join(asked, ", "); got != c.asked {
				t.Errorf("asked for %q, want %q", got, c.asked)
			}
			for _, held := range leasesOf(l.server) {
				if held.Declined && held.Expires != start6.Add(10*time.Minute) {
					t.Errorf("%s is set aside until %s", held.Address, held.Expires)
				}
			}
			if c.want != "" && !strings.Contains(c.want, "dropped") && strings.HasPrefix(c.packet, "SOLICIT") {
				if again, asked := l.givesFirst(&neighbours6{neighbours{all: stranger}, make(chan struct{}, 1)}, c.packet, c.from); len(asked) > 0 || !slices.Equal(again, given) {
					t.Errorf("asked again for %v, and given %v", asked, again)
				}
			}
		})
	}
}

// TestWhoIsAskedKeepsNobodyWaiting6: packets are answered while one waits for its link.
func TestWhoIsAskedKeepsNobodyWaiting6(t *testing.T) {
	release := make(chan struct{})
	l := newLab6(t, plain6())
	l.server.conflicts = newConflicts(slow{release})
	l.handle6(t.Context(), l.table("SOLICIT 000001\n 1 $client"+ia1), netip.MustParseAddrPort("[fe80::5054:ff:fe12:1%eth0]:546")) // returns
	if !l.server.table.Unasked(netip.MustParseAddr("fd00::10")) {
		t.Error("the address is not offered, or was not asked for")
	}
	close(release)
	l.server.conflicts.asking.Wait()
	if l.server.table.Unasked(netip.MustParseAddr("fd00::10")) {
		t.Error("the address was not asked for")
	}
}

// otherLink6 has n serve a link behind a relay, too.
func otherLink6(n *Network) {
	n.Subnets = append(n.Subnets, subnet6("fd07::/64", "fd07::10", "fd07::1f"))
}

// twoLeft6 leaves two addresses.
func twoLeft6(n *Network) { n.Subnets[0].Ranges[0].Last = netip.MustParseAddr("fd00::11") }
