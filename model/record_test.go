package model

import (
	"encoding/json"
	"testing"
)

func TestARecordReadsWhatAFormerVersionCalledTheOverride(t *testing.T) {
	for raw, want := range map[string]string{
		`{"name":"a","bootRung":"continuous"}`:                                 "continuous",
		`{"name":"a","bootOverrideVariant":"continuous"}`:                      "continuous",
		`{"name":"a","bootOverrideVariant":"default","bootRung":"continuous"}`: "default",
		`{"name":"a"}`: "",
	} {
		var rec ServerRecord
		if err := json.Unmarshal([]byte(raw), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Name != "a" || rec.BootOverrideVariant != want {
			t.Errorf("%s: %q of %q, want %q", raw, rec.BootOverrideVariant, rec.Name, want)
		}
	}
}
