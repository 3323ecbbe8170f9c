package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/store"
)

func withMACs(rec *model.ServerRecord, by model.MACSource, macs ...string) *model.ServerRecord {
	for _, mac := range macs {
		rec.MACs = append(rec.MACs, model.ServerMAC{Address: mac, IdentifiedBy: by})
	}
	return rec
}

func nicReport(macs ...string) *model.ProbeReport {
	p := &model.ProbeReport{ReceivedAt: now}
	for _, mac := range macs {
		p.Data.NICs = append(p.Data.NICs, model.ProbeNIC{MAC: mac})
		p.Data.NetworkInterfaces = append(p.Data.NetworkInterfaces, model.ProbeNetworkInterface{MACAddress: mac})
	}
	return p
}

func saveProbe(t *testing.T, r *Registry, server int, p *model.ProbeReport) {
	t.Helper()
	var e encoder
	e.set(store.BucketProbe, fmt.Sprint("server-", server), p)
	must.Do(t, r.write(t.Context(), always(e.batch)))
}

func TestOfferByMAC(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	r := lead(t, o)
	bare := serverRecord(4, model.PurposeDiscovery)
	bare.Boot.Ticket = nil
	discovered := func(n int) *model.ServerRecord { return serverRecord(n, model.PurposeDiscovery) }
	save(t, r, Changes{
		Servers: []*model.ServerRecord{
			withMACs(
				withMACs(discovered(1), model.MACByBMC, macOf(1), macOf(24), macOf(25)),
				model.MACByGit, macOf(10), "00:00:00:00:00:00", "01:00:5e:00:00:01", "no MAC",
			),
			withMACs(discovered(2), model.MACByBMC, macOf(2), macOf(23), macOf(10)),
			withMACs(discovered(3), model.MACByBMC, macOf(23), macOf(3)),
			withMACs(bare, model.MACByBMC, macOf(4)),
			withMACs(discovered(5), model.MACBySighting, macOf(5), macOf(24), macOf(26)),
			withMACs(discovered(6), model.MACBySighting, macOf(26)),
			discovered(7),
		},
	})
	saveProbe(t, r, 1, nicReport(macOf(11)))
	saveProbe(t, r, 7, nicReport(macOf(1), macOf(7)))
	cases := map[string]struct{ id, want string }{
		"one that its BMC shows":                          {macOf(1), "server-1-1"},
		"one that Git gives it, and another's BMC shows":  {macOf(10), "server-1-1"},
		"one that a BMC shows, and another's probe told":  {macOf(24), "server-1-1"},
		"a server of before whose BMC shows none":         {macOf(5), "server-5-1"},
		"one that its probe alone reported":               {macOf(11), ""},
		"one that only a report told":                     {macOf(7), ""},
		"dashes, as iPXE writes them":                     {strings.ReplaceAll(macOf(2), ":", "-"), "server-2-1"},
		"capitals":                                        {strings.ToUpper(macOf(3)), "server-3-1"},
		"two systems show it":                             {macOf(23), ""},
		"two servers are believed to have it":             {macOf(26), ""},
		"a server without a ticket":                       {macOf(4), "server-4"},
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
				holder, ok := r.Boots.Find(c.id)
				got := string(holder.Server)
				if holder.Ticket != nil {
					got = holder.Ticket.ID
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
	remove(t, r, "server-2", serverBuckets...)
	if holder, ok := r.Boots.Find(macOf(23)); !ok || holder.Ticket.ID != "server-3-1" {
		t.Errorf("after the other server is gone: %v %v", holder, ok)
	}
	if _, ok := r.Boots.Find(macOf(2)); ok {
		t.Error("a deleted server still has a ticket")
	}
}

// What no record has yet is believed of a machine that asks under a server's UUID while it is
// discovered: the discovery proves it or fails.
func TestSightingsCountWhileAServerIsDiscovered(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(1, model.PurposeDiscovery)
	rec.Life.State = model.StateInitial
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	ticket := rec.Boot.Ticket
	sight := func(macs ...string) {
		t.Helper()
		for _, mac := range macs {
			must.Do(t, r.Boots.NoteSighting(t.Context(), ticket, mac))
		}
	}
	check := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, r.Boots.MACs("server-1"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	sight(macOf(1), macOf(2))
	check("before it was powered on")
	late := *rec
	late.Power.Asked = &model.PowerAsked{Want: model.PowerOn, At: time.Now().Add(time.Hour)}
	save(t, r, Changes{Servers: []*model.ServerRecord{&late}})
	check("when they asked before it was powered on")
	on := *rec
	on.Power.Asked = &model.PowerAsked{Want: model.PowerOn, At: ticket.ArmedAt}
	save(t, r, Changes{Servers: []*model.ServerRecord{&on}})
	check("once it was powered on", macOf(1), macOf(2))
	if holder, ok := r.Boots.Find(macOf(2)); !ok || holder.Server != "server-1" {
		t.Errorf("got %v %v, want its ticket", holder, ok)
	}
	save(t, r, Changes{Servers: []*model.ServerRecord{withMACs(serverRecord(7, model.PurposeDiscovery), model.MACBySighting, macOf(2))}})
	if holder, ok := r.Boots.Find(macOf(2)); !ok || holder.Server != "server-7" {
		t.Errorf("got %v %v: a server lost its MAC address to one that is being discovered", holder, ok)
	}
	remove(t, r, "server-7", serverBuckets...)
	off := on
	off.Life.State, off.Power.Asked = model.StateDiscovery, &model.PowerAsked{Want: model.PowerOff, At: now}
	save(t, r, Changes{Servers: []*model.ServerRecord{&off}})
	check("while it goes off", macOf(1), macOf(2))
	known := off
	known.MACs = []model.ServerMAC{{Address: macOf(3), IdentifiedBy: model.MACByBMC}}
	save(t, r, Changes{Servers: []*model.ServerRecord{&known}})
	check("once its BMC showed one", macOf(3))
	sight(macOf(3))
	if n := len(r.Observed().Progress["server-1"].Sightings); n != 2 {
		t.Errorf("%d sightings are kept, want 2 without the one that is known", n)
	}
	save(t, r, Changes{Servers: []*model.ServerRecord{&off}})
	for n := range model.MaxSightings {
		sight(macOf(10 + n))
	}
	if p := r.Observed().Progress["server-1"]; len(p.Sightings) != model.MaxSightings || !p.SightedMore {
		t.Errorf("%d sightings are kept, more is %v; want %d and true", len(p.Sightings), p.SightedMore, model.MaxSightings)
	}
	ended, spent := off, *ticket
	spent.Ended, ended.Boot.Ticket = model.TicketSpent, &spent
	save(t, r, Changes{Servers: []*model.ServerRecord{&ended}})
	check("after its ticket")
	if err := r.Boots.NoteSighting(t.Context(), ticket, macOf(5)); !errors.Is(err, model.ErrTicketSpent) {
		t.Errorf("got %v, want model.ErrTicketSpent", err)
	}
}

// The index says what a look through everything says, after any history.
func TestMACIndexIsAsEverythingSays(t *testing.T) {
	sources := []model.MACSource{model.MACByGit, model.MACByBMC, model.MACBySighting}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 2))
		m := newMemory()
		for step := range 60 {
			n := random.IntN(4)
			rec := serverRecord(n, model.PurposeDiscovery)
			for range random.IntN(4) {
				withMACs(rec, sources[random.IntN(len(sources))], macOf(random.IntN(8)))
			}
			ch := store.Change{Key: store.Key{Bucket: store.BucketServer, Name: string(rec.Name)}}
			if random.IntN(4) > 0 {
				ch.Value, _ = json.Marshal(rec)
			}
			if step%20 == 19 { // a standby loads everything again
				all := must.Get(m.all())(t)
				m.reset(all)
			}
			m.apply(store.Batch{ch})
			compareMACs(t, m)
		}
	}
}

func compareMACs(t *testing.T, m *memory) {
	t.Helper()
	by := make(map[model.MAC]map[int][]model.ServerName) // by weight of the source
	for name, rec := range m.state.Servers {
		for _, held := range rec.MACs {
			mac, _ := model.ParseMAC(held.Address)
			if by[mac] == nil {
				by[mac] = make(map[int][]model.ServerName)
			}
			if w := weight(held.IdentifiedBy); !slices.Contains(by[mac][w], name) {
				by[mac][w] = append(by[mac][w], name)
			}
		}
	}
	if len(by) != len(m.servers.byMAC) {
		t.Fatalf("%d MAC addresses are indexed, want %d", len(m.servers.byMAC), len(by))
	}
	for mac, servers := range by {
		best := servers[slices.Max(slices.Collect(maps.Keys(servers)))]
		got := m.servers.withMAC(mac)
		slices.Sort(got)
		slices.Sort(best)
		if !slices.Equal(got, best) {
			t.Fatalf("%s: %q of %v", mac, got, servers)
		}
		for name := range m.state.Servers {
			if has := slices.Contains(m.macsOf(name), mac.String()); has != slices.Equal(got, []model.ServerName{name}) {
				t.Fatalf("%s is among the MAC addresses of %s: %v, of %v", mac, name, has, servers)
			}
		}
	}
}
