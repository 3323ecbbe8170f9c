package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/cmd/daemon"
	"ingot/model"
)

func TestTransitions(t *testing.T) {
	server := func(state model.ServerState, claim model.ClaimName) []daemon.ServerSummary {
		return []daemon.ServerSummary{{Name: "s1", State: state, Claim: claim}}
	}
	claim := func(state daemon.ClaimState, server model.ServerName) []daemon.ClaimSummary {
		return []daemon.ClaimSummary{{Name: "default/web", State: state, Server: server}}
	}
	for name, tc := range map[string]struct {
		before, after daemon.Summary
		want          []string
	}{
		"nothing changed": {
			daemon.Summary{Servers: server(model.StateAvailable, "")}, daemon.Summary{Servers: server(model.StateAvailable, "")}, nil,
		},
		"a server is new": {
			daemon.Summary{}, daemon.Summary{Servers: server(model.StateInitial, "")},
			[]string{"    1.5s  server s1                   Initial"},
		},
		"a server is bound, and its claim": {
			daemon.Summary{Servers: server(model.StateAvailable, ""), Claims: claim(daemon.ClaimUnbound, "")},
			daemon.Summary{Servers: server(model.StateReserved, "default/web"), Claims: claim(daemon.ClaimBound, "s1")},
			[]string{
				"    1.5s  server s1                   Available → Reserved for default/web",
				"    1.5s  claim  default/web          Unbound → Bound on s1",
			},
		},
		"a claim is gone": {
			daemon.Summary{Claims: claim(daemon.ClaimBooted, "s1")}, daemon.Summary{},
			[]string{"    1.5s  claim  default/web          Booted → gone"},
		},
		"a server and a claim of one name are two things": {
			daemon.Summary{Servers: []daemon.ServerSummary{{Name: "default/web", State: model.StateInitial}}},
			daemon.Summary{Servers: []daemon.ServerSummary{{Name: "default/web", State: model.StateInitial}}, Claims: claim(daemon.ClaimUnbound, "")},
			[]string{"    1.5s  claim  default/web          Unbound"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, tr := range transitions(tc.before, tc.after, 1500*time.Millisecond) {
				got = append(got, tr.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
