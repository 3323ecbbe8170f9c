package dhcp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

func (l *lab6) gives(packet, from string) (all []netip.Addr) {
	l.Helper()
	got, err := l.ask(l.table(packet), from)
	if err != nil {
		l.Fatal(err)
	}
	m, err := got.GetInnerMessage()
	if err != nil {
		l.Fatal(err)
	}
	for _, ia := range m.Options.IANA() {
		for _, a := range ia.Options.Addresses() {
			if ip, ok := netip.AddrFromSlice(a.IPv6Addr); ok && a.ValidLifetime > 0 {
				all = append(all, ip)
			}
		}
	}
	return all
}

func (l *lab6) wants(packet, from string, want ...string) {
	l.Helper()
	var addresses []netip.Addr
	for _, w := range want {
		addresses = append(addresses, netip.MustParseAddr(w))
	}
	if got := l.gives(packet, from); !slices.Equal(got, addresses) {
		l.Errorf("given %v, want %v; to\n%s", got, addresses, packet)
	}
}

func (l *lab6) restart() {
	l.Helper()
	var all []model.Lease
	for _, stored := range l.store.saved {
		all = append(all, stored)
	}
	next := newLab6(l.TB, l.Network)
	next.store.saved = l.store.saved
	next.server.table.Load(all, l.now)
	l.network, l.store = next.network, next.store
}

// behind6 returns a message as a relay that does not say what it saw passes it on from a client's
// address.
func behind6(packet, peer string) string { return relayed6(packet, "RELAY-FORW 00 fd00::1 "+peer) }

const (
	duidEN6   = "\n 1 0002 0000ab11 7e9b5ea5e1d3a3d2" // as systemd-networkd makes them
	duidUUID6 = "\n 1 0004 11112222333344445555666677778888"
	server6   = "\n 2 $server"
	ia1       = "\n 3 00000001 00000000 00000000"
	ia2       = "\n 3 00000002 00000000 00000000"
)

func TestTwoCardsOfOneDUIDHaveAnAddressEach6(t *testing.T) {
	for name, c := range map[string][2]struct{ sender, from, relay string }{
		"on our own link": {{sender: "52:54:00:12:00:01", from: onLink6}, {sender: "52:54:00:12:00:02", from: onLink6}},
		"behind a relay that says what it saw": {
			{from: relayed7, relay: "RELAY-FORW 00 fd00::1 fe80::2\n    79 0001 525400120001"},
			{from: relayed7, relay: "RELAY-FORW 00 fd00::1 fe80::3\n    79 0001 525400120002"},
		},
		"behind a relay, by addresses that are made of theirs": {
			{from: relayed7, relay: "RELAY-FORW 00 fd00::1 fe80::5054:ff:fe12:1"},
			{from: relayed7, relay: "RELAY-FORW 00 fd00::1 fe80::5054:ff:fe12:2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab6(t, plain6())
			for range 2 {
				for i, want := range []string{"fd00::10", "fd00::11"} {
					packet := "REQUEST 000001\n 1 $client" + server6 + ia1
					if c[i].relay != "" {
						packet = relayed6(packet, c[i].relay)
					}
					l.sender = c[i].sender
					l.wants(packet, c[i].from, want)
				}
				l.restart()
			}
		})
	}
}

func TestAClientThatNothingShowsHasALeaseByItsDUID6(t *testing.T) {
	for name, id := range map[string]string{"DUID-EN": duidEN6, "DUID-UUID": duidUUID6, "DUID-LL": "\n 1 $client"} {
		t.Run(name, func(t *testing.T) {
			cfg := plain6()
			cfg.MACDeny = []string{"52:54:00:12"} // whom it names does not matter
			l := newLab6(t, cfg)
			l.server.SetReservations([]lease.Reservation{{MAC: mac6, Name: "s1", Address: netip.MustParseAddr("fd00::77")}})
			asks := behind6("REQUEST 000001"+id+server6+ia1, "fe80::a1b2:c3d4:e5f6:1")
			l.wants(asks, relayed7, "fd00::10")
			stored := l.store.get(netip.MustParseAddr("fd00::10"))
			want := model.Lease{
				Network: "net", Role: model.RoleHost, Address: netip.MustParseAddr("fd00::10"), ClientID: stored.ClientID, IAID: 1, Unproven: true, Arrived: true,
				Since: start6, Renewed: start6, Expires: start6.Add(time.Hour), Relay: model.LeaseRelay{Address: netip.MustParseAddr("fd00::1")},
			}
			if diff := cmp.Diff(want, stored, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("stored lease (-want +got):\n%s", diff)
			}
			if mac, ok := l.server.Holder(want.Address); ok || mac != "" {
				t.Errorf("%q is said to be there", mac)
			}
			l.wants(behind6("REQUEST 000002"+id+server6+ia2, "fe80::a1b2:c3d4:e5f6:2"), relayed7, "fd00::11")
			l.restart()
			l.wants(behind6("RENEW 000003"+id+server6+ia1+"\n  5 fd00::10 00000000 00000000", "fe80::ffff:ffff:ffff:3"), relayed7, "fd00::10")
			l.wants(behind6("SOLICIT 000004"+id+ia1, "fe80::ffff:ffff:ffff:4"), relayed7, "fd00::10")
			l.says(relayed7, behind6("CONFIRM 000005"+id+ia1+"\n  5 fd00::10 00000000 00000000", "fe80::4"),
				relayed6("REPLY 000005"+id+server6+"\n "+success, "RELAY-REPL 00 fd00::1 fe80::4"))
			l.says(relayed7, behind6("CONFIRM 000006"+id+ia1+"\n  5 fd00::11 00000000 00000000", "fe80::4"),
				relayed6("REPLY 000006"+id+server6+"\n "+notOnLink, "RELAY-REPL 00 fd00::1 fe80::4"))
			l.wants(behind6("RELEASE 000007"+id+server6+ia1+"\n  5 fd00::11 00000000 00000000", "fe80::4"), relayed7) // the other's
			l.wants(behind6("RENEW 000008"+id+server6+ia2+"\n  5 fd00::11 00000000 00000000", "fe80::4"), relayed7, "fd00::11")
		})
	}
}

func TestNobodyGetsAReservationByItsOwnWord6(t *testing.T) {
	l := newLab6(t, plain6())
	l.server.SetReservations([]lease.Reservation{{MAC: mac6, Name: "s1", Address: netip.MustParseAddr("fd00::11")}})
	const claims = "fe80::5054:ff:fe12:1" // of mac6
	asks := "REQUEST 000001\n 1 $client" + server6 + ia1 + "\n  5 fd00::11 00000000 00000000"
	l.wants(behind6(asks, claims), relayed7, "fd00::10")
	l.unseen = true
	l.wants(asks, "["+claims+"%eth0]:546", "fd00::10")
	l.unseen, l.sender = false, "52:54:00:66:00:01"
	l.wants(asks, "["+claims+"%eth0]:546", "fd00::12") // fd00::10 is another's
	l.sender = mac6
	l.wants(asks, onLink6, "fd00::11")
	l.wants(behind6("RENEW 000002\n 1 $client"+server6+ia1+"\n  5 fd00::11 00000000 00000000", claims), relayed7) // it is another's
}
