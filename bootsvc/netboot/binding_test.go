package netboot

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestWhereTicketsMayBeUsed(t *testing.T) {
	const v4, v6 = "10.0.0.1", "fd00::1"
	addrs := func(all ...string) (list []netip.Addr) {
		for _, a := range all {
			list = append(list, netip.MustParseAddr(a))
		}
		return list
	}
	everyBinding := []Binding{BindLeases, BindFirst, BindNothing, ""}
	byLease := []Binding{BindLeases, ""}
	for title, tc := range map[string]struct {
		bindings []Binding
		clients  []string
		bound    Bound
		told     string // "" = it is served
	}{
		"1: not at another server's address":                   {everyBinding, []string{v4, v6, "127.0.0.1", "::1"}, Bound{Tenant: TenantOther}, toldOther},
		"1: nor for a server's discovery":                      {everyBinding, []string{v4, v6}, Bound{Tenant: TenantOther, Fresh: true}, toldOther},
		"1: nor if it was the first":                           {everyBinding, []string{v4}, Bound{Tenant: TenantOther, First: netip.MustParseAddr(v4)}, toldOther},
		"2: at its own address":                                {everyBinding, []string{v4, v6, "127.0.0.1", "::1"}, Bound{Tenant: TenantOwn}, ""},
		"2: at each of its own, whichever was the first":       {everyBinding, []string{v4}, Bound{Tenant: TenantOwn, First: netip.MustParseAddr("10.0.0.2"), Leased: addrs("10.0.0.2")}, ""},
		"3: an unknown interface is served for the discovery":  {everyBinding, []string{v4, v6}, Bound{Tenant: TenantUnknown, Fresh: true}, ""},
		"3: an unknown interface is not served otherwise":      {[]Binding{BindLeases, BindFirst, ""}, []string{v4, v6}, Bound{Tenant: TenantUnknown}, toldUnknown},
		"3: it is where nothing is bound":                      {[]Binding{BindNothing}, []string{v4, v6}, Bound{Tenant: TenantUnknown}, ""},
		"4: not without a lease where the server has one":      {byLease, []string{v4}, Bound{Leased: addrs("10.0.0.2")}, toldLeased},
		"4: nor for its discovery":                             {byLease, []string{v6}, Bound{Leased: addrs("fd00::2"), Fresh: true}, toldLeased},
		"4: one of several counts":                             {byLease, []string{v4, v6}, Bound{Leased: addrs("fd00::2", "10.0.0.2")}, toldLeased},
		"4: the machine that Ingot runs on needs none":         {everyBinding, []string{"127.0.0.1", "127.9.9.9", "::1"}, Bound{Leased: addrs("fd00::2", "10.0.0.2")}, ""},
		"4: leases count where they bind alone":                {[]Binding{BindFirst, BindNothing}, []string{v4, v6}, Bound{Leased: addrs("fd00::2", "10.0.0.2")}, ""},
		"5: without a lease where none is known":               {everyBinding, []string{v4, v6, "127.0.0.1", "::1"}, Bound{}, ""},
		"5: not the script where Ingot leases":                 {byLease, []string{v4, v6, "fe80::1"}, Bound{Tokenless: true, Leasing: true}, toldNoLease},
		"5: nor for its discovery":                             {byLease, []string{v4}, Bound{Tokenless: true, Leasing: true, Fresh: true}, toldNoLease},
		"5: the script where Ingot leases none":                {everyBinding, []string{v4, v6}, Bound{Tokenless: true}, ""},
		"5: with the token where Ingot leases":                 {everyBinding, []string{v4, v6}, Bound{Leasing: true}, ""},
		"5: the script on the machine that Ingot runs on":      {everyBinding, []string{"127.0.0.1", "::1"}, Bound{Tokenless: true, Leasing: true}, ""},
		"5: the script where leases bind not alone":            {[]Binding{BindFirst, BindNothing}, []string{v4, v6}, Bound{Tokenless: true, Leasing: true}, ""},
		"4: a lease of the other IP version counts: v4":        {byLease, []string{v4}, Bound{Leased: addrs("fd00::2")}, toldLeased},
		"4: a lease of the other IP version counts: v6":        {byLease, []string{v6, "fe80::1"}, Bound{Leased: addrs("10.0.0.2")}, toldLeased},
		"the first client goes on to be served: v4":            {everyBinding, []string{v4}, Bound{First: netip.MustParseAddr(v4)}, ""},
		"the first client goes on to be served: v6":            {everyBinding, []string{v6}, Bound{First: netip.MustParseAddr(v6)}, ""},
		"no other than the first is served":                    {[]Binding{BindFirst}, []string{v4, "127.0.0.1"}, Bound{First: netip.MustParseAddr("10.0.0.2")}, toldFirst},
		"no other than the first is served, for its discovery": {[]Binding{BindFirst}, []string{v6}, Bound{First: netip.MustParseAddr("fd00::2"), Fresh: true}, toldFirst},
		"who was first counts where it binds alone":            {[]Binding{BindLeases, BindNothing, ""}, []string{v4}, Bound{First: netip.MustParseAddr("10.0.0.2")}, ""},
	} {
		for _, binding := range tc.bindings {
			for _, client := range tc.clients {
				b := tc.bound
				b.Binding, b.Client = binding, netip.MustParseAddr(client)
				want := model.RefusedAddress
				if tc.told == "" {
					want = ""
				}
				if got, told := b.Refusal(); got != want || told != tc.told {
					t.Errorf("%s: %q, client %s: %q, %q", title, binding, client, got, told)
				}
			}
		}
	}
}

// rackRoom is a lease table and the servers beside it.
type rackRoom struct {
	leases  map[string]string             // MAC addresses by IP address
	servers map[string]model.ServerName   // by MAC address
	has     map[model.ServerName][]string // MAC addresses that servers are said to have
}

func (r rackRoom) Holder(a netip.Addr) (string, bool) {
	mac, ok := r.leases[a.String()]
	return mac, ok
}

func (r rackRoom) Leased(mac string) (all []netip.Addr) {
	for _, a := range slices.Sorted(maps.Keys(r.leases)) {
		if r.leases[a] == mac {
			all = append(all, netip.MustParseAddr(a))
		}
	}
	return all
}

func (r rackRoom) Offer(id string) (model.Offer, bool) {
	s, ok := r.servers[id]
	return model.Offer{Server: s}, ok
}

func (r rackRoom) MACs(s model.ServerName) []string { return r.has[s] }

func TestWhatIsKnownOfAClient(t *testing.T) {
	const own4, own6, other, guest, shared = "10.0.0.1", "fd00::1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
	room := rackRoom{
		leases:  map[string]string{own4: "m1", own6: "m1", other: "m2", guest: "m3", shared: "m4"},
		servers: map[string]model.ServerName{"m1": "s1", "m2": "s2", "52:54:00:77:00:01": "s1", "52:54:00:77:00:02": "s2"},
		has:     map[model.ServerName][]string{"s1": {"m1", "m4"}, "s2": {"m2", "m4"}},
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	claim := &model.Ticket{ID: "s1-2", Server: "s1", Purpose: model.PurposeClaim}
	used := func(what model.TicketThing, client string, refusal model.TicketRefusal) model.TicketUse {
		return model.TicketUse{What: what, Client: client, Refusal: refusal}
	}
	progress := func(p model.Progress) *model.Progress { p.Ticket = claim.ID; return &p }
	all := []netip.Addr{netip.MustParseAddr(own4), netip.MustParseAddr(shared), netip.MustParseAddr(own6)}
	for title, tc := range map[string]struct {
		binding Binding
		offer   model.Offer
		client  string
		want    Bound
	}{
		"its own lease, of IPv4":                         {BindLeases, model.Offer{Server: "s1", Ticket: claim}, own4, Bound{Tenant: TenantOwn}},
		"its own lease, of IPv6":                         {BindLeases, model.Offer{Server: "s1", Ticket: claim}, own6, Bound{Tenant: TenantOwn}},
		"its own, mapped into IPv6":                      {BindLeases, model.Offer{Server: "s1", Ticket: claim}, "::ffff:" + own4, Bound{Tenant: TenantOwn}},
		"another's":                                      {BindLeases, model.Offer{Server: "s1", Ticket: claim}, other, Bound{Tenant: TenantOther}},
		"another's, of a server without a ticket":        {BindLeases, model.Offer{Server: "s1"}, other, Bound{Tenant: TenantOther, Fresh: true}},
		"nobody's that is known":                         {BindLeases, model.Offer{Server: "s1", Ticket: claim}, guest, Bound{Tenant: TenantUnknown}},
		"one that two servers are said to have":          {BindLeases, model.Offer{Server: "s2", Ticket: claim}, shared, Bound{Tenant: TenantOwn}},
		"one that two others are said to have":           {BindLeases, model.Offer{Server: "s3", Ticket: claim}, shared, Bound{Tenant: TenantUnknown}},
		"its own, made of its MAC address":               {BindLeases, model.Offer{Server: "s1", Ticket: claim}, "fe80::5054:ff:fe77:1", Bound{Tenant: TenantOwn}},
		"another's, made of its MAC address":             {BindNothing, model.Offer{Server: "s1", Ticket: claim}, "fd00::5054:ff:fe77:2", Bound{Tenant: TenantOther}},
		"none, made of a MAC address that nobody has":    {BindLeases, model.Offer{Server: "s1", Ticket: claim}, "fe80::5054:ff:fe77:3", Bound{Leased: all}},
		"none, of random bits":                           {BindLeases, model.Offer{Server: "s1", Ticket: claim}, "fe80::5054:ff:aa77:1", Bound{Leased: all}},
		"none":                                           {BindLeases, model.Offer{Server: "s1", Ticket: claim}, "10.9.9.9", Bound{Leased: all}},
		"none, where nothing is bound":                   {BindNothing, model.Offer{Server: "s1", Ticket: claim}, "10.9.9.9", Bound{}},
		"none, before the first client":                  {BindFirst, model.Offer{Server: "s1", Ticket: claim}, "10.9.9.9", Bound{}},
		"the first that was served counts":               {BindFirst, model.Offer{Server: "s1", Ticket: claim, Progress: progress(model.Progress{ScriptAt: now, Client: "10.9.9.7", Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.5", model.RefusedToken), used(model.ThingImage, "10.9.9.6", ""), used(model.ThingIgnition, "fd00::9", ""), used(model.ThingScript, "10.9.9.8", ""), used(model.ThingScript, "10.9.9.7", "")}})}, "10.9.9.9", Bound{First: netip.MustParseAddr("10.9.9.8")}},
		"the first of its IP version does":               {BindFirst, model.Offer{Server: "s1", Ticket: claim, Progress: progress(model.Progress{Uses: []model.TicketUse{used(model.ThingScript, "10.9.9.8", ""), used(model.ThingCloudInit, "fd00::9", "")}})}, "fd00::7", Bound{First: netip.MustParseAddr("fd00::9")}},
		"before uses are written down its stage does":    {BindFirst, model.Offer{Server: "s1", Ticket: claim, Progress: progress(model.Progress{ScriptAt: now, Client: "10.9.9.8"})}, "10.9.9.9", Bound{First: netip.MustParseAddr("10.9.9.8")}},
		"its stage of the other IP version does not":     {BindFirst, model.Offer{Server: "s1", Ticket: claim, Progress: progress(model.Progress{IgnitionAt: now, Client: "10.9.9.8"})}, "fd00::9", Bound{}},
		"who was only sent a loader is not the first":    {BindFirst, model.Offer{Server: "s1", Ticket: claim, Progress: progress(model.Progress{TFTPAt: now, Client: "10.9.9.8"})}, "10.9.9.9", Bound{}},
		"the first client of an older ticket is no more": {BindFirst, model.Offer{Server: "s1", Ticket: claim, Progress: &model.Progress{Ticket: "s1-1", ScriptAt: now, Client: "10.9.9.8"}}, "10.9.9.9", Bound{}},
	} {
		t.Run(title, func(t *testing.T) {
			b := Bindings{Binding: tc.binding, Leases: room, Servers: room}
			client := netip.MustParseAddr(tc.client).Unmap()
			tc.want.Binding, tc.want.Client = tc.binding, client
			got := b.bound(tc.offer, client)
			slices.SortFunc(got.Leased, netip.Addr.Compare)
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			reason, told := b.Refusal(tc.offer, netip.MustParseAddr(tc.client))
			if wantReason, wantTold := tc.want.Refusal(); reason != wantReason || told != wantTold {
				t.Errorf("refused %q %q, want %q %q", reason, told, wantReason, wantTold)
			}
		})
	}
}

func TestWhoIsAtAnAddress(t *testing.T) {
	room := rackRoom{leases: map[string]string{"10.0.0.1": "m1", "fd00::1": "m1", "10.0.0.3": "m3"}, servers: map[string]model.ServerName{"m1": "s1"}}
	known := Bindings{Leases: room, Servers: room}
	for title, tc := range map[string]struct {
		bindings Bindings
		client   string
		want     model.ServerName
	}{
		"the server that has the lease":              {known, "10.0.0.1", "s1"},
		"in whatever spelling":                       {known, "::ffff:10.0.0.1", "s1"},
		"over IPv6 too":                              {known, "fd00::1", "s1"},
		"nobody without a lease":                     {known, "10.0.0.9", ""},
		"nobody whose interface is no server's":      {known, "10.0.0.3", ""},
		"nobody in a network without leases at all":  {Bindings{}, "10.0.0.1", ""},
		"nobody where nothing is bound and no lease": {Bindings{Binding: BindNothing}, "10.0.0.1", ""},
	} {
		offer, ok := tc.bindings.At(netip.MustParseAddr(tc.client))
		if offer.Server != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q, %v", title, offer.Server, ok)
		}
	}
}

func TestBindingNames(t *testing.T) {
	for name, want := range map[string]Binding{"": BindLeases, "leases": BindLeases, "first-client": BindFirst, "nothing": BindNothing} {
		if got, err := ParseBinding(name); got != want || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	_, err := ParseBinding("Leases")
	if want := `"Leases" binds no boot ticket: allowed are leases, first-client and nothing`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
