package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMACAddressesOfAServerInGit(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("02:00:00:00:00:01,", MaxServerMACs+1), ",")
	tests := map[string]struct {
		list    string
		want    []string
		problem string
	}{
		"one": {"02:00:00:00:00:01", []string{"02:00:00:00:00:01"}, ""},
		"in all spellings": {
			list: " 02-00-00-00-00-0B,0200.0000.000a , 02000000000C",
			want: []string{"02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"},
		},
		"none": {"", nil, `found "", want MAC addresses such as 00:1a:2b:3c:4d:5e, separated by commas`},
		"a comma at the end": {
			list: "02:00:00:00:00:01,", want: []string{"02:00:00:00:00:01"},
			problem: `found "", want MAC addresses such as 00:1a:2b:3c:4d:5e, separated by commas`,
		},
		"separated by blanks": {
			list:    "02:00:00:00:00:01 02:00:00:00:00:02",
			problem: `found "02:00:00:00:00:01 02:00:00:00:00:02", want MAC addresses such as 00:1a:2b:3c:4d:5e, separated by commas`,
		},
		"a group's":   {"01:00:5e:00:00:01", nil, `found "01:00:5e:00:00:01", want the address of one device`},
		"everybody's": {"ff:ff:ff:ff:ff:ff", nil, `found "ff:ff:ff:ff:ff:ff", want the address of one device`},
		"nobody's":    {"00:00:00:00:00:00", nil, `found "00:00:00:00:00:00", want the address of one device`},
		"one twice":   {"02:00:00:00:00:01, 020000000001", []string{"02:00:00:00:00:01"}, "found 02:00:00:00:00:01 twice"},
		"more than any machine has": {
			list: many, want: []string{"02:00:00:00:00:01"},
			problem: fmt.Sprintf("found %d MAC addresses, at most %d are allowed", MaxServerMACs+1, MaxServerMACs),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &Server{Meta: Meta{Annotations: map[string]string{AnnotationMACAddresses: tt.list}}}
			if diff := cmp.Diff(tt.want, s.MACAddresses()); diff != "" {
				t.Errorf("MAC addresses (-want +got):\n%s", diff)
			}
			text := fmt.Sprintf("apiVersion: metal.ironcore.dev/v1alpha1\nkind: Server\nmetadata:\n  name: s1\n  annotations:\n    "+
				"ingot/mac-addresses: %q\nspec: {}\n", tt.list)
			want := ""
			if tt.problem != "" {
				want = "s1.yaml:6:26: Server s1: metadata.annotations[ingot/mac-addresses]: " + tt.problem + "\n"
			}
			_, problems := Decode("s1.yaml", []byte(text), DecodeOptions{})
			if diff := cmp.Diff(want, problemLines(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMACAddressesHaveNoEffectElsewhere(t *testing.T) {
	_, problems := Decode("e.yaml",
		[]byte("apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata:\n  name: e\n  annotations:\n    ingot/mac-addresses: "+
			"x\nspec: {macAddress: '020000000001', ip: 192.0.2.1}\n"), DecodeOptions{})
	if got := problemLines(problems); !strings.Contains(got, "has no effect on a Endpoint") || HasErrors(problems) {
		t.Errorf("got %q, want a warning", got)
	}
}

func TestSightings(t *testing.T) {
	var p Progress
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	see := func(mac string, seconds int, want bool) {
		t.Helper()
		next, isNew := p.Sighted(mac, at(seconds))
		if isNew != want {
			t.Errorf("%s at %d: news is %v, want %v", mac, seconds, isNew, want)
		}
		p = next
	}
	see("a", 0, true)
	before := p.Sightings
	see("a", 5, false)
	see("a", 20, true)
	see("b", 30, true)
	if diff := cmp.Diff([]Sighting{{"a", at(0), at(20)}, {"b", at(30), at(30)}}, p.Sightings); diff != "" {
		t.Errorf("sightings (-want +got):\n%s", diff)
	}
	if before[0].Last != at(0) {
		t.Error("what others may read was changed")
	}
	a := p.Sightings[0]
	for name, within := range map[string]bool{
		"all of it":     a.Within(at(0), at(30)),
		"its end":       a.Within(at(20), at(30)),
		"its beginning": a.Within(at(-5), at(1)),
	} {
		if !within {
			t.Errorf("%s is not within the time", name)
		}
	}
	if a.Within(at(21), at(30)) || a.Within(at(-5), at(0)) {
		t.Error("it is within a time before or after it")
	}
	for n := range MaxSightings - 2 {
		see(fmt.Sprint(n), 40, true)
	}
	see("more", 40, true)
	see("and more", 40, false)
	if len(p.Sightings) != MaxSightings || !p.SightedMore {
		t.Errorf("%d sightings, more is %v", len(p.Sightings), p.SightedMore)
	}
}
