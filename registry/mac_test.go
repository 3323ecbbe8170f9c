package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func withNICs(server int, macs ...string) *model.ServerFacts {
	f := &model.ServerFacts{Name: model.ServerName(fmt.Sprint("server-", server)), Inventory: &model.Inventory{}}
	for _, mac := range macs {
		f.Inventory.NetworkInterfaces = append(f.Inventory.NetworkInterfaces, model.NetworkInterface{MACAddress: mac})
	}
	return f
}

func nicReport(nics, interfaces []string) *model.ProbeReport {
	p := &model.ProbeReport{ReceivedAt: now}
	for _, mac := range nics {
		p.Data.NICs = append(p.Data.NICs, model.ProbeNIC{MAC: mac})
	}
	for _, mac := range interfaces {
		p.Data.NetworkInterfaces = append(p.Data.NetworkInterfaces, model.ProbeNetworkInterface{MACAddress: mac})
	}
	return p
}

// saveProbe stores a report as the endpoint does.
func saveProbe(t *testing.T, r *Registry, server int, p *model.ProbeReport) {
	t.Helper()
	var e encoder
	e.set(bucketProbe, fmt.Sprint("server-", server), p)
	if err := r.write(t.Context(), always(e.batch)); err != nil {
		t.Fatal(err)
	}
}

func TestOfferByMAC(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	bare := serverRecord(4, model.PurposeDiscovery)
	bare.Ticket = nil
	save(t, r, Changes{
		Servers: []*model.ServerRecord{
			serverRecord(1, model.PurposeDiscovery), serverRecord(2, model.PurposeDiscovery), serverRecord(3, model.PurposeDiscovery), bare,
		},
		ServerFacts: []*model.ServerFacts{
			withNICs(1, macOf(1), macOf(10), macOf(10), "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "", "no MAC"),
			withNICs(2, macOf(2), macOf(23)), withNICs(3), withNICs(4, macOf(4)), withNICs(9, macOf(9)),
		},
	})
	saveProbe(t, r, 1, nicReport([]string{strings.ToUpper(macOf(1)), macOf(11)}, []string{macOf(12)}))
	saveProbe(t, r, 3, nicReport([]string{macOf(23), macOf(3)}, nil))
	cases := map[string]struct{ id, want string }{
		"an interface that the BMC and the probe know":    {macOf(1), "server-1-1"},
		"an interface that the BMC knows twice":           {macOf(10), "server-1-1"},
		"a card that the probe found":                     {macOf(11), "server-1-1"},
		"an interface that the probe found":               {macOf(12), "server-1-1"},
		"dashes, as iPXE writes them":                     {strings.ReplaceAll(macOf(2), ":", "-"), "server-2-1"},
		"capitals":                                        {strings.ToUpper(macOf(3)), "server-3-1"},
		"two servers have it":                             {macOf(23), ""},
		"a server without a ticket":                       {macOf(4), "server-4"},
		"a server without a record":                       {macOf(9), ""},
		"nobody has it":                                   {macOf(99), ""},
		"all zeros, as of an interface without a card":    {"00:00:00:00:00:00", ""},
		"everybody's":                                     {"ff:ff:ff:ff:ff:ff", ""},
		"a group's":                                       {"01:00:5e:00:00:01", ""},
		"a digit too few":                                 {"02:00:00:00:00:1", ""},
		"the system UUID still names the server":          {uuidOf(1), "server-1-1"},
		"a UUID that ends in a MAC address is not that's": {"00000000-0000-0000-0000-020000000001", ""},
	}
	check := func(t *testing.T, r *Registry) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				offer, ok := r.Offer(c.id)
				got := string(offer.Server)
				if offer.Ticket != nil {
					got = offer.Ticket.ID
				}
				if got != c.want || ok != (c.want != "") {
					t.Errorf("got %q, %v; want %q", got, ok, c.want)
				}
			})
		}
	}
	check(t, r)
	_ = r.Close()
	r = lead(t, o)
	check(t, r)
	save(t, r, Changes{DeleteServers: []model.ServerName{"server-2"}})
	if offer, ok := r.Offer(macOf(23)); !ok || offer.Ticket.ID != "server-3-1" {
		t.Errorf("after the other server is gone: %v %v", offer, ok)
	}
	if _, ok := r.Offer(macOf(2)); ok {
		t.Error("a deleted server still has an offer")
	}
}

func TestServersMACs(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	save(t, r, Changes{
		Servers: []*model.ServerRecord{serverRecord(1, model.PurposeDiscovery), serverRecord(2, model.PurposeDiscovery)},
		ServerFacts: []*model.ServerFacts{
			withNICs(1, macOf(3), strings.ToUpper(macOf(11)), "00:00:00:00:00:00", "no MAC"), withNICs(2),
		},
	})
	saveProbe(t, r, 1, nicReport([]string{macOf(3), macOf(2)}, []string{macOf(1)}))
	saveProbe(t, r, 3, nicReport(nil, []string{macOf(7)}))
	want := map[model.ServerName][]string{
		"server-1": {macOf(1), macOf(2), macOf(3), macOf(11)}, "server-2": nil, "server-3": {macOf(7)}, "server-9": nil,
	}
	check := func(when string, r *Registry) {
		t.Helper()
		for server, macs := range want {
			if diff := cmp.Diff(macs, r.MACs(server)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", when, server, diff)
			}
		}
	}
	check("saved", r)
	_ = r.Close()
	r = lead(t, o)
	check("read again", r)
	save(t, r, Changes{ServerFacts: []*model.ServerFacts{withNICs(1, macOf(5))}, DeleteServers: []model.ServerName{"server-3"}})
	want["server-1"], want["server-3"] = []string{macOf(1), macOf(2), macOf(3), macOf(5)}, nil
	check("another inventory", r)
}

// The index says what a look through everything says, after any history.
func TestMACIndexIsAsEverythingSays(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 2))
		some := func() (macs []string) {
			for range random.IntN(4) {
				macs = append(macs, macOf(random.IntN(8)))
			}
			return macs
		}
		m := newMemory()
		for step := range 60 {
			name := fmt.Sprint("server-", random.IntN(4))
			ch := change{key: key{bucketServerFacts, name}}
			var v any = withNICs(0, some()...)
			if random.IntN(2) == 0 {
				ch.bucket, v = bucketProbe, nicReport(some(), some())
			}
			if random.IntN(4) > 0 {
				ch.value, _ = json.Marshal(v)
			}
			if step%20 == 19 { // a standby loads everything again
				all, err := m.all()
				if err != nil {
					t.Fatal(err)
				}
				m.reset(all)
			}
			m.apply(batch{ch})
			compareMACs(t, m)
		}
	}
}

func compareMACs(t *testing.T, m *memory) {
	t.Helper()
	want := make(map[macAddress]map[model.ServerName]bool)
	note := func(server model.ServerName, text string) {
		mac, _ := parseMAC(text)
		if want[mac] == nil {
			want[mac] = make(map[model.ServerName]bool)
		}
		want[mac][server] = true
	}
	for name, f := range m.state.ServerFacts {
		for _, nic := range f.Inventory.NetworkInterfaces {
			note(name, nic.MACAddress)
		}
	}
	for name, p := range m.state.Probes {
		for _, nic := range p.Data.NICs {
			note(name, nic.MAC)
		}
		for _, i := range p.Data.NetworkInterfaces {
			note(name, i.MACAddress)
		}
	}
	got := make(map[macAddress]map[model.ServerName]bool)
	for mac, servers := range m.byMAC {
		got[mac] = make(map[model.ServerName]bool)
		for _, s := range servers {
			got[mac][s] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("index (-want +got):\n%s", diff)
	}
	macs := make(map[model.ServerName][]string)
	for _, mac := range slices.SortedFunc(maps.Keys(want), func(a, b macAddress) int { return bytes.Compare(a[:], b[:]) }) {
		for server := range want[mac] {
			macs[server] = append(macs[server], mac.String())
		}
	}
	if diff := cmp.Diff(macs, m.macs); diff != "" {
		t.Fatalf("MAC addresses of servers (-want +got):\n%s", diff)
	}
	for mac, servers := range want {
		only, ok := m.byMAC.only(mac)
		if ok != (len(servers) == 1) || ok && !slices.Contains(slices.Collect(maps.Keys(servers)), only) {
			t.Fatalf("%s: %q %v of %v", mac, only, ok, servers)
		}
	}
}

func TestMACAddressesAreReadAsModelReadsThem(t *testing.T) {
	for _, text := range []string{
		"02:00:5e:10:00:aB", "02-00-5E-10-00-AB", "0200.5e10.00ab", "02005e1000ab",
		"", "02:00:5e:10:00", "02:00-5e:10:00:ab", "02:00:5e:10:00:ag", "02:00:5e:10:00:a ", "0:200:5e:10:00:ab",
	} {
		canonical, err := model.CanonicalMAC(text)
		mac, ok := parseMAC(text)
		if ok != (err == nil) || ok && mac.String() != canonical {
			t.Errorf("%q: %s %v, want %q %v", text, mac, ok, canonical, err)
		}
	}
}
