package model

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

// filled is a value in which every field that JSON can have is set.
func filled[T any]() *T {
	v := new(T)
	fill(reflect.ValueOf(v).Elem(), 0)
	return v
}

func fill(v reflect.Value, depth int) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC)))
		return
	case !v.CanSet() || depth > 12:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, depth+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	default:
		panic("no value for a " + v.Type().String())
	}
}

func TestTheStoreKeepsAllOfARecord(t *testing.T) {
	server, bmc := filled[ServerRecord](), filled[BMCRecord]()
	var storedServer StoredServer
	var storedBMC StoredBMC
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(server.Stored()))(t), &storedServer))
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(bmc.Stored()))(t), &storedBMC))
	if diff := cmp.Diff(server, storedServer.Record()); diff != "" {
		t.Errorf("server (-saved +loaded):\n%s", diff)
	}
	if diff := cmp.Diff(bmc, storedBMC.Record()); diff != "" {
		t.Errorf("BMC (-saved +loaded):\n%s", diff)
	}
}

func TestARecordsJSONHasDecisionsAlone(t *testing.T) {
	var server ServerRecord
	var bmc BMCRecord
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(filled[ServerRecord]()))(t), &server))
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(filled[BMCRecord]()))(t), &bmc))
	s := server.Stored()
	for _, left := range []any{s.Observed, s.Scratch, bmc.BMCScratch} {
		if !reflect.ValueOf(left).IsZero() {
			t.Errorf("it has %+v", left)
		}
	}
}
