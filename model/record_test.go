package model

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// renamed are the keys of testdata/records that have another name by now.
var renamed = map[string]string{"bootRung": "bootOverrideVariant"}

// dropped are those of a server's inventory that are no longer read, for nobody was shown them.
var dropped = []string{"firmware"}

// testdata/records has one of each thing that is stored, as the version of 2026-11-24
// wrote it, with something in each field.
func TestWhatAFormerVersionStoredIsReadWhole(t *testing.T) {
	for name, stored := range map[string]any{
		"server": new(ServerRecord), "bmc": new(BMCRecord), "claim": new(ClaimRecord), "endpoint": new(EndpointRecord),
		"fleet": new(FleetRecord), "published": new(Published), "serverfacts": new(ServerFacts), "bmcfacts": new(BMCFacts),
		"progress": new(Progress),
	} {
		raw, err := os.ReadFile(filepath.Join("testdata", "records", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, stored); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		now, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		var before, after map[string]any
		if err := json.Unmarshal(raw, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(now, &after); err != nil {
			t.Fatal(err)
		}
		for key, value := range maps.Clone(before) {
			if another, ok := renamed[key]; ok {
				delete(before, key)
				before[another] = value
			}
		}
		if inventory, ok := before["inventory"].(map[string]any); ok {
			maps.DeleteFunc(inventory, func(key string, _ any) bool { return slices.Contains(dropped, key) })
		}
		for key, value := range before {
			if !reflect.DeepEqual(after[key], value) {
				t.Errorf("%s of %s: %v was read as %v", key, name, value, after[key])
			}
		}
	}
}

func TestTheNewNameOfAFieldCountsBeforeTheFormer(t *testing.T) {
	var rec ServerRecord
	if err := json.Unmarshal([]byte(`{"bootOverrideVariant":"default","bootRung":"continuous"}`), &rec); err != nil {
		t.Fatal(err)
	}
	if rec.BootOverrideVariant != "default" {
		t.Errorf("it is %q", rec.BootOverrideVariant)
	}
}
