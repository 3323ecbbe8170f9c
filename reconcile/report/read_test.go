package report

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/internal/fleettest"
)

// What Ingot writes is what it reads back.
func TestWhatIsWrittenOnTheBranchIsReadBack(t *testing.T) {
	docs := map[string]*model.Document{model.ReportFleet: {Object: filled(new(Fleet))}}
	for folder, doc := range sections {
		filled(&doc)
		switch rec := doc.Decided.(type) {
		case *model.ServerRecord:
			doc.Decided = Decided(rec)
		case *model.BMCRecord:
			doc.Decided = Decided(rec)
		}
		docs[folder.Path("text")] = &model.Document{Object: &doc}
	}
	for path, data := range fleettest.Rendered(t, &model.Report{Documents: docs}) {
		got := must.Get(ReadDocument(path, data))(t)
		if diff := cmp.Diff(docs[path].Object, got, cmpopts.IgnoreUnexported(Document{}), cmpopts.IgnoreFields(model.Problem{}, "Rule"), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("%s (-written +read):\n%s", path, diff)
		}
	}
}

// The store keeps all of a record, the status branch no observation and no scratch.
func TestDecided(t *testing.T) {
	server, bmc := filled(new(model.ServerRecord)), filled(new(model.BMCRecord))
	shownServer, shownBMC := Decided(server), Decided(bmc)
	if diff := cmp.Diff(filled(new(model.ServerRecord)), server); diff != "" {
		t.Errorf("the record itself changed:\n%s", diff)
	}
	var again model.ServerRecord
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(server))(t), &again))
	if diff := cmp.Diff(server, &again); diff != "" {
		t.Errorf("(-stored +loaded):\n%s", diff)
	}
	server.Power, server.Life.LifeScratch, server.Boot.Problem.ProblemScratch = model.RecordPower{}, model.LifeScratch{}, model.ProblemScratch{}
	server.Boot.BootObserved, server.Boot.BootScratch = model.BootObserved{}, model.BootScratch{}
	server.Settings.SettingsObserved, bmc.BMCScratch = model.SettingsObserved{}, model.BMCScratch{}
	if diff := cmp.Diff(server, shownServer); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(bmc, shownBMC); diff != "" {
		t.Errorf("BMC (-want +got):\n%s", diff)
	}
}

// What a branch shows of claims names servers also where a record cannot be read.
func TestTheFilesOfClaimsNameTheirServers(t *testing.T) {
	b, _ := ReadBranch(map[string][]byte{
		"serverclaims/default/web.yaml": []byte("decided: {name: default/web}\nstatus: {server: s1}\n"),
		"serverclaims/default/db.yaml":  []byte("decided: {name: 7}\nstatus: {server: s2}\n"),
		"serverclaims/default/new.yaml": []byte("decided: {name: default/new}\nstatus: {phase: Pending}\n"),
		"serverclaims/default/odd.yaml": []byte("decided: {name: default/odd}\nstatus: [s4]\n"),
		"servers/s5.yaml":               []byte("status: {server: s5}\n"),
	})
	if len(b.Serves) != 2 || b.Serves["s1"] != "default/web" || b.Serves["s2"] != "default/db" {
		t.Errorf("got %v", b.Serves)
	}
	if b.Claims["default/odd"] == nil {
		t.Error("a claim's record is lost with a status that cannot be read")
	}
}

// filled sets every exported field of a value, through pointers and lists, to a depth of ten.
func filled[T any](v *T) *T {
	fill(reflect.ValueOf(v).Elem(), 10)
	return v
}

func fill(v reflect.Value, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)))
		return
	case !v.CanSet() || depth == 0:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, depth-1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth-1)
		fill(v.Index(1), depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Interface:
		if !v.IsNil() {
			held := reflect.New(v.Elem().Type()).Elem()
			fill(held, depth-1)
			v.Set(held)
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	default:
		panic("no value for a " + v.Type().String())
	}
}
