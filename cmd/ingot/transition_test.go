package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/report"
)

func TestTransitions(t *testing.T) {
	one := func(state model.ServerState, claim model.ClaimName) *report.Document {
		return server("s1", state, is(report.Summary{Claim: claim}))
	}
	web := func(state string, server model.ServerName) *report.Document {
		return claim("default/web", state, is(report.Summary{Server: server}))
	}
	for name, tc := range map[string]struct {
		before, after []*report.Document
		want          []string
	}{
		"no change": {before: []*report.Document{one(model.StateAvailable, "")}, after: []*report.Document{one(model.StateAvailable, "")}},
		"a new server": {
			after: []*report.Document{one(model.StateInitial, "")},
			want:  []string{"    1.5s  server s1                   Initial"},
		},
		"a server is bound to a claim": {
			before: []*report.Document{one(model.StateAvailable, ""), web(report.ClaimUnbound, "")},
			after:  []*report.Document{one(model.StateReserved, "default/web"), web(report.ClaimBound, "s1")},
			want: []string{
				"    1.5s  server s1                   Available → Reserved for default/web",
				"    1.5s  claim  default/web          Unbound → Bound on s1",
			},
		},
		"a claim is removed": {
			before: []*report.Document{web(report.ClaimBooted, "s1")},
			want:   []string{"    1.5s  claim  default/web          Booted → gone"},
		},
		"a server and a claim with the same name": {
			before: []*report.Document{server("default/web", model.StateInitial)},
			after:  []*report.Document{server("default/web", model.StateInitial), web(report.ClaimUnbound, "")},
			want:   []string{"    1.5s  claim  default/web          Unbound"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, tr := range transitions(inFleet("", tc.before...), inFleet("", tc.after...), 1500*time.Millisecond) {
				got = append(got, tr.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
