package neighbour

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	here = linkAddress{2, netip.MustParseAddr("192.0.2.9")}
)

func TestWhatIsRememberedOfAPlace(t *testing.T) {
	type saw struct {
		after time.Duration
		mac   string // "" = the kernel forgot the address
	}
	for title, tc := range map[string]struct {
		seen []saw
		now  time.Duration
		want Neighbour
	}{
		"who is there": {seen: []saw{{0, "a"}}, want: Neighbour{OnLink: true, MAC: "a"}},
		"who was there before": {
			seen: []saw{{0, "a"}, {time.Second, "b"}}, now: time.Minute, want: Neighbour{OnLink: true, MAC: "b", Previous: []string{"a"}},
		},
		"who was there long": {
			seen: []saw{{0, "a"}, {time.Hour, "b"}}, now: time.Hour + time.Minute,
			want: Neighbour{OnLink: true, MAC: "b", Previous: []string{"a"}},
		},
		"not who was there long ago": {
			seen: []saw{{0, "a"}, {time.Second, "b"}}, now: Memory + 2*time.Second,
			want: Neighbour{OnLink: true, MAC: "b"},
		},
		"who came back is no other": {
			seen: []saw{{0, "a"}, {1, "b"}, {2, "a"}}, now: 3,
			want: Neighbour{OnLink: true, MAC: "a", Previous: []string{"b"}},
		},
		"also after the kernel forgot the address": {
			seen: []saw{{0, "a"}, {time.Second, ""}, {2 * time.Second, "b"}}, now: 3 * time.Second,
			want: Neighbour{OnLink: true, MAC: "b", Previous: []string{"a"}},
		},
	} {
		t.Run(title, func(t *testing.T) {
			m, last := newMemory(), ""
			for _, s := range tc.seen {
				if s.mac == "" {
					m.forgot(here, noon.Add(s.after))
					continue
				}
				m.sawAt(here, s.mac, noon.Add(s.after))
				last = s.mac
			}
			if diff := cmp.Diff(tc.want, m.at(here, last, noon.Add(tc.now))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyAtOnePlaceAreBounded(t *testing.T) {
	m := newMemory()
	for i := range maxPrevious + 2 {
		m.sawAt(here, fmt.Sprint(i), noon)
	}
	got := m.at(here, fmt.Sprint(maxPrevious+1), noon)
	if len(got.Previous) != maxPrevious || !got.Lost {
		t.Errorf("%+v, want %d former and that some were lost", got, maxPrevious)
	}
}

func TestPlacesAreBounded(t *testing.T) {
	place := func(i int) linkAddress {
		return linkAddress{1, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
	}
	t.Run("those that the kernel forgot long ago are forgotten first", func(t *testing.T) {
		m := newMemory()
		for i := range maxAddresses {
			m.sawAt(place(i), "a", noon)
			m.forgot(place(i), noon)
		}
		m.sawAt(here, "a", noon.Add(2*Memory))
		if got := m.at(here, "a", noon.Add(2*Memory)); len(m.past) != 1 || got.Lost {
			t.Errorf("%d places are known, %+v", len(m.past), got)
		}
	})
	t.Run("what else is forgotten is told", func(t *testing.T) {
		m := newMemory()
		for i := range maxAddresses + 1 {
			m.sawAt(place(i), "a", noon)
		}
		if got := m.at(place(maxAddresses), "a", noon); len(m.past) > maxAddresses || !got.Lost {
			t.Errorf("%d places are known, %+v", len(m.past), got)
		}
		if got := m.at(place(maxAddresses), "a", noon.Add(Memory+1)); got.Lost {
			t.Errorf("told for ever: %+v", got)
		}
	})
}
