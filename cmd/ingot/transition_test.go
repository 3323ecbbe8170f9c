package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/report"
)

func TestTransitions(t *testing.T) {
	server := func(state model.ServerState, claim model.ClaimName) []report.ServerSummary {
		return []report.ServerSummary{{Name: "s1", State: state, Claim: claim}}
	}
	claim := func(state report.ClaimState, server model.ServerName) []report.ClaimSummary {
		return []report.ClaimSummary{{Name: "default/web", State: state, Server: server}}
	}
	for name, tc := range map[string]struct {
		before, after report.Summary
		want          []string
	}{
		"nothing changed": {
			before: report.Summary{Servers: server(model.StateAvailable, "")},
			after:  report.Summary{Servers: server(model.StateAvailable, "")},
		},
		"a server is new": {
			after: report.Summary{Servers: server(model.StateInitial, "")},
			want:  []string{"    1.5s  server s1                   Initial"},
		},
		"a server is bound, and its claim": {
			before: report.Summary{Servers: server(model.StateAvailable, ""), Claims: claim(report.ClaimUnbound, "")},
			after:  report.Summary{Servers: server(model.StateReserved, "default/web"), Claims: claim(report.ClaimBound, "s1")},
			want: []string{
				"    1.5s  server s1                   Available → Reserved for default/web",
				"    1.5s  claim  default/web          Unbound → Bound on s1",
			},
		},
		"a claim is gone": {
			before: report.Summary{Claims: claim(report.ClaimBooted, "s1")},
			want:   []string{"    1.5s  claim  default/web          Booted → gone"},
		},
		"a server and a claim of one name are two things": {
			before: report.Summary{Servers: []report.ServerSummary{{Name: "default/web", State: model.StateInitial}}},
			after: report.Summary{
				Servers: []report.ServerSummary{{Name: "default/web", State: model.StateInitial}},
				Claims:  claim(report.ClaimUnbound, ""),
			},
			want: []string{"    1.5s  claim  default/web          Unbound"},
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
