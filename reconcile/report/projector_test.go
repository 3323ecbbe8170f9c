package report

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/world"
)

var randomChanges = flag.Int("changes", 1000, "random changes of TestDocumentsFollowTheirInputs")

func TestUnchangedDocumentsAreTheSame(t *testing.T) {
	in := plantest.BigFleet(50, 10)
	var p Projector
	first := reportBy(&p, in)
	var story Story
	story.Published(plan.Plan(in), first)
	fleettest.ChangeRecord(in.Observed, 3, func(r *model.ServerRecord) { r.Life.State = model.StateError; r.Life.Reason = "CleanupFailed" })
	second := reportBy(&p, in)
	story.Describe(in.Desired, plan.Plan(in), second)
	var changed []string
	for path, d := range second.Documents {
		if first.Documents[path] != d {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	want := []string{"README.md", "fleet.yaml", "racks/racks.svg", "serverclaims/default/c00003.yaml", "servers/bmc00003-system-0.yaml"}
	if diff := gocmp.Diff(want, changed); diff != "" {
		t.Errorf("changed documents (-want +got):\n%s", diff)
	}
	if want := "bmc00003-system-0: Reserved → Error (wipe failed) for default/c00003 +2"; second.Subject != want {
		t.Errorf("subject %q, want %q", second.Subject, want)
	}
}

// TestDocumentsFollowTheirInputs changes the inputs of a fleet at random. A document that the Projector keeps must
// equal the one of a new Projector, and a document that is equal to the one before must be the same one.
func TestDocumentsFollowTheirInputs(t *testing.T) {
	for seed := range uint64(max(1, *randomChanges/100)) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := variedFleet()
		leased := netip.MustParseAddr("192.0.2.50")
		var p Projector
		before := reportBy(&p, in)
		for step := range min(*randomChanges, 100) {
			var what string
			if r.IntN(20) == 0 {
				leased, what = leased.Next(), "lease"
				in.Addresses = map[model.ServerName][]netip.Addr{server0: {leased}, server1: {leased}}
			} else {
				what = changeInput(r, in)
			}
			result := plan.Plan(in)
			now, _ := p.Report(in, result, 1, model.Holder{})
			fresh, _ := new(Projector).Report(in, result, 1, model.Holder{})
			for path, want := range fresh.Documents {
				got, was := now.Documents[path], before.Documents[path]
				if got == nil || got.Text != want.Text || !reflect.DeepEqual(got.Object, want.Object) {
					t.Fatalf("seed %d, step %d, after a change of %s: %s is outdated (-want +got):\n%s", seed, step, what, path,
						gocmp.Diff(want, cmp.Or(got, &model.Document{}), gocmp.AllowUnexported(Document{}, place{}), gocmp.Comparer(func(a, b netip.Prefix) bool { return a == b })))
				}
				if was != nil && got != was && got.Text == was.Text && reflect.DeepEqual(got.Object, was.Object) {
					t.Fatalf("seed %d, step %d, after a change of %s: %s is equal and not the same", seed, step, what, path)
				}
			}
			if len(now.Documents) != len(fresh.Documents) {
				t.Fatalf("%d documents, want %d", len(now.Documents), len(fresh.Documents))
			}
			before = now
		}
	}
}

// variedFleet has objects of all kinds.
func variedFleet() *world.Input {
	in := shownFleet()
	d, o := in.Desired, in.Observed
	for name := range d.Claims {
		o.Claims[name] = &model.ClaimRecord{Name: name, FirstSeen: entered}
	}
	d.Endpoints["e"] = &model.Endpoint{Meta: model.Meta{Name: "e"}, Spec: model.EndpointSpec{MACAddress: "02:00:00:00:00:0a", IP: "192.0.2.77"}}
	d.BMCs["bmc00002"].Spec.Access, d.BMCs["bmc00002"].Spec.EndpointRef = nil, &model.LocalRef{Name: "e"}
	o.BMCs["bmc00002"].Address = "192.0.2.77:443"
	d.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: server1}}})
	d.Add(&model.ServerReadinessRule{Meta: model.Meta{Name: "rule"}})
	boot := fleettest.Claim("b")
	boot.BootConfiguration, boot.Spec.ServerRef = true, &model.LocalRef{Name: string(fleettest.ServerName(3))}
	d.Claims[boot.ClaimName()], o.Claims[boot.ClaimName()] = boot, &model.ClaimRecord{Name: boot.ClaimName()}
	for i := range 9 {
		name := fleettest.ServerName(i)
		fleettest.AddManifest(d, i, model.ServerSpec{})
		o.Probes[name] = &model.ProbeReport{Ticket: "t", Data: model.ProbeData{NetworkInterfaces: []model.ProbeNetworkInterface{{Name: "eth0", IPAddresses: []string{"192.0.2.60"}}}}}
		o.Progress[name], o.BootStates[name] = &model.Progress{Ticket: "t"}, &model.BootState{Ticket: "t", ReceivedAt: entered}
	}
	fleettest.ChangeRecord(o, 3, func(rec *model.ServerRecord) {
		rec.Life.State, rec.Claim.Name = model.StateReserved, boot.ClaimName()
	})
	fleettest.Ticketed(o, model.StateReserved, model.PurposeClaim)
	return in
}

// changeInput changes something in the inputs, as the store and Git do: an object that changes is another one.
func changeInput(r *rand.Rand, in *world.Input) string {
	d, o := in.Desired.Clone(), *in.Observed
	in.Desired, in.Observed = d, &o
	switch r.IntN(8) {
	case 0:
		o.Fleet = *copied(reflect.ValueOf(&o.Fleet)).Interface().(*model.FleetRecord)
		return "fleet" + vary(r, reflect.ValueOf(&o.Fleet).Elem(), 6)
	case 1:
		if d.Absent = nil; r.IntN(2) == 0 {
			a := absence([]model.ClaimName{claim0, "default/c00001", waiting0}[r.IntN(3)])
			a.Token = fmt.Sprint("T", r.IntN(100))
			d.Absent = []model.Absence{a}
		}
		return "absences"
	case 2: // two servers change places, or claims
		i, j := r.IntN(9), r.IntN(9)
		a, b := *o.Servers[fleettest.ServerName(i)], *o.Servers[fleettest.ServerName(j)]
		if r.IntN(2) == 0 {
			a.BMC, b.BMC = b.BMC, a.BMC
		} else {
			a.Life, a.Claim, a.Boot, b.Life, b.Claim, b.Boot = b.Life, b.Claim, b.Boot, a.Life, a.Claim, a.Boot
		}
		o.Servers = maps.Clone(o.Servers)
		o.Servers[a.Name], o.Servers[b.Name] = &a, &b
		return fmt.Sprintf("servers %d and %d", i, j)
	}
	objects := []any{
		&d.BMCs, &d.Servers, &d.Claims, &d.Endpoints, &d.Maintenances, &d.ReadinessRules, &o.Servers, &o.Servers, &o.ServerFacts, &o.BMCs, &o.BMCFacts, &o.Claims,
		&o.Endpoints, &o.EndpointFacts, &o.Probes, &o.BootStates, &o.Wipes, &o.WipeProgress, &o.Progress,
	}
	m := reflect.ValueOf(objects[r.IntN(len(objects))]).Elem()
	keys := m.MapKeys()
	if len(keys) == 0 {
		return "nothing"
	}
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	key := keys[r.IntN(len(keys))]
	another := reflect.MakeMap(m.Type())
	for _, k := range keys {
		another.SetMapIndex(k, m.MapIndex(k))
	}
	object := copied(m.MapIndex(key))
	what := fmt.Sprintf("%s %s", m.Type().Elem(), key) + vary(r, object.Elem(), 8)
	another.SetMapIndex(key, object)
	m.Set(another)
	return what
}

// copied is a deep copy of a value's exported fields.
func copied(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.Set(reflect.New(v.Type().Elem()))
			c.Elem().Set(copied(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if c.Field(i).CanSet() {
				c.Field(i).Set(copied(v.Field(i)))
			}
		}
	case reflect.Slice:
		c.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
		for i := range v.Len() {
			c.Index(i).Set(copied(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			c.Set(reflect.MakeMap(v.Type()))
			for _, k := range v.MapKeys() {
				c.SetMapIndex(k, v.MapIndex(k))
			}
		}
	default:
	}
	return c
}

// words are texts that mean something to a plan.
var words = []string{
	"", "x", "t", "default/c00000", "default/c00001", "default/w00000", server0, server1, "bmc00000", "bmc00001", "e", "m", "192.0.2.1", "192.0.2.9", "02:00:00:00:00:0a",
	"02:00:00:00:00:00", "On", "Off", "Reserved", "Available", "Initial", "Cleanup", "Maintenance", "Error", "release", "power-off", "claim", "True",
	model.ReasonConnectionFailed, model.ReasonNotFound, model.ReasonBootFailed, model.AnnotationOperation, "park", "00000000-0000-4000-8000-000000000002",
}

// fixed are the fields by which an object is another one, or without which the decoder refuses it.
var fixed = []string{"Name", "Namespace", "BootConfiguration", "ServerRef", "Ticket.Claim"}

// vary changes one part of a value, and returns which.
func vary(r *rand.Rand, v reflect.Value, depth int) string {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf([]time.Time{{}, entered.Add(time.Duration(r.IntN(9)) * time.Minute)}[r.IntN(2)]))
		return ""
	case depth == 0:
		return ""
	}
	switch v.Kind() {
	case reflect.Struct:
		var fields []int
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if v.Field(i).CanSet() && !slices.Contains(fixed, name) && !slices.Contains(fixed, v.Type().Name()+"."+name) {
				fields = append(fields, i)
			}
		}
		if len(fields) == 0 {
			return ""
		}
		i := fields[r.IntN(len(fields))]
		return "." + v.Type().Field(i).Name + vary(r, v.Field(i), depth-1)
	case reflect.Pointer:
		if !v.IsNil() && r.IntN(4) == 0 {
			v.SetZero()
			return "=nil"
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return vary(r, v.Elem(), depth-1)
	case reflect.Slice:
		if v.Len() == 0 || r.IntN(3) == 0 {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		} else if r.IntN(4) == 0 {
			v.Set(v.Slice(0, v.Len()-1))
			return "[:n-1]"
		}
		return "[]" + vary(r, v.Index(r.IntN(v.Len())), depth-1)
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		vary(r, key, 1)
		vary(r, value, depth-1)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(words[r.IntN(len(words))])
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.IntN(9)))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(r.IntN(9)))
	default:
	}
	return ""
}
