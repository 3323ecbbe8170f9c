package model

import (
	"testing"

	"ingot/model/must"
)

func TestLabelSelectors(t *testing.T) {
	labels := map[string]string{"rack": "7", "zone": "a", "gpu": ""}
	for text, want := range map[string]bool{
		"": true, "rack=7": true, "rack==7": true, "rack=8": false, "rack!=8": true, "other!=8": true, "rack!=7": false,
		"zone in (a,b)": true, "zone notin (a,b)": false, "gpu": true, "!gpu": false, "!other": true, "rack=7,zone in (b)": false,
	} {
		s := must.Get(ParseLabelSelector(text))(t)
		if got := s.Matches(labels); got != want || s.String() != text {
			t.Errorf("%q (%q) takes them: %v, want %v", text, s, got, want)
		}
	}
	for _, text := range []string{"a b", "rack>7", "zone in", ",", "-a=b"} {
		if _, err := ParseLabelSelector(text); err == nil {
			t.Errorf("%q is a selector", text)
		}
	}
}
