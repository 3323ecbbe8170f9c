package lease

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

func TestWhoseAReservationIs(t *testing.T) {
	port := func(circuit, remote string) model.RelayPort {
		return model.RelayPort{CircuitID: circuit, RemoteID: remote}
	}
	all := []Reservation{
		{Port: port("Eth7", "sw1"), MAC: mac3, Address: addr("192.0.2.71")},
		{Port: port("Eth7", ""), Address: addr("192.0.2.72")},
		{Port: port("", "sw2"), Address: addr("192.0.2.73")},
		{ClientID: "0102", Address: addr("192.0.2.74")},
		{ClientID: "00030001aabb", Address: addr("192.0.2.75")},
		{ClientID: "6162", MAC: mac2, Address: addr("192.0.2.76")},
		{MAC: mac1, Address: addr("192.0.2.77")},
	}
	for name, tc := range map[string]struct {
		mac, clientID string
		port          model.RelayPort
		want          string
	}{
		"a MAC address": {mac: mac1, want: "192.0.2.77"},
		"a client identifier before a MAC address":       {mac: mac1, clientID: "0102", want: "192.0.2.74"},
		"a port before a client identifier":              {mac: mac1, clientID: "0102", port: port("Eth7", "sw9"), want: "192.0.2.72"},
		"a port of a relay before a port of any":         {mac: mac1, port: port("Eth7", "sw1"), want: "192.0.2.71"},
		"a port of any relay before any port of one":     {mac: mac1, port: port("Eth7", "sw2"), want: "192.0.2.72"},
		"any port of a relay":                            {mac: mac1, port: port("Eth9", "sw2"), want: "192.0.2.73"},
		"a port that nothing is reserved for":            {mac: mac1, port: port("Eth9", "sw9"), want: "192.0.2.77"},
		"the MAC address beside a port reserves nothing": {mac: mac3, want: "192.0.2.10"},
		"the DUID in a client identifier":                {mac: mac3, clientID: "ff00000001" + "00030001aabb", want: "192.0.2.75"},
		"the text in a client identifier":                {mac: mac3, clientID: "00" + "6162", want: "192.0.2.76"},
		"the MAC address beside a client identifier":     {mac: mac2, clientID: "0199", want: "192.0.2.76"},
		"another client identifier":                      {mac: mac3, clientID: "0103", want: "192.0.2.10"},
		"a part of a client identifier is not it":        {mac: mac3, clientID: "010203", want: "192.0.2.10"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(setup{})
			w.table.SetReservations(all)
			q := ask(w, tc.mac, "", t0)
			q.ClientID, q.Port = tc.clientID, tc.port
			l, err := w.table.Offer(q)
			if err != nil || l.Address != addr(tc.want) {
				t.Errorf("got %s, %v, want %s", l.Address, err, tc.want)
			}
		})
	}
}

// TestOneCardWithSeveralReservations: of one network card each link has its own address and options.
func TestOneCardWithSeveralReservations(t *testing.T) {
	other, v6 := hosts(), hosts()
	other.CIDR, other.Ranges, other.Gateway = netip.MustParsePrefix("198.51.100.0/24"), nil, netip.Addr{}
	v6.CIDR, v6.Ranges, v6.Gateway = netip.MustParsePrefix("fd00:9::/64"), nil, netip.Addr{}
	w := newWorld(setup{subnets: []Subnet{hosts(), other, v6}})
	w.table.SetReservations([]Reservation{
		{MAC: mac1, Name: "a", Address: addr("192.0.2.77"), Options: model.DHCPOptions{12: []byte("a")}},
		{MAC: mac1, Name: "b", Address: addr("198.51.100.77")},
		{MAC: mac1, Name: "c", Address: addr("fd00:9::77"), Options: model.DHCPOptions{12: []byte("c")}},
	})
	for i, want := range []struct{ address, name string }{{"192.0.2.77", "a"}, {"198.51.100.77", ""}, {"fd00:9::77", "c"}} {
		q := ask(w, mac1, "", t0)
		q.Subnets = w.network.Subnets[i : i+1]
		l, err := w.table.Offer(q)
		if err != nil || l.Address != addr(want.address) {
			t.Fatalf("got %s, %v, want %s", l.Address, err, want.address)
		}
		commitNow(t, w, l)
		if got := string(w.table.Options(q)[12]); got != want.name {
			t.Errorf("%s: host name %q, want %q", want.address, got, want.name)
		}
	}
	if got := w.table.Addresses([]string{mac1}, t0); len(got) != 3 {
		t.Errorf("it has %s", got)
	}
}

func TestADeviceThatIsPluggedInElsewhereLeavesThePortsAddress(t *testing.T) {
	w := newWorld(setup{})
	w.table.SetReservations([]Reservation{{Port: model.RelayPort{CircuitID: "Eth7"}, Address: addr("192.0.2.77")}})
	at := func(circuit string) Query {
		q := ask(w, mac1, "", t0)
		q.Port = model.RelayPort{CircuitID: circuit}
		q.Relay = model.LeaseRelay{Address: addr("192.0.2.1"), CircuitID: circuit}
		return q
	}
	first, _ := w.table.Offer(at("Eth7"))
	commitNow(t, w, first)
	renews := ask(w, mac1, "192.0.2.77", t0.Add(30*time.Minute)) // by unicast, past its relay
	l, state := w.table.Renewal(renews)
	if state != RenewalKnown || l.Expires != t0.Add(90*time.Minute) || l.Relay.CircuitID != "Eth7" {
		t.Errorf("renewed past its relay: %v, %+v", state, l)
	}
	commitNow(t, w, l)
	moved, err := w.table.Offer(at("Eth9"))
	if err != nil || moved.Address != addr("192.0.2.10") {
		t.Fatalf("in another port: %s, %v", moved.Address, err)
	}
	commitNow(t, w, moved)
	q := at("Eth7")
	q.MAC = mac2
	if l, err := w.table.Offer(q); err != nil || l.Address != addr("192.0.2.77") {
		t.Errorf("the next in the port got %s, %v", l.Address, err)
	}
}

// TestALeaseEndsForAReservation: renewing it does not keep the address from its own device for ever.
func TestALeaseEndsForAReservation(t *testing.T) {
	w := newWorld(setup{})
	lease(t, w, mac1, t0)
	w.table.SetReservations([]Reservation{{MAC: mac2, Address: addr("192.0.2.10")}})
	renew := func(after time.Duration) (model.Lease, RenewalState) {
		l, state := w.table.Renewal(ask(w, mac1, "192.0.2.10", t0.Add(after)))
		if state >= RenewalFree {
			commitNow(t, w, l)
		}
		return l, state
	}
	for _, after := range []time.Duration{30 * time.Minute, 45 * time.Minute, 59 * time.Minute} {
		if l, state := renew(after); state != RenewalKnown || l.Expires != t0.Add(time.Hour) {
			t.Errorf("after %s: %v until %s, want until %s", after, state, l.Expires, t0.Add(time.Hour))
		}
	}
	if l, _ := w.table.Offer(ask(w, mac2, "", t0.Add(59*time.Minute))); l.Address == addr("192.0.2.10") {
		t.Error("its own device is offered it while the lease lasts")
	}
	if _, state := renew(59*time.Minute + 30*time.Second); state != RenewalTaken {
		t.Errorf("in its last minute: %v, want %v", state, RenewalTaken)
	}
	if l, err := w.table.Offer(ask(w, mac2, "", t0.Add(time.Hour+time.Second))); err != nil || l.Address != addr("192.0.2.10") {
		t.Errorf("its own device got %s, %v", l.Address, err)
	}
}

func TestTheAddressOfAReservedServerDoesNotEndForAReservation(t *testing.T) {
	w := newWorld(setup{Options: Options{Keep: func(mac string) bool { return mac == mac1 }}})
	lease(t, w, mac1, t0)
	w.table.SetReservations([]Reservation{{MAC: mac2, Address: addr("192.0.2.10")}})
	l, state := w.table.Renewal(ask(w, mac1, "192.0.2.10", t0.Add(30*time.Minute)))
	if state != RenewalKnown || l.Expires != t0.Add(90*time.Minute) {
		t.Errorf("%v until %s", state, l.Expires)
	}
}

func TestCardsThatShareAReservationDoNotStealIt(t *testing.T) {
	w := newWorld(setup{})
	w.table.SetReservations([]Reservation{{ClientID: "ff00aabb", Name: "machine", Address: addr("192.0.2.77")}})
	by := func(mac, wish string, now time.Time) Query {
		q := ask(w, mac, wish, now)
		q.ClientID = "ff00aabb"
		return q
	}
	first, err := w.table.Offer(by(mac1, "", t0))
	if err != nil || first.Address != addr("192.0.2.77") {
		t.Fatalf("offered %s, %v", first.Address, err)
	}
	second, err := w.table.Offer(by(mac2, "", t0))
	if err != nil || second.Address == first.Address {
		t.Errorf("the other card is offered %s, %v", second.Address, err)
	}
	for mac, a := range map[string]netip.Addr{mac1: first.Address, mac2: second.Address} {
		if l, state := w.table.Renewal(by(mac, a.String(), t0)); state != RenewalFree {
			t.Errorf("%s asks for %s that it was offered: %v, %+v", mac, a, state, l)
		}
	}
}

func TestALeaseSaysWhichEndpointWithoutMACAddressReservesIt(t *testing.T) {
	w := newWorld(setup{})
	w.table.SetReservations([]Reservation{
		{ClientID: "ff00aabb", Name: "by-client", Address: addr("192.0.2.77")}, {MAC: mac2, Name: "by-mac", Address: addr("192.0.2.78")},
	})
	for mac, want := range map[string]string{mac1: "by-client", mac2: "", mac3: ""} {
		q := ask(w, mac, "", t0)
		if mac == mac1 {
			q.ClientID = "ff00aabb"
		}
		l, err := w.table.Offer(q)
		if err != nil || l.Reserved != want {
			t.Errorf("%s: %q, %v, want %q", mac, l.Reserved, err, want)
		}
	}
}

func TestNobodyHasAllOfAPoolSetAside(t *testing.T) {
	net := hosts()
	net.Ranges = []Range{rangeOf("192.0.2.10-192.0.2.29")}
	w := newWorld(setup{subnets: []Subnet{net}})
	for {
		l := must.Get(w.table.Offer(ask(w, mac1, "", t0)))(t)
		aside, offered := w.table.SetAside(ask(w, mac1, l.Address.String(), t0))
		if !offered {
			t.Fatalf("%s is not offered", l.Address)
		}
		if !aside.Address.IsValid() {
			break
		}
	}
	if _, err := w.table.Offer(ask(w, mac2, "", t0.Add(setAside/2))); err != nil {
		t.Errorf("another client: %v", err)
	}
}

// TestOnlyWhatItsClientIsOfferedIsSetAside: of clients whose MAC address nothing shows, each is another.
func TestOnlyWhatItsClientIsOfferedIsSetAside(t *testing.T) {
	w := newWorld(setup{subnets: []Subnet{hosts()}})
	q := ask(w, "", "", t0)
	q.ClientID, q.IAID = "000200000009aa", 1
	l := must.Get(w.table.Offer(q))(t)
	q.Wish = l.Address
	other := q
	other.ClientID = "000200000009bb"
	if _, offered := w.table.SetAside(other); offered {
		t.Error("another client's offer was set aside")
	}
	if _, offered := w.table.SetAside(q); !offered {
		t.Error("its own was not")
	}
}

func TestWhatIsReservedOfARangeIsUsed(t *testing.T) {
	w := newWorld(setup{}) // of three addresses
	used := func() uint64 { return w.table.Pools(t0)[0].Used }
	in, out := Reservation{MAC: mac1, Name: "in", Address: addr("192.0.2.11")}, Reservation{MAC: mac2, Name: "out", Address: addr("192.0.2.99")}
	for _, c := range []struct {
		title    string
		reserved []Reservation
		want     uint64
	}{
		{"nothing", nil, 0},
		{"an address of the range and another", []Reservation{in, out}, 1},
		{"the same, read again", []Reservation{in, out}, 1},
		{"nothing any more", nil, 0},
	} {
		if w.table.SetReservations(c.reserved); used() != c.want {
			t.Errorf("%s is reserved: %d addresses are used, want %d", c.title, used(), c.want)
		}
	}
	w.table.SetReservations([]Reservation{in})
	if lease(t, w, mac1, t0); used() != 1 {
		t.Errorf("%d addresses are used once the one that is reserved is leased", used())
	}
}

func TestAReservationThatNobodyCanBeGivenIsSaid(t *testing.T) {
	var log strings.Builder
	w := newWorld(setup{Options: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}})
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for line := range strings.Lines(log.String()) {
			_, said, _ := strings.Cut(line, "its device gets another\" ")
			got = append(got, strings.TrimSpace(said))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the log says %q, want %q", got, want)
		}
		log.Reset()
	}
	all := []Reservation{
		{Name: "gateway", MAC: mac1, Address: addr("192.0.2.1")}, {Name: "last", MAC: mac2, Address: addr("192.0.2.255")},
		{Name: "own", MAC: mac3, Address: addr("192.0.2.2")}, {Name: "elsewhere", MAC: mac3, Address: addr("198.51.100.1")},
	}
	w.table.SetReservations(all)
	expect(`endpoint=gateway address=192.0.2.1 because="it is the gateway of network hosts"`,
		`endpoint=last address=192.0.2.255 because="it is the first or the last address of a subnet of network hosts"`)
	w.table.SetReservations(all)
	expect() // again
	w.table.SetOwn(map[netip.Addr]bool{addr("192.0.2.2"): true})
	expect(`endpoint=own address=192.0.2.2 because="it is an address of this machine"`)
}
