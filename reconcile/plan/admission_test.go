package plan_test

import (
	"slices"
	"strings"
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
)

const systemOne, systemTwo = "/redfish/v1/Systems/1", "/redfish/v1/Systems/2"

// showing is a plan's input in which BMCs show these systems.
func showing(bmcs map[model.BMCName][]model.SystemFact) *input {
	in := &input{Desired: model.NewDesired(), Observed: model.NewObserved(), Policy: policy.Default(), Now: fleettest.Now}
	for name, systems := range bmcs {
		in.Desired.Add(&model.BMC{Meta: model.Meta{Name: string(name)}})
		in.Observed.BMCFacts[name] = &model.BMCFacts{Name: name, Systems: systems}
	}
	return in
}

func TestWhoGivesAUUID(t *testing.T) {
	type servers = []*model.Server
	numbered := func(serial string) model.Board { return model.Board{SerialNumber: serial, Model: "M"} }
	behind := func(bmc, uri string) servers { return servers{uuidOf("s", bmc, uri, fleettest.GivenUUID)} }
	board, given, none := numbered("S1"), behind("b", ""), "no serial number of its own"
	for name, tc := range map[string]struct {
		board   model.Board
		twoOf   bool // the BMC shows another system, too
		servers servers
		want    string // the name of the server, or a part of the problem
	}{
		"the Server of its BMC": {board: board, servers: given, want: "s"},
		"the Server that describes its BMC": {board: board, want: "b", servers: servers{{
			Meta: model.Meta{Name: "b"}, Spec: model.ServerSpec{SystemUUID: fleettest.GivenUUID, BMC: &model.BMCAccess{}},
		}}},
		"not that of another BMC":    {board: board, servers: behind("c", ""), want: "write a Server with spec.bmcRef and"},
		"not that of another system": {board: board, servers: behind("b", systemTwo), want: "write a Server"},
		"of two systems the one with its URI": {board: board, twoOf: true, want: "s", servers: servers{
			uuidOf("r", "b", systemTwo, "00000000-0000-4000-8000-00000000000b"), uuidOf("s", "b", systemOne, fleettest.GivenUUID),
		}},
		"of two systems none without a URI":            {board: board, twoOf: true, servers: given, want: "write a Server with spec.bmcRef, spec.systemURI and"},
		"no Server, for a board without serial number": {board: numbered(""), servers: given, want: "no serial number"},
		"nor for one with its vendor's placeholder":    {board: numbered("To be filled by O.E.M."), servers: given, want: none},
		"nor for one with another placeholder":         {board: numbered(" Default string"), servers: given, want: none},
		"no Server without a UUID":                     {board: board, servers: servers{uuidOf("s", "b", "", "")}, want: "write a Server"},
	} {
		t.Run(name, func(t *testing.T) {
			systems := []model.SystemFact{{URI: systemOne, Board: tc.board}}
			if tc.twoOf {
				systems = append(systems, model.SystemFact{URI: systemTwo, UUID: "00000000-0000-4000-8000-00000000000c"})
			}
			in := showing(map[model.BMCName][]model.SystemFact{"b": systems})
			for _, s := range tc.servers {
				in.Desired.Add(s)
			}
			r, got := plan.Plan(in), ""
			for _, s := range r.Servers {
				if s.Record.SystemURI == systemOne {
					got = string(s.Name)
				}
			}
			if got == "" {
				got = strings.Join(r.BMCs[0].Problems, "\n")
			}
			if got != tc.want && (len(tc.want) == 1 || !strings.Contains(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Two machines that Git says are in each other's place are followed there. An unread system stays
// where it is, because its UUID is not known.
func TestMachineThatItsBMCNoLongerShows(t *testing.T) {
	board := func(serial string) []model.SystemFact {
		return []model.SystemFact{{URI: "/1", Board: model.Board{SerialNumber: serial}}}
	}
	uuid := []model.SystemFact{{URI: "/1", UUID: fleettest.GivenUUID}}
	for name, tc := range map[string]struct {
		board    *model.Board
		old, new []model.SystemFact
		want     model.BMCName
	}{
		"one without a UUID while its BMC shows it":        {&model.Board{SerialNumber: "S1"}, board("S1"), board("S2"), "old"},
		"one without a UUID once its BMC shows another":    {&model.Board{SerialNumber: "S1"}, board("S2"), board("S1"), "new"},
		"one with a UUID while its BMC lists it unread":    {nil, []model.SystemFact{{URI: "/1", Unread: true}}, uuid, "old"},
		"one with a UUID once its BMC does not list it":    {nil, nil, uuid, "new"},
		"one with a UUID that both show may be either one": {nil, uuid, uuid, "old"},
	} {
		in := showing(map[model.BMCName][]model.SystemFact{"old": tc.old, "new": tc.new})
		in.Observed.Servers["s"] = &record{
			RecordIdentity: model.RecordIdentity{Name: "s", BMC: "old", SystemURI: "/1", UUID: fleettest.GivenUUID, Board: tc.board},
		}
		if tc.board != nil {
			in.Desired.Add(uuidOf("s", "new", "", fleettest.GivenUUID))
		}
		if at := stepOf(in, "s").After.BMC; at != tc.want {
			t.Errorf("%s is behind BMC %s, want %s", name, at, tc.want)
		}
	}
}

// An unknown machine may be each of several servers that were behind its BMC: the reason names the
// one at its place, and of several there the first by name.
func TestServerOfATakenPlaceIsStable(t *testing.T) {
	for range 20 {
		in := showing(map[model.BMCName][]model.SystemFact{"one": {{URI: "/1", UUID: fleettest.GivenUUID}}})
		for name, uri := range map[model.ServerName]string{"a": "/2", "c": "/1", "b": "/1", "d": "/3"} {
			in.Observed.Servers[name] = &record{
				RecordIdentity: model.RecordIdentity{Name: name, BMC: "one", SystemURI: uri, UUID: string(name)},
				Life:           model.RecordLife{State: model.StateReserved},
			}
		}
		if got := strings.Join(plan.Plan(in).BMCs[0].Problems, ""); !strings.Contains(got, "in its place was server b") {
			t.Fatalf("the BMC says %q, want server b", got)
		}
	}
}

// Of two machines with one UUID in both byte orders, a manifest is of the one that has no other; of
// two with one UUID it is of the first by name.
func TestWhoseManifestOneByUUIDIs(t *testing.T) {
	const uuid, swapped = "4c4c4544-0042-3010-8057-b5c04f4e3532", "44454c4c-4200-1030-8057-b5c04f4e3532"
	for name, tc := range map[string]struct {
		uuids []string // of the servers a, b, c
		other bool     // a has a manifest of its own
		says  string
		want  model.ServerName
	}{
		"in one byte order": {uuids: []string{uuid, swapped}, other: true, says: uuid, want: "b"},
		"in the other":      {uuids: []string{uuid, swapped}, other: true, says: swapped, want: "b"},
		"of three machines": {uuids: []string{uuid, uuid, uuid}, says: uuid, want: "a"},
	} {
		for range 20 {
			in := showing(nil)
			for i, id := range tc.uuids {
				n := model.ServerName("abc"[i : i+1])
				in.Observed.Servers[n] = &record{RecordIdentity: model.RecordIdentity{Name: n, UUID: id}}
			}
			if tc.other {
				in.Desired.Add(&model.Server{Meta: model.Meta{Name: "a"}})
			}
			in.Desired.Add(&model.Server{Meta: model.Meta{Name: "x"}, Spec: model.ServerSpec{SystemUUID: tc.says}})
			for _, s := range plan.Plan(in).Servers {
				if got := s.Manifest != nil && s.Manifest.Name == "x"; got != (s.Name == tc.want) {
					t.Fatalf("%s: it is of %s: %t, want that of %s", name, s.Name, got, tc.want)
				}
			}
		}
	}
}

// Two servers may have claims of one name: one is being released, one is the heir's.
func TestEachServersRemovalIsNoted(t *testing.T) {
	web := model.ClaimName("default/web")
	removedBy := func(tenant string) model.RemovedObject {
		return model.RemovedObject{Identity: web.Identity(), Removal: model.Removal{Revision: "r", Tenant: tenant}}
	}
	rec := func(name model.ServerName, tenant string) *record {
		return &record{RecordIdentity: model.RecordIdentity{Name: name}, Life: model.RecordLife{State: model.StateReserved}, Claim: model.RecordClaim{Name: web, Tenant: tenant}}
	}
	observed := model.NewObserved()
	observed.Servers = map[model.ServerName]*record{"s1": rec("s1", "beta"), "s2": rec("s2", "gamma"), "s3": rec("s3", "alpha")}
	observed.Fleet.Removed = []model.RemovedObject{removedBy("beta")}
	d := model.NewDesired()
	d.Removed = map[model.Identity][]model.Removal{web.Identity(): {removedBy("gamma").Removal}}
	in := &input{Now: fleettest.Now, Desired: d, Observed: observed, Policy: policy.Default()}
	in.Policy.Tenants = fleettest.Tenants
	for name, want := range map[model.ServerName]bool{"s1": true, "s2": true, "s3": false} {
		if got := stepOf(in, name).After.Release != nil; got != want {
			t.Errorf("%s is released: %t", name, got)
		}
	}
	noted := []model.RemovedObject{removedBy("beta"), removedBy("gamma")}
	if f := plan.Plan(in).Decided.Fleet; f == nil || !slices.Equal(f.Removed, noted) {
		t.Errorf("noted %+v, want %+v", f, noted)
	}
}

func TestAServerThatIsGivenUpStaysItsTenants(t *testing.T) {
	const reserved, released = model.StateReserved, model.StateReleased
	release := &model.Release{Claim: "default/web"}
	for name, c := range map[string]struct {
		state   model.ServerState
		tenant  string // whose the server is
		release *model.Release
		claim   string // whose the claim is
		want    bool
	}{
		"in use":                            {state: reserved, tenant: "beta", claim: "gamma"},
		"being released":                    {state: reserved, tenant: "beta", release: release, claim: "gamma", want: true},
		"Released":                          {state: released, tenant: "beta", claim: "gamma", want: true},
		"Released, and the claim is back":   {state: released, tenant: "beta", release: release, claim: "beta"},
		"Released by a record of before":    {state: released, claim: "gamma"},
		"Released, and no tenants any more": {state: released, tenant: "beta"},
	} {
		t.Run(name, func(t *testing.T) {
			in := showing(nil)
			in.Observed.Servers["s"] = &record{
				RecordIdentity: model.RecordIdentity{Name: "s"}, Life: model.RecordLife{State: c.state},
				Claim: model.RecordClaim{Name: "default/web", Tenant: c.tenant}, Release: c.release,
			}
			in.Desired.Add(claim("web", fleettest.OfTenant(c.claim)))
			if got := stepOf(in, "s").Claim == nil; got != c.want {
				t.Errorf("the claim of its name is another tenant's: %t", got)
			}
		})
	}
}
