package netboot

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/bootsvc/neighbour"
	"ingot/model"
)

// rackRoom is all that shows who is at an address, and the servers beside it.
type rackRoom struct {
	leases     map[string]string // MAC addresses by IP address
	endpoints  map[string]string // likewise
	neighbours map[string]neighbour.Neighbour
	servers    map[string]model.ServerName // by MAC address
}

func (r rackRoom) Holder(a netip.Addr) (string, bool) {
	mac, ok := r.leases[a.String()]
	return mac, ok
}

func (r rackRoom) endpoint(a netip.Addr) (string, bool) {
	mac, ok := r.endpoints[a.String()]
	return mac, ok
}

func (r rackRoom) At(a netip.Addr) (neighbour.Neighbour, error) {
	if a.String() == "10.0.0.66" {
		return neighbour.Neighbour{}, errors.New("no permission")
	}
	return r.neighbours[a.String()], nil
}

func (r rackRoom) Find(id string) (model.TicketHolder, bool) {
	s, ok := r.servers[id]
	return model.TicketHolder{Server: s}, ok
}

func (r rackRoom) MACs(model.ServerName) []string { return nil }

func (r rackRoom) bindings(heard *Heard) AddressRules {
	return AddressRules{Servers: r, Evidence: Evidence{Leases: r, Endpoint: r.endpoint, Heard: heard, Neighbours: r}}
}

func onLink(mac string, former ...string) neighbour.Neighbour {
	return neighbour.Neighbour{OnLink: true, MAC: mac, Previous: former}
}

// s1 has the cards m1 and m1b, s2 has m2, and m3 is nobody's that is known.
func newRackRoom() rackRoom {
	return rackRoom{
		leases: map[string]string{
			"10.0.0.1": "m1", "fd00::1": "m1", "10.0.0.2": "m2", "10.0.0.3": "m3", "10.0.0.11": "m1", "10.0.0.12": "m1", "10.0.0.13": "m1",
			"10.0.0.14": "m1", "10.0.0.66": "m1", "10.0.0.31": "m1", "10.0.0.71": "m1",
		},
		endpoints: map[string]string{"127.0.1.1": "m1", "10.0.0.21": "m1", "10.0.0.22": "m2", "10.0.0.31": "m2", "10.0.0.62": "m1"},
		neighbours: map[string]neighbour.Neighbour{
			"10.0.0.11": onLink("m1"), "10.0.0.12": onLink("m1b"), "10.0.0.13": onLink("m3"), "10.0.0.14": onLink(""),
			"10.0.0.71": onLink("m2"), "10.0.0.22": onLink("m1"),
			"10.0.0.41": onLink("m1"), "fe80::1%eth0": onLink("m1"), "10.0.0.42": onLink("m2"), "10.0.0.43": onLink("m3"),
			"10.0.0.44": onLink("m1", "m3"), "10.0.0.45": onLink("m1", "m1b"), "10.0.0.46": onLink("m3", "m1"),
			"10.0.0.47": {OnLink: true, MAC: "m1", Lost: true},
			"10.0.0.61": onLink("m1"),
		},
		servers: map[string]model.ServerName{"m1": "s1", "m1b": "s1", "m2": "s2", "52:54:00:77:00:01": "s1"},
	}
}

func TestWhoIsServed(t *testing.T) {
	heard := NewHeard(nil)
	for mac, all := range map[string]string{"m1": "10.0.0.51 10.0.0.2", "m2": "10.0.0.61 10.0.0.62"} {
		for a := range strings.FieldsSeq(all) {
			heard.Asked(mac, netip.MustParseAddr(a))
		}
	}
	room := newRackRoom()
	const served = ""
	claim := &model.Ticket{ID: "s1-2", Server: "s1", Purpose: model.PurposeClaim}
	discovery := &model.Ticket{ID: "s1-1", Server: "s1", Purpose: model.PurposeDiscovery}
	for title, tc := range map[string]struct {
		clients string
		machine model.TicketRefusal
		first   model.TicketRefusal
		nothing model.TicketRefusal
	}{
		"at the address that Ingot leased to it": {
			clients: "10.0.0.1 ::ffff:10.0.0.1 fd00::1",
			machine: served, first: served, nothing: served,
		},
		"another server at its own": {
			clients: "10.0.0.2",
			machine: "OtherServer", first: "OtherServer", nothing: "OtherServer",
		},
		"an interface that is no server's": {
			clients: "10.0.0.3",
			machine: "UnknownInterface", first: "UnknownInterface", nothing: served,
		},
		"leased and on our link": {
			clients: "10.0.0.11",
			machine: served, first: served, nothing: served,
		},
		"by one card, leased to the other": {
			clients: "10.0.0.12",
			machine: served, first: served, nothing: served,
		},
		"somebody at the address that is leased to it": {
			clients: "10.0.0.13",
			machine: "Contested", first: "Contested", nothing: served,
		},
		"another server there": {
			clients: "10.0.0.71",
			machine: "OtherServer", first: "OtherServer", nothing: "OtherServer",
		},
		"nobody answers there": {
			clients: "10.0.0.14",
			machine: "CannotTell", first: served, nothing: served,
		},
		"nobody may look who is there": {
			clients: "10.0.0.66",
			machine: "CannotTell", first: served, nothing: served,
		},
		"at the address that Git gives it": {
			clients: "10.0.0.21 127.0.1.1",
			machine: served, first: served, nothing: served,
		},
		"at the one that Git gives another": {
			clients: "10.0.0.22",
			machine: "Contested", first: "Contested", nothing: served,
		},
		"where lease and Git differ": {
			clients: "10.0.0.31",
			machine: "Contested", first: "Contested", nothing: served,
		},
		"at its own, on our link": {
			clients: "10.0.0.41 fe80::1%eth0",
			machine: served, first: served, nothing: served,
		},
		"another on our link": {
			clients: "10.0.0.42",
			machine: "OtherServer", first: "OtherServer", nothing: "OtherServer",
		},
		"one on our link that is no server's": {
			clients: "10.0.0.43",
			machine: "UnknownInterface", first: "UnknownInterface", nothing: served,
		},
		"somebody who was another a moment ago": {
			clients: "10.0.0.44",
			machine: "Contested", first: "Contested", nothing: served,
		},
		"by one card, and the other a moment ago": {
			clients: "10.0.0.45",
			machine: served, first: served, nothing: served,
		},
		"the other way round": {
			clients: "10.0.0.46",
			machine: "Contested", first: "Contested", nothing: served,
		},
		"when changes were lost": {
			clients: "10.0.0.47",
			machine: "Contested", first: "Contested", nothing: served,
		},
		"at the address that it asked another DHCP server for": {
			clients: "10.0.0.51",
			machine: served, first: served, nothing: served,
		},
		"there, and another asked for it": {
			clients: "10.0.0.61",
			machine: "Contested", first: "Contested", nothing: served,
		},
		"where Git knows better than who asked": {
			clients: "10.0.0.62",
			machine: served, first: served, nothing: served,
		},
		"at an address that nothing is known of": {
			clients: "10.9.9.9 fe80::9%eth0 fd00::9",
			machine: "CannotTell", first: served, nothing: served,
		},
		"at one that is made of its MAC address": {
			clients: "fe80::5054:ff:fe77:1%eth0 fd00::5054:ff:fe77:1",
			machine: "CannotTell", first: served, nothing: served,
		},
		"on this machine": {
			clients: "127.0.0.1 ::1",
			machine: "CannotTell", first: served, nothing: served,
		},
	} {
		for client := range strings.FieldsSeq(tc.clients) {
			for binding, want := range map[AddressRule]model.TicketRefusal{
				BindMachine: tc.machine, "": tc.machine, BindFirst: tc.first, BindNothing: tc.nothing,
			} {
				b := room.bindings(heard)
				b.Rule = binding
				got := b.Judge(model.TicketHolder{Server: "s1", Ticket: claim}, netip.MustParseAddr(client))
				if got.Refusal != want || (got.Told == "") != (want == "") {
					t.Errorf("%s: %q, client %s: %q, %q, want %q", title, binding, client, got.Refusal, got.Told, want)
				}
				fresh := b.Judge(model.TicketHolder{Server: "s1", Ticket: discovery}, netip.MustParseAddr(client)).Refusal
				early := want
				if binding == BindFirst && want != model.RefusedOther {
					early = served // its network interfaces need not be known yet
				}
				if fresh != early {
					t.Errorf("%s, for its discovery: %q, client %s: %q, want %q", title, binding, client, fresh, early)
				}
				b.Rule, b.Of = BindNothing, func(netip.Addr) AddressRule { return binding }
				of := b.Judge(model.TicketHolder{Server: "s1", Ticket: claim}, netip.MustParseAddr(client)).Refusal
				if binding != "" && of != want {
					t.Errorf("%s, by its network: %q, client %s: %q, want %q", title, binding, client, of, want)
				}
			}
		}
	}
}

func TestWhatIsKnownOfWhoAsks(t *testing.T) {
	heard := NewHeard(nil)
	heard.On("m3", "Gi1/0/7")
	b := newRackRoom().bindings(heard)
	for client, want := range map[string]model.Asker{
		"10.0.0.1":     {MAC: "m1", Own: true},
		"10.0.0.42":    {MAC: "m2"},
		"10.0.0.3":     {MAC: "m3", Port: "Gi1/0/7"},
		"10.0.0.13":    {MAC: "m3", Port: "Gi1/0/7"}, // and not m1, whose lease it is
		"10.0.0.44":    {MAC: "m1", Own: true},
		"fe80::1%eth0": {MAC: "m1", Own: true},
		"10.9.9.9":     {},
	} {
		want.Client = netip.MustParseAddr(client)
		got := b.Judge(model.TicketHolder{Server: "s1"}, want.Client).By
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", client, diff)
		}
	}
}

func TestTheFirstClient(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	claim := &model.Ticket{ID: "s1-2", Server: "s1", Purpose: model.PurposeClaim}
	used := func(what model.TicketThing, client string, refusal model.TicketRefusal) model.TicketUse {
		return model.TicketUse{What: what, Client: client, Refusal: refusal}
	}
	for title, tc := range map[string]struct {
		progress model.Progress
		client   string
		refused  bool
	}{
		"anybody, before there is one": {model.Progress{}, "10.9.9.9", false},
		"the first that was served": {
			progress: model.Progress{
				Client: "10.9.9.7", ScriptAt: now,
				Uses: []model.TicketUse{
					used(model.ThingScript, "10.9.9.5", model.RefusedToken), used(model.ThingImage, "10.9.9.6", ""),
					used(model.ThingScript, "10.9.9.8", ""), used(model.ThingScript, "10.9.9.7", ""),
				},
			},
			client: "10.9.9.8",
		},
		"no other": {
			progress: model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.8", "")}}, client: "10.9.9.9", refused: true,
		},
		"also on this machine": {
			progress: model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.8", "")}}, client: "127.0.0.1", refused: true,
		},
		"of each IP version one": {
			progress: model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.8", "")}}, client: "fd00::9",
		},
		"no other of IPv6": {
			progress: model.Progress{Uses: []model.TicketUse{used(model.ThingCloudInit, "fd00::9", "")}}, client: "fd00::7", refused: true,
		},
		"a link-local one by whatever interface": {
			progress: model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "fe80::9%eth0", "")}}, client: "fe80::9%eth0",
		},
		"before uses are written down its stage":   {model.Progress{ScriptAt: now, Client: "10.9.9.8"}, "10.9.9.9", true},
		"its stage of the other IP version is not": {model.Progress{IgnitionAt: now, Client: "10.9.9.8"}, "fd00::9", false},
		"who was only sent a loader is not":        {model.Progress{TFTPAt: now, Client: "10.9.9.8"}, "10.9.9.9", false},
		"that of an older ticket is not":           {model.Progress{Ticket: "s1-1", ScriptAt: now, Client: "10.9.9.8"}, "10.9.9.9", false},
		"the server itself in any case":            {model.Progress{ScriptAt: now, Client: "10.9.9.8"}, "10.0.0.1", false},
	} {
		if tc.progress.Ticket == "" {
			tc.progress.Ticket = claim.ID
		}
		b := newRackRoom().bindings(nil)
		b.Rule = BindFirst
		got := b.Judge(model.TicketHolder{Server: "s1", Ticket: claim, Progress: &tc.progress}, netip.MustParseAddr(tc.client))
		if (got.Refusal == model.RefusedAddress) != tc.refused || !tc.refused && got.Refusal != "" {
			t.Errorf("%s: %q %q", title, got.Refusal, got.Told)
		}
	}
}

func TestWhichServerIsAtAnAddress(t *testing.T) {
	known := newRackRoom().bindings(nil)
	anybody := known
	anybody.Rule = BindNothing
	for title, tc := range map[string]struct {
		bindings AddressRules
		client   string
		want     model.ServerName
	}{
		"the one that has the lease":               {known, "10.0.0.1", "s1"},
		"in whatever spelling":                     {known, "::ffff:10.0.0.1", "s1"},
		"over IPv6 too":                            {known, "fd00::1", "s1"},
		"one that somebody else gave its address":  {known, "10.0.0.41", "s1"},
		"one by its link-local address":            {known, "fe80::1%eth0", "s1"},
		"nobody of whom nothing is known":          {known, "10.0.0.9", ""},
		"nobody whose interface is no server's":    {known, "10.0.0.3", ""},
		"nobody who was another a moment ago":      {anybody, "10.0.0.44", ""},
		"nobody where nothing is known at all":     {AddressRules{}, "10.0.0.1", ""},
		"nobody where nothing is bound, and known": {AddressRules{Rule: BindNothing}, "10.0.0.1", ""},
	} {
		holder, ok := tc.bindings.At(netip.MustParseAddr(tc.client))
		if holder.Server != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q, %v", title, holder.Server, ok)
		}
	}
}

// A card need be no known server's, but nothing may speak against it.
func TestWhichNetworkCardIsAtAnAddress(t *testing.T) {
	rules := newRackRoom().bindings(nil)
	for client, want := range map[string]string{
		"10.0.0.1": "m1", "::ffff:10.0.0.1": "m1", "10.0.0.3": "m3", "10.0.0.21": "m1", "fe80::1%eth0": "m1", "10.0.0.9": "",
		"10.0.0.13": "", "10.0.0.14": "", "10.0.0.44": "", "10.0.0.66": "",
	} {
		if got := rules.Card(netip.MustParseAddr(client)); got != want {
			t.Errorf("at %s is %q, want %q", client, got, want)
		}
	}
}

func TestWhatWasHeardIsForAnHour(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	h := NewHeard(func() time.Time { return now })
	at := netip.MustParseAddr("10.0.0.1")
	h.Asked("m1", at)
	now = now.Add(time.Hour)
	if mac, ok := h.Holder(at); mac != "m1" || !ok {
		t.Errorf("%q, %v after an hour", mac, ok)
	}
	now = now.Add(time.Second)
	if mac, ok := h.Holder(at); ok {
		t.Errorf("%q after more than an hour", mac)
	}
	h.Asked("m1", at)
	h.Asked("m2", at)
	if mac, _ := h.Holder(at); mac != "m2" {
		t.Errorf("%q has it, and m2 asked for it last", mac)
	}
	h.Asked("m1", netip.IPv4Unspecified())
	h.Asked("m1", netip.Addr{})
	old := netip.MustParseAddr("10.0.0.9")
	h.Asked("old", old)
	now = now.Add(heardLife + time.Second)
	for i := range maxHeard {
		h.Asked("new", netip.AddrFrom4([4]byte{12, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if _, kept := h.addresses[old]; kept || len(h.addresses) < maxHeard*7/8 {
		t.Errorf("of %d addresses the old one is kept: %t", len(h.addresses), kept)
	}
	for i := range 2 * maxHeard {
		h.Asked("m1", netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}))
		h.On(fmt.Sprint(i), "port")
	}
	if len(h.addresses) > maxHeard || len(h.ports) > maxHeard {
		t.Errorf("%d addresses and %d ports are remembered", len(h.addresses), len(h.ports))
	}
}

func TestBindingNames(t *testing.T) {
	for name, want := range map[string]AddressRule{
		"": BindMachine, "machine": BindMachine, "first-client": BindFirst, "nothing": BindNothing,
	} {
		if got, err := ParseAddressRule(name); got != want || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	_, err := ParseAddressRule("Machine")
	if want := `"Machine" binds no boot ticket: allowed are machine, first-client and nothing`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
