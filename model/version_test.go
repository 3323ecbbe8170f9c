package model

import (
	"encoding/json"
	"testing"
)

func TestVersionsCompareByFenceThenSequence(t *testing.T) {
	for _, tt := range []struct {
		v, w Version
		want int
	}{
		{Version{}, Version{}, 0},
		{Version{1, 9}, Version{2, 1}, -1},
		{Version{2, 1}, Version{1, 9}, 1},
		{Version{2, 10}, Version{2, 9}, 1},
		{Version{2, 9}, Version{2, 9}, 0},
	} {
		if got := tt.v.Compare(tt.w); got != tt.want {
			t.Errorf("%s compared with %s: got %d, want %d", tt.v, tt.w, got, tt.want)
		}
		if got := tt.v.After(tt.w); got != (tt.want > 0) {
			t.Errorf("%s after %s: got %t", tt.v, tt.w, got)
		}
	}
}

func TestVersionIsTextInJSONAndLeftOutWhenZero(t *testing.T) {
	raw, err := json.Marshal(ServerRecord{Name: "s1", Version: Version{102, 5731}})
	if err != nil {
		t.Fatal(err)
	}
	var back ServerRecord
	if err := json.Unmarshal(raw, &back); err != nil || back.Version != (Version{102, 5731}) {
		t.Errorf("got %s from %s, %v", back.Version, raw, err)
	}
	for _, bad := range []string{"", "1", "1.", ".1", "1.2.3", "-1.2", "a.b"} {
		if new(Version).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is taken for a version", bad)
		}
	}
}
