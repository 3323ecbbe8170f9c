package dhcp

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/model"
	"ingot/model/must"
)

// The machine of these tests, its UUID in network order, and its ticket.
const (
	mac6  = "52:54:00:12:00:01"
	uuid6 = "4c4c4544-0011-2233-8044-b5c04f564433"
)

var (
	start6  = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	ticket6 = &model.Ticket{ID: "t1", Server: "s1", UUID: uuid6, Image: model.PinnedImage{
		Repository: "registry.example.com/os", UKI: &model.Layer{Digest: "sha256:" + strings.Repeat("ab", 32)},
	}}
)

// tickets6 are tickets by UUID or MAC address.
type tickets6 map[string]*model.Ticket

func (o tickets6) Find(id string) (model.TicketHolder, bool) {
	t, ok := o[id]
	return model.TicketHolder{Ticket: t}, ok
}

// store6 is a store that can be away, or slow.
type store6 struct {
	mu     sync.Mutex
	saved  map[netip.Prefix]model.Lease
	away   error
	saving chan struct{} // nil, or what a call waits for
}

func (s *store6) Leases(context.Context) ([]model.Lease, error) { return nil, nil }

func (s *store6) SaveLeases(ctx context.Context, leases []model.Lease) error {
	if s.saving != nil {
		select {
		case <-s.saving:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return s.away
	}
	for _, l := range leases {
		s.saved[prefixOf(l)] = l
	}
	return nil
}

func (s *store6) get(a netip.Addr) model.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved[netip.PrefixFrom(a, 128)]
}

func (s *store6) setAway(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

// lab6 is a Server of one network whose interface needs no sockets.
type lab6 struct {
	testing.TB
	service6
	store *store6
	now   time.Time
	noted []string
	// sender is the Ethernet address that packets come from, see frame; unseen means that there is none.
	sender string
	unseen bool
}

// subnet6 returns a subnet with all that clients can be told.
func subnet6(cidr, first, last string) Subnet {
	return Subnet{
		CIDR: netip.MustParsePrefix(cidr), Ranges: []lease.Range{lease.Range{First: netip.MustParseAddr(first), Last: netip.MustParseAddr(last)}},
		DNS: []netip.Addr{netip.MustParseAddr("fd00::53")}, NTP: []netip.Addr{netip.MustParseAddr("fd00::123")},
		Domain: "lab.example.com", LeaseTime: time.Hour,
	}
}

// plain6 is a network of one subnet.
func plain6() Network {
	return Network{Name: "net", Interface: "eth0", Role: model.RoleHost, Subnets: []Subnet{subnet6("fd00::/64", "fd00::10", "fd00::1f")}}
}

func newLab6(t testing.TB, cfg Network) *lab6 {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"ipxe.efi", "snp-arm64.efi"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("loader"), 0o600))
	}
	lab := &lab6{TB: t, store: &store6{saved: make(map[netip.Prefix]model.Lease)}, now: start6}
	s := must.Get(New(Options{
		Networks: []Network{cfg}, Store: lab.store, Loaders: netboot.OpenLoaders([]string{dir}),
		Tickets: tickets6{uuid6: ticket6},
		Site: func(_ string, local netip.Addr) netboot.Site {
			return netboot.Site{HTTP: "http://[" + local.String() + "]:8082", TFTP: local}
		},
		Note: func(told netboot.Answer, client netip.Addr) {
			lab.noted = append(lab.noted, fmt.Sprint(told.Ticket.ID, " ", told.Arch, " ", client))
		},
		Clock: func() time.Time { return lab.now },
	}))(t)
	lab.service6 = service6{s.networks[0]}
	lab.sockets.current.Store(&link{
		name: "eth0", index: 2, mac: net.HardwareAddr{2, 0, 0, 0, 0, 1},
		v6: []netip.Prefix{netip.MustParsePrefix("fe80::1/64"), netip.MustParsePrefix("fd00::1/64")},
	})
	s.learnOwn()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.committer.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return lab
}

// table returns a table as it is written in tests, with what a test cannot know.
func (l *lab6) table(s string) []byte {
	l.Helper()
	s = strings.ReplaceAll(s, "$server", hex.EncodeToString(l.duid6()))
	return packet6Of(l, strings.ReplaceAll(s, "$client", "0003 0001 525400120001"))
}

// frame returns the Ethernet address that a packet comes from: that of a machine with one network
// interface, unless the test says which.
func (l *lab6) frame(packet []byte, from string) string {
	if l.unseen || l.sender != "" {
		return l.sender
	}
	p, _ := parsePacket6(packet, netip.MustParseAddrPort(from).Addr())
	if mac := duidMAC(p.clientID); mac != "" {
		return mac
	}
	return eui64MAC(p.peer)
}

// ask sends a packet as a client on the link, and returns the answer, or why
// there was none.
func (l *lab6) ask(packet []byte, from string) (dhcpv6.DHCPv6, error) {
	l.Helper()
	x, err := l.hear6(packet, netip.MustParseAddrPort(from), l.frame(packet, from))
	if err != nil {
		return nil, err
	}
	d, err := l.decide6(x)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	commitAll6(l.server.committer, d.leases, func(err error) { done <- err })
	select {
	case err = <-done:
	case <-time.After(10 * time.Second):
		l.Fatal("leases are not stored after 10 s")
	}
	l.answer6(l.Context(), x, d, netip.MustParseAddrPort(from), err)
	answer, malformed := dhcpv6.FromBytes(x.append(nil, d))
	if malformed != nil {
		l.Fatalf("the answer %x cannot be read: %v", x.append(nil, d), malformed)
	}
	return answer, err
}

// Where packets come from.
const (
	onLink6  = "[fe80::2%eth0]:546"
	relayed7 = "[fd00:9::2]:547"
)

// says sends a packet and compares the answer; want "" is silence.
func (l *lab6) says(from, packet, want string) {
	l.Helper()
	got, err := l.ask(l.table(packet), from)
	switch {
	case err != nil && want != "":
		l.Errorf("no answer: %v; to\n%s\nwant\n%s", err, packet, want)
	case err == nil && want == "":
		l.Errorf("answered %s; want silence", got.Summary())
	case err == nil && !bytes.Equal(got.ToBytes(), l.table(want)):
		parsed, e := dhcpv6.FromBytes(l.table(want))
		if e != nil {
			l.Fatal(e)
		}
		l.Errorf("answer (-want +got):\n%s", cmp.Diff(parsed.Summary(), got.Summary()))
	}
}

// leaseOf6 asks for an address until it has one, and returns it.
func (l *lab6) lease(mac string) netip.Addr {
	l.Helper()
	id := "1 0003 0001 " + strings.ReplaceAll(mac, ":", "")
	got, err := l.ask(l.table("REQUEST 0a0b0c\n "+id+"\n 2 $server\n 3 00000001 00000000 00000000"), onLink6)
	if err != nil {
		l.Fatal(err)
	}
	a := got.(*dhcpv6.Message).Options.OneIANA().Options.OneAddress()
	if a == nil {
		return netip.Addr{}
	}
	ip, _ := netip.AddrFromSlice(a.IPv6Addr)
	return ip
}

const (
	// An IA_NA without lease, and with the first address of the range.
	na6    = "\n 3 00000007 00000000 00000000"
	naHas6 = na6 + "\n  5 fd00::10 00000000 00000000"
	// The same as it is answered.
	given = "\n 3 00000007 00000708 00000b40\n  5 fd00::10 00000e10 00000e10"
	ids   = "\n 1 $client\n 2 $server"

	idsOVMF = "\n 1 " + ovmfDUID6 + "\n 2 $server"

	noAddrs   = "13 0002 \"no_address\""
	noBinding = "13 0003 \"no_lease\""
	notOnLink = "13 0004 \"not_an_address_of_this_link\""
	noPrefix  = "13 0006 \"no_prefix\""
	success   = "13 0000"
)

// step6 is a packet and its answer.
type step6 struct{ from, packet, want string }

// firmwareTwice is how OVMF boots by PXE: of two parts of it each asks for an address,
// and the first gives its own back when the second has one, from which it goes on to
// ask by TFTP. Meanwhile another machine asks.
var firmwareTwice = []step6{
	{
		from: ownLL6, packet: "SOLICIT 72a884\n 1 " + ovmfDUID6 + "\n 8 0000\n 3 de37d70a ffffffff ffffffff\n 6 0017",
		want: "ADVERTISE 72a884" + idsOVMF + "\n 3 de37d70a 00000708 00000b40\n  5 fd00::10 00000e10 00000e10\n 23 fd00::53",
	},
	{
		from: ownLL6,
		packet: "REQUEST 73a884\n 1 " + ovmfDUID6 +
			"\n 8 0000\n 2 $server\n 3 de37d70a 00000708 00000b40\n  5 fd00::10 00000e10 00000e10\n 6 0017",
		want: "REPLY 73a884" + idsOVMF + "\n 3 de37d70a 00000708 00000b40\n  5 fd00::10 00000e10 00000e10\n 23 fd00::53",
	},
	{
		from: ownLL6, packet: "SOLICIT 74a884\n 1 " + ovmfDUID6 + "\n 8 0000\n 3 e5502d9e ffffffff ffffffff",
		want: "ADVERTISE 74a884" + idsOVMF + "\n 3 e5502d9e 00000708 00000b40\n  5 fd00::10 00000e10 00000e10",
	},
	{
		from:   ownLL6,
		packet: "REQUEST 75a884\n 1 " + ovmfDUID6 + "\n 8 0000\n 2 $server\n 3 e5502d9e 00000708 00000b40\n  5 fd00::10 00000e10 00000e10",
		want:   "REPLY 75a884" + idsOVMF + "\n 3 e5502d9e 00000708 00000b40\n  5 fd00::10 00000e10 00000e10",
	},
	{
		from: ownLL6, packet: "RELEASE 76a884" + idsOVMF + "\n 8 0000\n 3 de37d70a ffffffff ffffffff\n  5 fd00::10 00000e10 00000e10",
		want: "REPLY 76a884" + idsOVMF + "\n " + success,
	},
	{
		from: onLink6, packet: "SOLICIT 000006\n 1 0003 0001 525400120099" + naHas6,
		want: "ADVERTISE 000006\n 1 0003 0001 525400120099\n 2 $server\n 3 00000007 00000708 00000b40\n  5 fd00::11 00000e10 00000e10",
	},
}

func TestExchange6(t *testing.T) {
	sarr := []step6{
		{onLink6, "SOLICIT 000001\n 1 $client" + na6, "ADVERTISE 000001" + ids + given},
		{onLink6, "REQUEST 000002" + ids + naHas6, "REPLY 000002" + ids + given},
	}
	delegating := func(n *Network) {
		n.Subnets[0].Delegate = lease.Delegation{From: netip.MustParsePrefix("fd00:1::/60"), Bits: 62}
	}
	for name, c := range map[string]struct {
		change func(*Network)
		setUp  func(*lab6)
		steps  []step6
	}{
		"four messages make a lease": {steps: sarr},
		"two messages make a lease, for who asks": {steps: []step6{
			{onLink6, "SOLICIT 000001\n 1 $client\n 14" + na6, "REPLY 000001" + ids + "\n 14" + given},
		}},
		"a wish is heeded": {steps: []step6{
			{
				from: onLink6, packet: "SOLICIT 000001\n 1 $client" + na6 + "\n  5 fd00::15 00000000 00000000",
				want: "ADVERTISE 000001" + ids + "\n 3 00000007 00000708 00000b40\n  5 fd00::15 00000e10 00000e10",
			},
		}},
		"a wish for an address of elsewhere is not": {steps: []step6{
			{onLink6, "SOLICIT 000001\n 1 $client" + na6 + "\n  5 fd77::15 00000000 00000000", "ADVERTISE 000001" + ids + given},
		}},
		"a Request for an address of elsewhere is told": {steps: []step6{
			{
				from: onLink6, packet: "REQUEST 000001" + ids + na6 + "\n  5 fd77::15 00000000 00000000",
				want: "REPLY 000001" + ids + "\n 3 00000007 00000000 00000000\n  " + notOnLink,
			},
		}},
		"an address for each association of one message": {steps: []step6{
			{
				from: onLink6, packet: "REQUEST 000001" + ids + na6 + "\n 3 00000008 00000000 00000000",
				want: "REPLY 000001" + ids + given + "\n 3 00000008 00000708 00000b40\n  5 fd00::11 00000e10 00000e10",
			},
			// in whatever order
			{
				from: onLink6, packet: "REQUEST 000002" + ids + "\n 3 00000008 00000000 00000000" + na6,
				want: "REPLY 000002" + ids + "\n 3 00000008 00000708 00000b40\n  5 fd00::11 00000e10 00000e10" + given,
			},
			// and renewed by itself
			{
				from: onLink6, packet: "RENEW 000003" + ids + "\n 3 00000008 00000000 00000000\n  5 fd00::11 00000000 00000000",
				want: "REPLY 000003" + ids + "\n 3 00000008 00000708 00000b40\n  5 fd00::11 00000e10 00000e10",
			},
			// what is asked for by name is meant, whatever the client is called now
			{
				from: onLink6, packet: "SOLICIT 000006\n 1 0001 0001 2a3b4c5d 525400120001\n 3 00000009 00000000 00000000\n  5 fd00::11 00000000 00000000",
				want: "ADVERTISE 000006\n 1 0001 0001 2a3b4c5d 525400120001\n 2 $server\n 3 00000009 00000708 00000b40\n  5 fd00::11 00000e10 00000e10",
			},
			{
				from: onLink6, packet: "RELEASE 000004" + ids + "\n 3 00000008 00000000 00000000\n  5 fd00::11 00000000 00000000",
				want: "REPLY 000004" + ids + "\n " + success,
			},
			{onLink6, "RENEW 000005" + ids + naHas6, "REPLY 000005" + ids + given},
		}},
		"the association that has the address keeps it": {steps: append(sarr[:2:2], step6{
			onLink6, "RENEW 000003" + ids + "\n 3 00000001 00000000 00000000" + naHas6,
			"REPLY 000003" + ids + "\n 3 00000001 00000708 00000b40\n  5 fd00::11 00000e10 00000e10" + given,
		})},
		"temporary addresses are not given": {steps: []step6{
			{onLink6, "SOLICIT 000001\n 1 $client\n 4 00000007", "ADVERTISE 000001" + ids + "\n 4 00000007\n  " + noAddrs},
		}},
		"no address is left": {
			change: func(n *Network) { n.Subnets[0].Ranges[0].Last = n.Subnets[0].Ranges[0].First },
			setUp:  func(l *lab6) { l.lease("52:54:00:12:00:99") },
			steps: []step6{
				{onLink6, "SOLICIT 000001\n 1 $client" + na6, "ADVERTISE 000001" + ids + na6 + "\n  " + noAddrs},
				{onLink6, "SOLICIT 000001\n 1 $client\n 14" + na6, "ADVERTISE 000001" + ids + na6 + "\n  " + noAddrs},
				{onLink6, "REQUEST 000002" + ids + na6, "REPLY 000002" + ids + na6 + "\n  " + noAddrs},
			},
		},
		"an address is reserved": {
			setUp: func(l *lab6) {
				l.server.SetReservations([]lease.Reservation{{MAC: mac6, Name: "s1", Address: netip.MustParseAddr("fd00::77")}})
			},
			steps: []step6{
				{
					from: onLink6, packet: "REQUEST 000001" + ids + na6,
					want: "REPLY 000001" + ids + "\n 3 00000007 00000708 00000b40\n  5 fd00::77 00000e10 00000e10",
				},
			},
		},
		"renewing": {steps: append(sarr[:2:2],
			step6{onLink6, "RENEW 000003" + ids + naHas6, "REPLY 000003" + ids + given},
			step6{onLink6, "REBIND 000004\n 1 $client" + naHas6, "REPLY 000004" + ids + given},
		)},
		"renewing what a lost store forgot": {steps: []step6{
			{onLink6, "RENEW 000003" + ids + naHas6, "REPLY 000003" + ids + given},
		}},
		"renewing without an address asks for one": {steps: []step6{
			{onLink6, "RENEW 000003" + ids + na6, "REPLY 000003" + ids + given},
		}},
		"renewing an address of somebody else": {
			setUp: func(l *lab6) { l.lease("52:54:00:12:00:99") },
			steps: []step6{
				{onLink6, "RENEW 000003" + ids + naHas6, "REPLY 000003" + ids + na6 + "\n  " + noBinding},
				{onLink6, "REBIND 000003\n 1 $client" + naHas6, "REPLY 000003" + ids + na6 + "\n  " + noBinding},
			},
		},
		"renewing an address that we do not give": {steps: []step6{
			{onLink6, "RENEW 000003" + ids + na6 + "\n  5 fd00::99 00000000 00000000", "REPLY 000003" + ids + na6 + "\n  " + noBinding},
			{onLink6, "REBIND 000003\n 1 $client" + na6 + "\n  5 fd00::99 00000000 00000000", ""}, // another server may
		}},
		"renewing an address that we do not give and one of elsewhere": {steps: []step6{
			{
				from: onLink6, packet: "RENEW 000003" + ids + na6 + "\n  5 fd00::99 00000000 00000000\n  5 fd77::99 00000000 00000000",
				want: "REPLY 000003" + ids + na6 + "\n  " + noBinding,
			},
		}},
		"renewing an address of a link that was left": {steps: []step6{
			{
				from: onLink6, packet: "RENEW 000003" + ids + na6 + "\n  5 fd77::99 00000000 00000000",
				want: "REPLY 000003" + ids + given + "\n  5 fd77::99 00000000 00000000",
			},
		}},
		"renewing another than its own address": {steps: append(sarr[:2:2],
			step6{
				from: onLink6, packet: "RENEW 000003" + ids + na6 + "\n  5 fd00::15 00000000 00000000",
				want: "REPLY 000003" + ids + given + "\n  5 fd00::15 00000000 00000000",
			},
		)},
		"renewing two addresses of which one is its own": {steps: append(sarr[:2:2],
			step6{
				from: onLink6, packet: "RENEW 000003" + ids + na6 + "\n  5 fd00::15 00000000 00000000\n  5 fd00::10 00000000 00000000",
				want: "REPLY 000003" + ids + given + "\n  5 fd00::15 00000000 00000000",
			},
		)},
		"confirming": {steps: append(sarr[:2:2],
			step6{
				from: onLink6, packet: "CONFIRM 000003\n 1 $client" + naHas6,
				want: "REPLY 000003" + ids + "\n " + success,
			},
			step6{
				from: onLink6, packet: "CONFIRM 000004\n 1 $client" + na6 + "\n  5 fd77::10 00000000 00000000",
				want: "REPLY 000004" + ids + "\n " + notOnLink,
			},
			step6{from: onLink6, packet: "CONFIRM 000005\n 1 $client" + na6, want: ""},
			// about a prefix there is nothing to confirm
			step6{
				from: onLink6, packet: "CONFIRM 000007\n 1 $client\n 25 00000008 00000000 00000000\n  26 00000e10 00000e10 3e fd00:1::",
				want: "",
			},
			step6{
				from: onLink6, packet: "CONFIRM 000008\n 1 $client" + naHas6 + "\n 25 00000008 00000000 00000000\n  26 00000e10 00000e10 3e fd00:1::",
				want: "REPLY 000008" + ids + "\n " + success,
			},
			step6{
				from: onLink6, packet: "CONFIRM 000006\n 1 0003 0001 525400120099" + naHas6,
				want: "REPLY 000006\n 1 0003 0001 525400120099\n 2 $server\n " + notOnLink,
			},
		)},
		"releasing": {steps: append(sarr[:2:2],
			step6{onLink6, "RELEASE 000003" + ids + naHas6, "REPLY 000003" + ids + "\n " + success},
			step6{onLink6, "RELEASE 000004" + ids + naHas6, "REPLY 000004" + ids + "\n " + success + na6 + "\n  " + noBinding},
		)},
		"firmware asks twice and gives back once": {steps: firmwareTwice[:6]},
		"firmware gives back twice, and iPXE has its address": {steps: append(firmwareTwice[:6:6],
			step6{
				from: ownLL6, packet: "RELEASE 77a884" + idsOVMF + "\n 3 e5502d9e ffffffff ffffffff\n  5 fd00::10 00000e10 00000e10",
				want: "REPLY 77a884" + idsOVMF + "\n " + success,
			},
			step6{
				from: ownLL6, packet: "SOLICIT b59275\n 1 " + uuidDUID6 + "\n 3 0fcfbe91 00000000 00000000",
				want: "ADVERTISE b59275\n 1 " + uuidDUID6 + "\n 2 $server\n 3 0fcfbe91 00000708 00000b40\n  5 fd00::10 00000e10 00000e10",
			},
		)},
		"firmware gives back what iPXE goes on with": {steps: append(firmwareTwice[:6:6],
			step6{
				from: ownLL6, packet: "REQUEST b59275\n 1 " + uuidDUID6 + "\n 2 $server\n 3 0fcfbe91 00000000 00000000",
				want: "REPLY b59275\n 1 " + uuidDUID6 + "\n 2 $server\n 3 0fcfbe91 00000708 00000b40\n  5 fd00::10 00000e10 00000e10",
			},
			step6{
				from: ownLL6, packet: "RELEASE 77a884" + idsOVMF + "\n 3 e5502d9e ffffffff ffffffff\n  5 fd00::10 00000e10 00000e10",
				want: "REPLY 77a884" + idsOVMF + "\n " + success + "\n 3 e5502d9e 00000000 00000000\n  " + noBinding,
			},
			step6{
				from: onLink6, packet: "CONFIRM 000007\n 1 0003 0001 525400120099" + naHas6,
				want: "REPLY 000007\n 1 0003 0001 525400120099\n 2 $server\n " + notOnLink,
			}, // it is not this machine's
		)},
		"releasing by both associations at once": {steps: append(firmwareTwice[:4:4],
			step6{
				from: ownLL6,
				packet: "RELEASE 76a884" + idsOVMF +
					"\n 3 de37d70a ffffffff ffffffff\n  5 fd00::10 00000e10 00000e10\n 3 e5502d9e ffffffff ffffffff\n" +
					"  5 fd00::10 00000e10 00000e10",
				want: "REPLY 76a884" + idsOVMF + "\n " + success,
			},
			step6{
				from: onLink6, packet: "SOLICIT 000008\n 1 0003 0001 525400120099" + naHas6,
				want: "ADVERTISE 000008\n 1 0003 0001 525400120099\n 2 $server" + given,
			},
		)},
		"releasing an address of somebody else": {
			setUp: func(l *lab6) { l.lease("52:54:00:12:00:99") },
			steps: []step6{
				{
					from: onLink6, packet: "RELEASE 000003" + ids + naHas6,
					want: "REPLY 000003" + ids + "\n " + success + na6 + "\n  " + noBinding,
				},
				{
					from: onLink6, packet: "CONFIRM 000004\n 1 0003 0001 525400120099" + naHas6,
					want: "REPLY 000004\n 1 0003 0001 525400120099\n 2 $server\n " + success,
				},
			},
		},
		"declining": {steps: append(sarr[:2:2],
			step6{onLink6, "DECLINE 000003" + ids + naHas6, "REPLY 000003" + ids + "\n " + success},
			step6{
				from: onLink6, packet: "SOLICIT 000004\n 1 $client" + na6,
				want: "ADVERTISE 000004" + ids + "\n 3 00000007 00000708 00000b40\n  5 fd00::11 00000e10 00000e10",
			},
			step6{onLink6, "DECLINE 000005" + ids + naHas6, "REPLY 000005" + ids + "\n " + success + na6 + "\n  " + noBinding},
		)},
		"asking for information only": {steps: []step6{
			{
				from: onLink6, packet: "INFORMATION-REQUEST 000001\n 1 $client\n 6 0017 0018 0017 001f 0038 0007",
				want: "REPLY 000001" + ids + "\n 23 fd00::53\n 24 036c6162 076578616d706c65 03636f6d 00\n 31 fd00::123\n 56\n  1 fd00::123",
			},
			{"[fe80::5054:ff:fe12:1%eth0]:546", "INFORMATION-REQUEST 000002", "REPLY 000002\n 2 $server"},
			{onLink6, "INFORMATION-REQUEST 000003\n 2 $server", ""}, // there is no telling who asks
		}},
		"what is told is told with a lease too": {steps: []step6{
			{onLink6, "REQUEST 000001" + ids + na6 + "\n 6 0017", "REPLY 000001" + ids + given + "\n 23 fd00::53"},
		}},
		"delegating a prefix": {change: delegating, steps: []step6{
			{
				from: onLink6, packet: "SOLICIT 000001\n 1 $client\n 25 00000009 00000000 00000000\n  26 00000000 00000000 38 ::",
				want: "ADVERTISE 000001" + ids + "\n 25 00000009 00000708 00000b40\n  26 00000e10 00000e10 3e fd00:1::",
			},
			{
				from:   onLink6,
				packet: "REQUEST 000002" + ids + na6 + "\n 25 00000009 00000000 00000000\n  26 00000000 00000000 3e fd00:1::",
				want:   "REPLY 000002" + ids + given + "\n 25 00000009 00000708 00000b40\n  26 00000e10 00000e10 3e fd00:1::",
			},
			{
				from: onLink6, packet: "RENEW 000003" + ids + "\n 25 00000009 00000000 00000000\n  26 00000000 00000000 3e fd00:1::",
				want: "REPLY 000003" + ids + "\n 25 00000009 00000708 00000b40\n  26 00000e10 00000e10 3e fd00:1::",
			},
			{
				from: onLink6, packet: "RENEW 000004" + ids + "\n 25 00000009 00000000 00000000\n  26 00000000 00000000 38 fd00:1::",
				want: "REPLY 000004" + ids +
					"\n 25 00000009 00000708 00000b40\n  26 00000e10 00000e10 3e fd00:1::\n  26 00000000 00000000 38 fd00:1::",
			},
			{
				from: onLink6, packet: "SOLICIT 000005\n 1 0003 0001 525400120099\n 25 00000001 00000000 00000000",
				want: "ADVERTISE 000005\n 1 0003 0001 525400120099\n 2 $server\n 25 00000001 00000708 00000b40\n" +
					"  26 00000e10 00000e10 3e fd00:1:0:4::",
			},
			{
				from: onLink6, packet: "RELEASE 000006" + ids + "\n 25 00000009 00000000 00000000\n  26 00000000 00000000 3e fd00:1::",
				want: "REPLY 000006" + ids + "\n " + success,
			},
			{
				from: onLink6,
				packet: "RENEW 000007\n 1 0003 0001 525400120099\n 2 $server\n 25 00000001 00000000 00000000\n" +
					"  26 00000000 00000000 3e fd00:1::",
				want: "REPLY 000007\n 1 0003 0001 525400120099\n 2 $server\n 25 00000001 00000708 00000b40\n" +
					"  26 00000e10 00000e10 3e fd00:1::",
			},
		}},
		"no prefix is left": {
			change: func(n *Network) { delegating(n); n.Subnets[0].Delegate.Bits = 60 },
			steps: []step6{
				{
					from: onLink6, packet: "REQUEST 000001" + ids + "\n 25 00000009 00000000 00000000",
					want: "REPLY 000001" + ids + "\n 25 00000009 00000708 00000b40\n  26 00000e10 00000e10 3c fd00:1::",
				},
				{
					from: onLink6, packet: "REQUEST 000002\n 1 0003 0001 525400120099\n 2 $server\n 25 00000001 00000000 00000000",
					want: "REPLY 000002\n 1 0003 0001 525400120099\n 2 $server\n 25 00000001 00000000 00000000\n  " + noPrefix,
				},
			},
		},
		"prefixes are not delegated here": {steps: []step6{
			{
				from: onLink6, packet: "SOLICIT 000001\n 1 $client\n 25 00000009 00000000 00000000",
				want: "ADVERTISE 000001" + ids + "\n 25 00000009 00000000 00000000\n  " + noPrefix,
			},
			{
				from: onLink6, packet: "RENEW 000001" + ids + "\n 25 00000009 00000000 00000000",
				want: "REPLY 000001" + ids + "\n 25 00000009 00000000 00000000\n  " + noBinding,
			},
		}},
		"an address is derived from link and MAC address": {
			change: func(n *Network) {
				n.Subnets = []Subnet{
					{CIDR: netip.MustParsePrefix("2001:db8:1111:2222::/64"), Derive: DeriveStateless, LeaseTime: time.Hour},
				}
			},
			steps: []step6{
				{
					from:   relayed7,
					packet: relayed6("REQUEST 000001"+ids+na6, "RELAY-FORW 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2"),
					want: relayed6(
						"REPLY 000001"+ids+"\n 3 00000007 00000708 00000b40\n  5 2001:db8:1111:2222:3333:5254:12:1 00000e10 00000e10",
						"RELAY-REPL 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
				},
				{
					from: relayed7,
					packet: relayed6(
						"RENEW 000002"+ids+na6+"\n  5 2001:db8:1111:2222:3333:5254:12:1 00000000 00000000",
						"RELAY-FORW 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
					want: relayed6(
						"REPLY 000002"+ids+"\n 3 00000007 00000708 00000b40\n  5 2001:db8:1111:2222:3333:5254:12:1 00000e10 00000e10",
						"RELAY-REPL 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
				},
				{
					from: relayed7,
					packet: relayed6(
						"RENEW 000003"+ids+na6+"\n  5 2001:db8:1111:2222:3333:5254:12:1 00000000 00000000",
						"RELAY-FORW 00 2001:db8:1111:2222:7::1 fe80::2",
					),
					want: relayed6(
						"REPLY 000003"+ids+"\n 3 00000007 00000708 00000b40\n  5 2001:db8:1111:2222:7:5254:12:1 00000e10 00000e10\n"+
							"  5 2001:db8:1111:2222:3333:5254:12:1 00000000 00000000",
						"RELAY-REPL 00 2001:db8:1111:2222:7::1 fe80::2",
					),
				},
				{
					from: onLink6, packet: "SOLICIT 000004\n 1 0003 0001 525400120099" + na6,
					want: "ADVERTISE 000004\n 1 0003 0001 525400120099\n 2 $server" + na6 + "\n  " + noAddrs,
				}, // no relay says which link
			},
		},
		"the link's next address, and its prefix": {
			change: func(n *Network) {
				n.Subnets = []Subnet{
					{
						CIDR: netip.MustParsePrefix("2001:db8::/32"), Derive: DeriveOnmetal, Delegate: lease.Delegation{Bits: 80},
						LeaseTime: time.Hour,
					},
				}
			},
			steps: []step6{
				{
					from: relayed7,
					packet: relayed6(
						"REQUEST 000001"+ids+na6+"\n 25 00000009 00000000 00000000",
						"RELAY-FORW 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
					want: relayed6(
						"REPLY 000001"+ids+"\n 3 00000007 00000708 00000b40\n"+
							"  5 2001:db8:1111:2222:3333:4444:5555:6667 00000e10 00000e10\n"+
							" 25 00000009 00000708 00000b40\n  26 00000e10 00000e10 50 2001:db8:1111:2222:3333::",
						"RELAY-REPL 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
				},
				{
					from: relayed7,
					packet: relayed6(
						"RENEW 000002"+ids+"\n 25 00000009 00000000 00000000\n  26 00000000 00000000 50 2001:db8:1111:2222:3333::",
						"RELAY-FORW 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
					want: relayed6(
						"REPLY 000002"+ids+"\n 25 00000009 00000708 00000b40\n  26 00000e10 00000e10 50 2001:db8:1111:2222:3333::",
						"RELAY-REPL 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
				},
				{
					from: relayed7,
					packet: relayed6(
						"REQUEST 000003\n 1 0003 0001 525400120099\n 2 $server"+na6,
						"RELAY-FORW 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
					want: relayed6(
						"REPLY 000003\n 1 0003 0001 525400120099\n 2 $server"+na6+"\n  "+noAddrs,
						"RELAY-REPL 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
				},
				{
					from: relayed7,
					packet: relayed6(
						"RELEASE 000004"+ids+na6+"\n  5 2001:db8:1111:2222:3333:4444:5555:6667 00000000 00000000",
						"RELAY-FORW 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2",
					),
					want: relayed6("REPLY 000004"+ids+"\n "+success, "RELAY-REPL 00 2001:db8:1111:2222:3333:4444:5555:6666 fe80::2"),
				},
			},
		},
		"a reservation goes before what is derived": {
			change: func(n *Network) {
				n.Subnets = []Subnet{{CIDR: netip.MustParsePrefix("fd07::/64"), Derive: DeriveOnmetal, LeaseTime: time.Hour}}
			},
			setUp: func(l *lab6) {
				l.server.SetReservations([]lease.Reservation{{MAC: mac6, Name: "s1", Address: netip.MustParseAddr("fd07::77")}})
			},
			steps: []step6{
				{
					from: relayed7, packet: relayed6("REQUEST 000001"+ids+na6, "RELAY-FORW 00 fd07::1 fe80::2\n    79 0001 525400120001"),
					want: relayed6(
						"REPLY 000001"+ids+"\n 3 00000007 00000708 00000b40\n  5 fd07::77 00000e10 00000e10",
						"RELAY-REPL 00 fd07::1 fe80::2",
					),
				},
			},
		},
		"who asks from its own address": {steps: []step6{
			{"[fd00::10]:546", "SOLICIT 000001\n 1 $client" + na6, "ADVERTISE 000001" + ids + given},
		}},
		"a relay chooses the subnet": {
			change: func(n *Network) { n.Subnets = append(n.Subnets, subnet6("fd07::/64", "fd07::10", "fd07::1f")) },
			steps: []step6{
				{
					from: relayed7,
					packet: relayed6(
						"REQUEST 000001"+ids+na6,
						"RELAY-FORW 00 fd07::1 fe80::2\n    18 \"port-1\"", "RELAY-FORW 01 :: fe80::3",
					),
					want: relayed6(
						"REPLY 000001"+ids+"\n 3 00000007 00000708 00000b40\n  5 fd07::10 00000e10 00000e10",
						"RELAY-REPL 00 fd07::1 fe80::2\n    18 \"port-1\"", "RELAY-REPL 01 :: fe80::3",
					),
				},
				{
					from: onLink6, packet: relayed6("SOLICIT 000002\n 1 0003 0001 525400120099"+na6, "RELAY-FORW 00 :: fe80::2"),
					want: relayed6("ADVERTISE 000002\n 1 0003 0001 525400120099\n 2 $server"+given, "RELAY-REPL 00 :: fe80::2"),
				}, // a lightweight one
			},
		},
		"what is not answered": {
			change: func(n *Network) { n.MACDeny = []string{"52:54:00:66"} },
			steps: []step6{
				// from a link that is not configured
				{from: relayed7, packet: relayed6("SOLICIT 000001\n 1 $client"+na6, "RELAY-FORW 00 fd66::1 fe80::2")},
				// from no link at all
				{from: relayed7, packet: relayed6("SOLICIT 000001\n 1 $client"+na6, "RELAY-FORW 00 :: fe80::2")},
				// from elsewhere, without relay
				{from: relayed7, packet: "SOLICIT 000001\n 1 $client" + na6},
				// from one that is denied
				{from: onLink6, packet: "SOLICIT 000001\n 1 0003 0001 525400660001" + na6},
				// to another server
				{from: onLink6, packet: "REQUEST 000001\n 1 $client\n 2 0004 00112233445566778899aabbccddeeff" + na6},
				// to another server
				{from: onLink6, packet: "INFORMATION-REQUEST 000001\n 1 $client\n 2 0004 00112233445566778899aabbccddeeff\n 6 0017 0018"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := plain6()
			if c.change != nil {
				c.change(&cfg)
			}
			l := newLab6(t, cfg)
			if c.setUp != nil {
				c.setUp(l)
			}
			for _, s := range c.steps {
				l.says(s.from, s.packet, s.want)
			}
		})
	}
}

func TestLeasesOfEveryKindHaveAHolder6(t *testing.T) {
	cfg := plain6()
	cfg.Subnets = []Subnet{{CIDR: netip.MustParsePrefix("fd07::/64"), Derive: DeriveStateless, LeaseTime: time.Hour}}
	l := newLab6(t, cfg)
	must.Get(l.ask(
		l.table(relayed6("REQUEST 000001"+ids+na6, "RELAY-FORW 00 fd07::1 fe80::2\n    79 0001 525400120001")), relayed7,
	))(t)
	derived := netip.MustParseAddr("fd07::5254:12:1")
	if mac, ok := l.server.Holder(derived); !ok || mac != mac6 {
		t.Errorf("%v is held by %q, %v; want %s", derived, mac, ok, mac6)
	}
	want := model.Lease{
		Network: "net", Role: model.RoleHost, MAC: mac6, Address: derived, ClientID: "00030001525400120001", IAID: 7, Arrived: true,
		Since: start6, Renewed: start6, Expires: start6.Add(time.Hour), Relay: model.LeaseRelay{Address: netip.MustParseAddr("fd07::1")},
	}
	if diff := cmp.Diff(want, l.store.get(derived), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("stored lease (-want +got):\n%s", diff)
	}
}

// associations6 are so many identity associations of addresses, numbered from first.
func associations6(first, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\n 3 %08x 00000000 00000000", first+i)
	}
	return b.String()
}

// given6Of are identity associations as they are answered with addresses from address on.
func given6Of(first, n, address int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\n 3 %08x 00000708 00000b40\n  5 fd00::%x 00000e10 00000e10", first+i, address+i)
	}
	return b.String()
}

func TestMoreAssociationsThanLeasesAreRefusedOneByOne6(t *testing.T) {
	const id = "\n 1 $client\n 2 $server"
	refused := func(status string, iaids ...int) string {
		var b strings.Builder
		for _, iaid := range iaids {
			fmt.Fprintf(&b, "\n 3 %08x 00000000 00000000\n  %s", iaid, status)
		}
		return b.String()
	}
	const unseenDUID = "\n 1 0002 00000009 0102030405" // it shows no MAC address
	for title, steps := range map[string][]step6{
		"the ninth and tenth get nothing": {
			{onLink6, "SOLICIT 000001\n 1 $client" + associations6(1, 10), "ADVERTISE 000001" + id + given6Of(1, 8, 0x10) + refused(noAddrs, 9, 10)},
			{onLink6, "REQUEST 000002" + id + associations6(1, 10), "REPLY 000002" + id + given6Of(1, 8, 0x10) + refused(noAddrs, 9, 10)},
			// those that have one keep it, in whatever order they come
			{onLink6, "REQUEST 000003" + id + associations6(9, 1) + associations6(1, 8), "REPLY 000003" + id + refused(noAddrs, 9) + given6Of(1, 8, 0x10)},
			{onLink6, "RENEW 000004" + id + associations6(9, 1) + associations6(1, 8), "REPLY 000004" + id + refused(noAddrs, 9) + given6Of(1, 8, 0x10)},
			{
				onLink6, "RENEW 000005" + id + associations6(1, 8) + associations6(9, 1) + "\n  5 fd00::10 00000000 00000000",
				"REPLY 000005" + id + given6Of(1, 8, 0x10) + refused(noBinding, 9),
			},
		},
		"a client without MAC address gets as many": {
			{onLink6, "REQUEST 000001" + unseenDUID + "\n 2 $server" + associations6(1, 9), "REPLY 000001" + unseenDUID + "\n 2 $server" + given6Of(1, 8, 0x10) + refused(noAddrs, 9)},
			{
				onLink6, "REQUEST 000002" + unseenDUID + "\n 2 $server" + associations6(9, 1) + associations6(1, 8),
				"REPLY 000002" + unseenDUID + "\n 2 $server" + refused(noAddrs, 9) + given6Of(1, 8, 0x10),
			},
		},
		"prefixes are counted by themselves": {
			{
				onLink6, "SOLICIT 000001\n 1 $client" + associations6(1, 8) + "\n 25 00000001 00000000 00000000",
				"ADVERTISE 000001" + id + given6Of(1, 8, 0x10) + "\n 25 00000001 00000708 00000b40\n  26 00000e10 00000e10 3e fd00:1::",
			},
		},
		"more than that get no answer": {{onLink6, "SOLICIT 000001\n 1 $client" + associations6(1, maxIAs6+1), ""}},
	} {
		t.Run(title, func(t *testing.T) {
			cfg := plain6()
			cfg.Subnets[0].Delegate = lease.Delegation{From: netip.MustParsePrefix("fd00:1::/60"), Bits: 62}
			l := newLab6(t, cfg)
			for _, s := range steps {
				l.says(s.from, s.packet, s.want)
			}
		})
	}
}

// A client can make its address of any MAC address. Only a relay that says what it saw shows
// who is behind it.
func TestALeaseByAClientsOwnWordHasNoHolder6(t *testing.T) {
	cfg := plain6()
	cfg.Subnets = []Subnet{{CIDR: netip.MustParsePrefix("fd07::/64"), Derive: DeriveStateless, LeaseTime: time.Hour}}
	l := newLab6(t, cfg)
	derived := netip.MustParseAddr("fd07::5254:12:1")
	for _, step := range []struct {
		relay  string
		holder string
	}{
		{"RELAY-FORW 00 fd07::1 fe80::5054:ff:fe12:1", ""},
		{"RELAY-FORW 00 fd07::1 fe80::2\n    79 0001 525400120001", mac6},
		{"RELAY-FORW 00 fd07::1 fe80::5054:ff:fe12:1", ""},
	} {
		from, packet := relayed7, "REQUEST 000001"+ids+na6
		must.Get(l.ask(l.table(relayed6(packet, step.relay)), from))(t)
		if mac, _ := l.server.Holder(derived); mac != step.holder {
			t.Errorf("by %q: %q holds it, want %q", step.relay, mac, step.holder)
		}
		if stored := l.store.get(derived); stored.Unproven != (step.holder == "") || stored.MAC != mac6 {
			t.Errorf("by %q: stored %+v", step.relay, stored)
		}
	}
}

func TestOneAddressForOneMACWhateverTheDUID6(t *testing.T) {
	l := newLab6(t, plain6())
	l.lease("52:54:00:12:00:99") // so that it is not simply the first
	const from = "[fe80::5054:ff:fe12:1%eth0]:546"
	var first []byte
	for _, id := range []string{
		"0003 0001 525400120001", "0001 0001 2a3b4c5d 525400120001", "0001 0001 00000001 525400120001",
		"0004 4454c4c40011223380044b5c04f56443", "0004 4c4c4544001122338044b5c04f564433", "0002 00000009 0123456789", "fff0 01",
	} {
		for i, iaid := range []string{"00000001", "4c4c4544", "ffffffff"} {
			l.now = l.now.Add(20 * time.Minute)
			got, err := l.ask(l.table("REQUEST 000001\n 1 "+id+"\n 2 $server\n 3 "+iaid+" 00000000 00000000"), from)
			if err != nil {
				t.Fatalf("%s %d: %v", id, i, err)
			}
			a := got.(*dhcpv6.Message).Options.OneIANA().Options.OneAddress()
			if a == nil || first != nil && !bytes.Equal(first, a.IPv6Addr) {
				t.Fatalf("%s got %v, want %v as before", id, a, net.IP(first))
			}
			first = a.IPv6Addr
		}
	}
}

func TestRelaysThatAreTrusted6(t *testing.T) {
	cfg := plain6()
	cfg.Relays = []string{"fd07::1", "fe80::/10"}
	for from, want := range map[string]error{"[fd07::1]:547": nil, "[fe80::7%eth0]:547": nil, "[fd07::2]:547": drop6Untrusted} {
		l := newLab6(t, cfg)
		solicit := l.table(relayed6("SOLICIT 000001\n 1 $client"+na6, "RELAY-FORW 00 fd00::1 fe80::2"))
		if _, err := l.ask(solicit, from); err != want { //nolint:errorlint // a bare value
			t.Errorf("from %s: %v, want %v", from, err, want)
		}
	}
}

func TestWhoSendsTooMuchIsNotAnswered6(t *testing.T) {
	l := newLab6(t, plain6())
	for range clientBurst {
		l.says(onLink6, "SOLICIT 000001\n 1 $client"+na6, "ADVERTISE 000001"+ids+given)
	}
	l.says(onLink6, "SOLICIT 000001\n 1 $client"+na6, "")
	l.now = l.now.Add(time.Second)
	l.says(onLink6, "SOLICIT 000001\n 1 $client"+na6, "ADVERTISE 000001"+ids+given)
}

func TestStoreAway6(t *testing.T) {
	l := newLab6(t, plain6())
	l.lease(mac6)
	l.store.setAway(errors.New("connection refused"))
	l.now = l.now.Add(10 * time.Minute)
	l.says(onLink6, "RENEW 000001"+ids+naHas6, "REPLY 000001"+ids+given)
	const stranger = "\n 1 0003 0001 525400120099"
	l.says(onLink6, "REQUEST 000002"+stranger+"\n 2 $server"+na6, "")
	l.says(onLink6, "SOLICIT 000002"+stranger+na6, "ADVERTISE 000002"+stranger+"\n 2 $server"+na6+"\n  "+noAddrs)
	l.says(onLink6, "SOLICIT 000002\n 1 $client"+na6, "ADVERTISE 000002"+ids+given)
	l.says(onLink6, "INFORMATION-REQUEST 000003\n 1 $client", "REPLY 000003"+ids)
}

// The DUIDs of one machine, and where its packets come from.
const (
	uuidDUID6 = "0004 4c4c4544 0011 2233 8044 b5c04f564433" // network order, as iPXE sends it
	ovmfDUID6 = "0004 44454c4c 1100 3322 8044 b5c04f564433" // as OVMF sends it
	ownLL6    = "[fe80::5054:ff:fe12:1%eth0]:546"
)

func TestBoot6(t *testing.T) {
	const (
		ipxe = "\n 61 0007\n 15 +\"iPXE\""
		pxe  = "\n 61 0007\n 16 00000157 +\"PXEClient:Arch:00007:UNDI:003016\""
		http = "\n 61 0010\n 16 00000157 +\"HTTPClient:Arch:00016:UNDI:003001\""
		uki  = "http://[fd00::1]:8082/httpboot/registry.example.com/os/" +
			"sha256-abababababababababababababababababababababababababababababababab.efi?uuid=" + uuid6
	)
	for name, c := range map[string]struct {
		packet      string
		change      func(*Network)
		boot, class string
		noted       string
	}{
		"iPXE asks for its file alone": {
			packet: "INFORMATION-REQUEST 000001\n 1 " + uuidDUID6 + "\n 6 003b" + ipxe, boot: "http://[fd00::1]:8082/ipxe/" + uuid6,
			noted: "t1 x64 UEFI fe80::5054:ff:fe12:1%eth0",
		},
		"iPXE sends its class bare": {
			packet: "INFORMATION-REQUEST 000001\n 1 " + uuidDUID6 + "\n 6 003b\n 61 0007\n 15 \"iPXE\"",
			boot:   "http://[fd00::1]:8082/ipxe/" + uuid6, noted: "t1 x64 UEFI fe80::5054:ff:fe12:1%eth0",
		},
		"firmware is shown its loader": {
			packet: "SOLICIT 000001\n 1 " + ovmfDUID6 + na6 + "\n 6 003b 003c" + pxe, boot: "tftp://[fd00::1]/ipxe.efi",
		},
		"firmware is told its loader": {
			packet: "REQUEST 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 + "\n 6 003b 003c" + pxe, boot: "tftp://[fd00::1]/ipxe.efi",
			noted: "t1 x64 UEFI fd00::10",
		},
		"the first architecture that is known": {
			packet: "REQUEST 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 +
				"\n 6 003b\n 61 ffee 000b\n 16 00000157 +\"PXEClient:Arch:00011:UNDI:003016\"",
			boot: "tftp://[fd00::1]/snp-arm64.efi", noted: "t1 ARM 64-bit UEFI fd00::10",
		},
		"HTTP firmware is told the UKI": {
			packet: "REQUEST 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 + "\n 6 0010 0017 003b" + http, boot: uki, class: "HTTPClient",
			noted: "t1 x64 UEFI boot from HTTP fd00::10",
		},
		"metalprobe is told its Ignition": {
			packet: "INFORMATION-REQUEST 000001\n 1 " + uuidDUID6 + "\n 6 003b\n 15 +\"ingot-probe\"",
			boot:   "http://[fd00::1]:8082/ignition/" + uuid6, noted: "t1 unknown fe80::5054:ff:fe12:1%eth0",
		},
		"who does not ask is not told":    {packet: "REQUEST 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 + "\n 6 0017" + pxe},
		"an operating system is not told": {packet: "REQUEST 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 + "\n 6 003b"},
		"a renewal is not a boot":         {packet: "RENEW 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 + "\n 6 003b" + pxe},
		"who has no ticket is not told": {
			packet: "REQUEST 000001\n 1 0004 00112233445566778899aabbccddeeff\n 2 $server" + na6 + "\n 6 003b" + pxe,
		},
		"an unknown architecture is not told": {
			packet: "REQUEST 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 +
				"\n 6 003b\n 61 ffee\n 16 00000157 +\"PXEClient:Arch:65518:UNDI:003016\"",
		},
		"BMCs boot nothing": {
			packet: "REQUEST 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 + "\n 6 003b" + pxe,
			change: func(n *Network) { n.Role = model.RoleBMC },
		},
		"an interface type of the wrong length": {
			packet: "REQUEST 000001\n 1 " + ovmfDUID6 + "\n 2 $server" + na6 + "\n 6 003b\n 62 01" + pxe,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := plain6()
			if c.change != nil {
				c.change(&cfg)
			}
			l := newLab6(t, cfg)
			got := must.Get(l.ask(l.table(c.packet), ownLL6))(t)
			m := got.(*dhcpv6.Message)
			class := ""
			for _, v := range m.Options.VendorClasses() {
				class += fmt.Sprintf("%.*d%s", min(1, int(v.EnterpriseNumber)), v.EnterpriseNumber, v.Data[0])
			}
			if noted := strings.Join(l.noted, ", "); m.Options.BootFileURL() != c.boot || class != c.class || noted != c.noted {
				t.Errorf(
					"told %q with class %q, noted %q; want %q, %q, %q",
					m.Options.BootFileURL(), class, noted, c.boot, c.class, c.noted,
				)
			}
		})
	}
}

// TestRequiredOptions6: whatever a client requests and however many relays there are, it gets its identifiers, leases and
// boot file, and no other option makes its answer longer than a packet.
func TestRequiredOptions6(t *testing.T) {
	for _, servers := range []int{0, 1, 8} {
		for _, url := range []int{20, 90} {
			for _, associations := range []int{1, 8, 32} {
				for _, relays := range []int{0, 1, 8} {
					cfg := plain6()
					cfg.Subnets[0].Domain = strings.Repeat(strings.Repeat("a", 60)+".", 4) + "example"
					cfg.Subnets[0].DNS, cfg.Subnets[0].NTP = nil, nil
					for i := range servers {
						a := netip.MustParseAddr(fmt.Sprintf("fd00::5%d", i))
						cfg.Subnets[0].DNS, cfg.Subnets[0].NTP = append(cfg.Subnets[0].DNS, a), append(cfg.Subnets[0].NTP, a)
					}
					l := newLab6(t, cfg)
					l.server.options.Site = func(string, netip.Addr) netboot.Site {
						return netboot.Site{HTTP: "http://" + strings.Repeat("h", url)}
					}
					title := fmt.Sprintf("%d servers, URL of %d, %d associations, %d relays", servers, url, associations, relays)
					l.checkRequired(title, associations, relays)
				}
			}
		}
	}
}

func (l *lab6) checkRequired(title string, associations, relays int) {
	l.Helper()
	inner := l.table("REQUEST 000001\n 1 " + uuidDUID6 + "\n 2 $server" + associations6(0, associations) +
		"\n 6 0018 001f 0038 0017 003b\n 61 0010\n 16 00000157 +\"HTTPClient:Arch:00016:UNDI:003001\"")
	x := must.Get(l.hear6(inner, netip.MustParseAddrPort(ownLL6), mac6))(l)
	x.relays = make([]relay6, relays)
	d := must.Get(l.decide6(x))(l)
	got := must.Get(dhcpv6.FromBytes(x.append(nil, d)))(l)
	answer := must.Get(got.GetInnerMessage())(l)
	o := answer.Options
	if o.ClientID() == nil || o.ServerID() == nil || len(o.IANA()) != associations || o.BootFileURL() == "" || len(o.VendorClasses()) != 1 {
		l.Errorf("%s: an option is missing in %s", title, answer.Summary())
	}
	var others int
	for _, code := range []dhcpv6.OptionCode{
		dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionDomainSearchList, dhcpv6.OptionSNTPServerList, dhcpv6.OptionNTPServer,
	} {
		others += len(answer.GetOption(code))
	}
	if size := len(answer.ToBytes()); size > maxSize6 && others > 0 {
		l.Errorf("%s: %d bytes", title, size)
	}
}

func TestBootByMACAddress6(t *testing.T) {
	l := newLab6(t, plain6())
	l.server.options.Tickets = tickets6{mac6: ticket6}
	l.says(
		onLink6, "REQUEST 000001"+ids+na6+"\n 6 003b\n 61 0007\n 15 +\"iPXE\"",
		"REPLY 000001"+ids+given+"\n 59 \"http://[fd00::1]:8082/ipxe/"+uuid6+"\"",
	)
	if diff := cmp.Diff([]string{"t1 x64 UEFI fd00::10"}, l.noted); diff != "" {
		t.Errorf("noted (-want +got):\n%s", diff)
	}
}

func TestProxy6(t *testing.T) {
	l := newLab6(t, plain6())
	l.Mode = ModeProxy
	const (
		id   = "\n 1 " + ovmfDUID6
		asks = "\n 6 003b\n 61 0007\n 16 00000157 +\"PXEClient:Arch:00007:UNDI:003016\""
		boot = "\n 59 \"tftp://[fd00::1]/ipxe.efi\""
	)
	l.says(ownLL6, "SOLICIT 000001"+id+na6+asks, "ADVERTISE 000001"+id+"\n 2 $server"+boot)
	l.says(ownLL6, "REQUEST 000002"+id+"\n 2 $server"+na6+asks, "REPLY 000002"+id+"\n 2 $server"+na6+"\n  "+noAddrs+boot)
	l.says(ownLL6, "INFORMATION-REQUEST 000003"+id+asks, "REPLY 000003"+id+"\n 2 $server"+boot)
	l.says(ownLL6, "INFORMATION-REQUEST 000004"+id+"\n 6 0017", "")
	l.says(ownLL6, "SOLICIT 000005"+id+na6, "")
	l.says(ownLL6, "RENEW 000006"+id+"\n 2 $server"+na6+asks, "")
	if mac, ok := l.server.Holder(netip.MustParseAddr("fd00::10")); ok {
		t.Errorf("a proxy leased an address to %s", mac)
	}
}

// TestFirmware6 answers packets as firmware and clients in the field make them.
func TestFirmware6(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "v6", "*.packet"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no packets in testdata/v6: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".packet")
		t.Run(name, func(t *testing.T) {
			table := must.Get(os.ReadFile(file))(t)
			l := newLab6(t, plain6())
			got := must.Get(l.ask(l.table(string(table)), ownLL6))(t)
			golden6(t, name+".answer", got.Summary()+"\n")
		})
	}
}

func TestDUID6(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	a, again := duid6("net", mac), duid6("net", mac)
	if !bytes.Equal(a, again) || bytes.Equal(a, duid6("other", mac)) || bytes.Equal(a, duid6("net", net.HardwareAddr{2, 0, 0, 0, 0, 2})) {
		t.Error("the server's DUID must be that of its network and interface, and stay")
	}
	if got, want := hex.EncodeToString(a), "0004a34655772e4d89f1b7af073947e54133"; got != want {
		t.Errorf("DUID %s, want %s: clients know it from before", got, want)
	}
}

func TestAnswerWaitsForTheStore6(t *testing.T) {
	l := newLab6(t, plain6())
	l.store.saving = make(chan struct{})
	server, client := pair6(t)
	l.sockets.v6.Store(server)
	// A relay that wants its answers where it sends from can be anywhere.
	from := client.LocalAddr().(*net.UDPAddr).AddrPort()
	relay := func(message string) []byte {
		return l.table(relayed6(message, "RELAY-FORW 00 fd00::1 fe80::2\n    135 0000"))
	}
	buf := make([]byte, maxPacket)
	packet := relay("REQUEST 000002" + ids + na6)
	l.handle6(t.Context(), packet, from)
	clear(packet) // its memory is the reader's again
	l.handle6(t.Context(), relay("SOLICIT 000001\n 1 $client"+na6), from)

	receive := func() *dhcpv6.Message {
		t.Helper()
		_ = client.SetReadDeadline(time.Now().Add(10 * time.Second))
		size := must.Get(client.Read(buf))(t)
		p := must.Get(dhcpv6.FromBytes(buf[:size]))(t)
		return must.Get(p.GetInnerMessage())(t)
	}
	if got := receive(); got.MessageType != dhcpv6.MessageTypeAdvertise {
		t.Fatalf("first came %v, want the Advertise, which promises nothing", got)
	}
	close(l.store.saving)
	want := &dhcpv6.DUIDLL{HWType: 1, LinkLayerAddr: net.HardwareAddr{0x52, 0x54, 0, 0x12, 0, 1}}
	if got := receive(); got.MessageType != dhcpv6.MessageTypeReply || !want.Equal(got.Options.ClientID()) {
		t.Fatalf("then came %v, want the Reply to %v", got.Summary(), want)
	}
	if got := l.store.get(netip.MustParseAddr("fd00::10")).ClientID; got != "00030001525400120001" {
		t.Errorf("the lease was stored for %q", got)
	}

	l.handle6(t.Context(), []byte{1}, from)
	l.handle6(t.Context(), l.table("SOLICIT 000001\n 1 $client"+na6), from)
	for _, reason := range []drop6{drop6Malformed, drop6Source} {
		if got := testutil.ToFloat64(l.server.metrics.dropped.WithLabelValues("net", "6", string(reason))); got != 1 {
			t.Errorf("%v packets dropped as %s, want 1", got, reason)
		}
	}
	for kind, outcome := range map[string]string{"solicit": "advertise", "request": "reply"} {
		if got := testutil.ToFloat64(l.server.metrics.packets.WithLabelValues("net", "6", kind, outcome)); got != 1 {
			t.Errorf("%v packets %s %s, want 1", got, kind, outcome)
		}
	}
}

// pair6 returns two UDP sockets on loopback.
func pair6(t testing.TB) (server *conn, client *net.UDPConn) {
	t.Helper()
	var err error
	if server, err = listen("", netip.MustParseAddrPort("[::1]:0")); err != nil {
		t.Skip("no IPv6 on loopback: ", err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if client, err = net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

func FuzzHandle6(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "v6", "*.packet"))
	cfg := plain6()
	cfg.Relays = []string{"fe80::2"}
	cfg.Subnets[0].Delegate = lease.Delegation{From: netip.MustParsePrefix("fd00:1::/60"), Bits: 62}
	cfg.Subnets = append(
		cfg.Subnets,
		Subnet{
			CIDR: netip.MustParsePrefix("fd07::/64"), Derive: DeriveOnmetal, Delegate: lease.Delegation{Bits: 80}, LeaseTime: time.Hour,
		},
	)
	l := newLab6(f, cfg)
	l.server.SetReservations([]lease.Reservation{
		{Port: model.RelayPort{CircuitID: "Eth1/7", RemoteID: "leaf1"}, Name: "port", Address: netip.MustParseAddr("fd00::77")},
		{MAC: mac6, ClientID: "00020000ab117e9b5ea5e1d3a3d2", Name: "client", Address: netip.MustParseAddr("fd00::11")},
	})
	for _, file := range files {
		table := must.Get(os.ReadFile(file))(f)
		f.Add(l.table(string(table)))
	}
	f.Add(
		l.table(
			relayed6(
				"RENEW 000001"+ids+naHas6+"\n 25 00000009 00000000 00000000\n  26 00000000 00000000 3e fd00:1::",
				"RELAY-FORW 00 fd07::1 fe80::2\n    135 0000\n    79 0001 525400120001\n    18 \"port\"", "RELAY-FORW 01 :: fe80::3",
			),
		),
	)
	for _, table := range []string{
		"REQUEST 000001" + duidEN6 + server6 + ia1 + ia2 + "\n 25 00000001 00000000 00000000\n 25 00000002 00000000 00000000",
		"RENEW 000002" + duidUUID6 + server6 + ia1 + "\n  5 fd00::10 00000000 00000000\n  5 fd00::11 00000000 00000000" + ia2,
		behind6("SOLICIT 000003"+duidUUID6+ia1, "fe80::a1b2:c3d4:e5f6:1"),
		behind6("RELEASE 000004"+duidEN6+server6+ia1+"\n  5 fd00::10 00000000 00000000"+ia1, "fe80::5054:ff:fe12:1"),
		relayed6("SOLICIT 00000a\n 1 $client", "RELAY-FORW 00 fd00::1 fe80::2\n    135 303030303030"),
		relayed6("SOLICIT 000005\n 1 $client"+ia1+ia2, "RELAY-FORW 00 fd00::1 fe80::2\n    79 0001 525400120001"),
		at6("REQUEST 000006\n 1 $client"+server6+ia1, port7+leaf1+saw6), at6("SOLICIT 000007"+duidEN6+ia1, port7+leaf2),
		relayed6("SOLICIT 000008"+duidUUID6+ia1, "RELAY-FORW 00 fd00::1 fe80::2"+port7, "RELAY-FORW 01 :: fe80::3\n    18 01000000"),
		"DECLINE 000009\n 1 $client" + server6 + ia1 + "\n  5 fd00::10 00000000 00000000", "CONFIRM 00000a" + duidEN6 + ia1 + "\n  5 fd00::10 00000000 00000000",
	} {
		f.Add(l.table(table))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		l.now = l.now.Add(time.Minute) // so that nobody sends too much
		x, err := l.hear6(bytes.Clone(packet), netip.MustParseAddrPort(onLink6), l.frame(packet, onLink6))
		if err != nil {
			return
		}
		d, err := l.decide6(x)
		if err != nil {
			return
		}
		stored := make(chan error, 1)
		commitAll6(l.server.committer, d.leases, func(err error) { stored <- err })
		<-stored
		reply := x.append(nil, d)
		// A client's DUID goes back as it came (RFC 8415 §11), also one that the library finds fault with.
		if _, err := dhcpv6.DUIDFromBytes(x.clientID); err == nil || x.clientID == nil {
			if _, err := dhcpv6.FromBytes(reply); err != nil {
				t.Fatalf("the answer %x cannot be read: %v", reply, err)
			}
		}
		if len(reply) > len(packet)+1024 {
			t.Fatalf("%d bytes are answered with %d", len(packet), len(reply))
		}
	})
}

func TestOnlyRelaysThatAreTrustedAreBelieved6(t *testing.T) {
	made := relayed6("SOLICIT 000001\n 1 $client"+na6,
		"RELAY-FORW 00 fd00:8::1 fe80::2\n    18 \"made-up\"\n    79 0001 525400120001", "RELAY-FORW 01 fd00::1 fe80::66\n    18 \"eth1\"\n    79 0001 525400660001")
	for name, tc := range map[string]struct {
		relays  []string
		packet  string
		want    string
		dropped error
	}{
		"what a client says as if it were a relay":  {[]string{"fd00:7::1"}, made, " eth1 fd00::1", nil},
		"what a relay says that another one trusts": {[]string{"fd00:7::1", "fe80::/10"}, made, "52:54:00:12:00:01 made-up fd00:8::1", drop6Relay},
		"a client that says it is a relay itself":   {[]string{"fd00:9::1"}, made, "  invalid IP", drop6Untrusted},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := plain6()
			cfg.Relays = tc.relays
			l := newLab6(t, cfg)
			x, err := l.hear6(l.table(tc.packet), netip.MustParseAddrPort("[fd00:7::1]:547"), "")
			link, _ := linkOf(x.believed)
			if got := x.mac + " " + x.port() + " " + link.String(); got != tc.want || !errors.Is(err, tc.dropped) {
				t.Errorf("got %q, %v, want %q, %v", got, err, tc.want, tc.dropped)
			}
		})
	}
}
