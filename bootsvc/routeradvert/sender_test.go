package routeradvert

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestWhereAdvertisementsCannotBeSent(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := New(Options{Networks: []Network{{Name: "rack1", Interface: "none0"}, {Name: "rack2", Interface: "none1"}}, Registerer: reg})
	wants := func(when, want string, failing ...string) {
		t.Helper()
		got := ""
		if err := s.Healthy(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		metric := "# HELP ingot_router_advertisements_failing 1 while IPv6 router advertisements cannot be sent, by network; /readyz says why.\n" +
			"# TYPE ingot_router_advertisements_failing gauge\n" + strings.Join(failing, "\n") + "\n"
		if err := testutil.GatherAndCompare(reg, strings.NewReader(metric), "ingot_router_advertisements_failing"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	const fine1, fine2 = `ingot_router_advertisements_failing{network="rack1"} 0`, `ingot_router_advertisements_failing{network="rack2"} 0`
	wants("before it begins", "", fine1, fine2)
	for _, n := range s.networks {
		n.say(n.serve(t.Context()))
	}
	wants("without interfaces", "network rack1: none0 does not exist; it is waited for\nnetwork rack2: none1 does not exist; it is waited for",
		`ingot_router_advertisements_failing{network="rack1"} 1`, `ingot_router_advertisements_failing{network="rack2"} 1`)
	s.networks[0].begin()
	wants("with one of them", "network rack2: none1 does not exist; it is waited for", fine1, `ingot_router_advertisements_failing{network="rack2"} 1`)
	s.networks[1].begin()
	wants("with both", "", fine1, fine2)
}
