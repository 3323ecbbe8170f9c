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
			"10.0.0.11": onLink("m1"), "10.0.0.12": onLink("m1b"), "10.0.0.13": onLink("m3"), "10.0.0.14": onLink(""), "10.0.0.71": onLink("m2"),
			"10.0.0.22": onLink("m1"),
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
		"at the address that Ingot leased to it":               {"10.0.0.1 ::ffff:10.0.0.1 fd00::1", served, served, served},
		"another server at its own":                            {"10.0.0.2", "OtherServer", "OtherServer", "OtherServer"},
		"an interface that is no server's":                     {"10.0.0.3", "UnknownInterface", "UnknownInterface", served},
		"leased and on our link":                               {"10.0.0.11", served, served, served},
		"by one card, leased to the other":                     {"10.0.0.12", served, served, served},
		"somebody at the address that is leased to it":         {"10.0.0.13", "Contested", "Contested", served},
		"another server there":                                 {"10.0.0.71", "OtherServer", "OtherServer", "OtherServer"},
		"nobody answers there":                                 {"10.0.0.14", "CannotTell", served, served},
		"nobody may look who is there":                         {"10.0.0.66", "CannotTell", served, served},
		"at the address that Git gives it":                     {"10.0.0.21 127.0.1.1", served, served, served},
		"at the one that Git gives another":                    {"10.0.0.22", "Contested", "Contested", served},
		"where lease and Git differ":                           {"10.0.0.31", "Contested", "Contested", served},
		"at its own, on our link":                              {"10.0.0.41 fe80::1%eth0", served, served, served},
		"another on our link":                                  {"10.0.0.42", "OtherServer", "OtherServer", "OtherServer"},
		"one on our link that is no server's":                  {"10.0.0.43", "UnknownInterface", "UnknownInterface", served},
		"somebody who was another a moment ago":                {"10.0.0.44", "Contested", "Contested", served},
		"by one card, and the other a moment ago":              {"10.0.0.45", served, served, served},
		"the other way round":                                  {"10.0.0.46", "Contested", "Contested", served},
		"when changes were lost":                               {"10.0.0.47", "Contested", "Contested", served},
		"at the address that it asked another DHCP server for": {"10.0.0.51", served, served, served},
		"there, and another asked for it":                      {"10.0.0.61", "Contested", "Contested", served},
		"where Git knows better than who asked":                {"10.0.0.62", served, served, served},
		"at an address that nothing is known of":               {"10.9.9.9 fe80::9%eth0 fd00::9", "CannotTell", served, served},
		"at one that is made of its MAC address":               {"fe80::5054:ff:fe77:1%eth0 fd00::5054:ff:fe77:1", "CannotTell", served, served},
		"on this machine":                                      {"127.0.0.1 ::1", "CannotTell", served, served},
	} {
		for client := range strings.FieldsSeq(tc.clients) {
			for binding, want := range map[AddressRule]model.TicketRefusal{BindMachine: tc.machine, "": tc.machine, BindFirst: tc.first, BindNothing: tc.nothing} {
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
				if of := b.Judge(model.TicketHolder{Server: "s1", Ticket: claim}, netip.MustParseAddr(client)).Refusal; binding != "" && of != want {
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
		"anybody, before there is one":             {model.Progress{}, "10.9.9.9", false},
		"the first that was served":                {model.Progress{Client: "10.9.9.7", ScriptAt: now, Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.5", model.RefusedToken), used(model.ThingImage, "10.9.9.6", ""), used(model.ThingScript, "10.9.9.8", ""), used(model.ThingScript, "10.9.9.7", "")}}, "10.9.9.8", false},
		"no other":                                 {model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.8", "")}}, "10.9.9.9", true},
		"also on this machine":                     {model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.8", "")}}, "127.0.0.1", true},
		"of each IP version one":                   {model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.8", "")}}, "fd00::9", false},
		"no other of IPv6":                         {model.Progress{Uses: []model.TicketUse{used(model.ThingCloudInit, "fd00::9", "")}}, "fd00::7", true},
		"a link-local one by whatever interface":   {model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "fe80::9%eth0", "")}}, "fe80::9%eth0", false},
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
	for name, want := range map[string]AddressRule{"": BindMachine, "leases": BindMachine, "machine": BindMachine, "first-client": BindFirst, "nothing": BindNothing} {
		if got, err := ParseAddressRule(name); got != want || err != nil || IsFormer(name) != (name == "leases") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	_, err := ParseAddressRule("Machine")
	if want := `"Machine" binds no boot ticket: allowed are machine, first-client and nothing`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
