package dhcp

import (
	"net/netip"
	"testing"
	"time"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

// at6 returns a message as the relay of the link fd00::/64 passes it on, with more options of its own.
func at6(packet, options string) string {
	return relayed6(packet, "RELAY-FORW 00 fd00::1 fe80::a1b2:c3d4:e5f6:1"+options)
}

// The options of relays: the port Eth1/7, and the relay leaf1 (of enterprise 9), which saw mac6.
const (
	port7  = "\n    18 \"Eth1/7\""
	leaf1  = "\n    37 00000009 6c65616631"
	leaf2  = "\n    37 00000009 6c65616632"
	saw6   = "\n    79 0001 525400120001"
	other6 = "\n    79 0001 525400120002"
)

func TestAnAddressOfARelayPort6(t *testing.T) {
	const asks = "REQUEST 000001\n 1 $client" + server6 + ia1
	onPort7, onLeaf1 := model.RelayPort{CircuitID: "Eth1/7"}, model.RelayPort{RemoteID: "leaf1"}
	both := model.RelayPort{CircuitID: "Eth1/7", RemoteID: "leaf1"}
	named := []string{"fd00:9::2"}
	for name, c := range map[string]struct {
		port   model.RelayPort
		relays []string
		packet string
		want   string
	}{
		"whoever is plugged into it has it":              {onPort7, named, at6(asks, port7+saw6), "fd00::77"},
		"who shows no MAC address, too":                  {onPort7, named, at6(asks, port7), "fd00::77"},
		"who is plugged into another has not":            {onPort7, named, at6(asks, "\n    18 \"Eth1/8\""+saw6), "fd00::10"},
		"who is plugged into none has not":               {onPort7, named, at6(asks, saw6), "fd00::10"},
		"it is one of any relay":                         {onPort7, named, at6(asks, port7+leaf2), "fd00::77"},
		"any port of one relay":                          {onLeaf1, named, at6(asks, port7+leaf1), "fd00::77"},
		"of another relay it is not":                     {onLeaf1, named, at6(asks, port7+leaf2), "fd00::10"},
		"one port of one relay":                          {both, named, at6(asks, port7+leaf1), "fd00::77"},
		"that port of another relay is another":          {both, named, at6(asks, port7+leaf2), "fd00::10"},
		"a remote ID that is cut off is none":            {onLeaf1, named, at6(asks, "\n    37 000009"), "fd00::10"},
		"nothing counts where no relay is named":         {onPort7, nil, at6(asks, port7+saw6), "fd00::10"},
		"nor what a client says on its own link":         {onPort7, named, asks, "fd00::10"},
		"a relay next to the client is asked":            {onPort7, []string{"fd00:9::2", "fd00:8::1"}, relayed6(asks, "RELAY-FORW 00 fd00::1 fe80::2"+port7, "RELAY-FORW 01 fd00:8::1 fd00:8::1\n    18 \"Eth9\""), "fd00::77"},
		"one that nobody named is not, but who hears it": {model.RelayPort{CircuitID: "Eth9"}, named, relayed6(asks, "RELAY-FORW 00 fd00::1 fe80::2"+port7, "RELAY-FORW 01 fd00::1 fe80::3\n    18 \"Eth9\""), "fd00::77"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := plain6()
			cfg.Relays = c.relays
			l := newLab6(t, cfg)
			l.server.SetReservations([]lease.Reservation{{Port: c.port, Name: "slot7", Address: netip.MustParseAddr("fd00::77")}})
			from := relayed7
			if c.packet == asks {
				from = onLink6
			}
			l.wants(c.packet, from, c.want)
		})
	}
}

// TestWhatIsPluggedIntoAnotherPortLeavesItsAddress6: and what is plugged in in its place has it at once, once
// that is renewed.
func TestWhatIsPluggedIntoAnotherPortLeavesItsAddress6(t *testing.T) {
	cfg := plain6()
	cfg.Relays = []string{"fd00:9::2"}
	l := newLab6(t, cfg)
	l.server.SetReservations([]lease.Reservation{{Port: model.RelayPort{CircuitID: "Eth1/7"}, Name: "slot7", Address: netip.MustParseAddr("fd00::77")}})
	const has = ia1 + "\n  5 fd00::77 00000000 00000000"
	l.wants(at6("REQUEST 000001\n 1 $client"+server6+ia1, port7+leaf1+saw6), relayed7, "fd00::77")
	stored := l.store.get(netip.MustParseAddr("fd00::77"))
	want := model.LeaseRelay{Address: netip.MustParseAddr("fd00::1"), CircuitID: "Eth1/7", RemoteID: "leaf1"}
	if stored.Relay != want || stored.Reserved != "slot7" || stored.MAC != mac6 {
		t.Errorf("stored lease of %s by %+v for %q, want %+v", stored.MAC, stored.Relay, stored.Reserved, want)
	}
	l.wants(at6("RENEW 000002\n 1 $client"+server6+has, port7+saw6), relayed7, "fd00::77")
	l.wants(at6("SOLICIT 000003"+duidEN6+ia1, port7+other6), relayed7, "fd00::10") // while the first has it
	l.wants(at6("RENEW 000004\n 1 $client"+server6+has, "\n    18 \"Eth1/8\""+saw6), relayed7)
	l.now = l.now.Add(2 * time.Hour)
	l.wants(at6("REQUEST 000005"+duidEN6+server6+ia1, port7+other6), relayed7, "fd00::77")
}
