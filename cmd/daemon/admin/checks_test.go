package admin

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/registry"
)

// aDaemon is what all parts of a daemon say of themselves. As it is made by ready, all is well.
type aDaemon struct {
	health     error
	lead       registry.LeadState
	leadDetail error
	failing    error
	source     model.SourceState
	desired    *model.Desired
	records    error
	networks   func() error
}

func ready() *aDaemon { return &aDaemon{lead: registry.Leads, desired: model.NewDesired()} }

func (d *aDaemon) State() model.SourceState { return d.source }
func (d *aDaemon) Desired() *model.Desired  { return d.desired }

type aStore struct{ *aDaemon }

func (s aStore) Healthy() error                     { return s.health }
func (s aStore) State() (registry.LeadState, error) { return s.lead, s.leadDetail }

func (d *aDaemon) Failing() (time.Time, error) {
	if d.failing == nil {
		return time.Time{}, nil
	}
	return time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC), d.failing
}

func TestWhichPartIsNotReadyAndWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		befalls func(*aDaemon)
		want    map[string]string // by check
	}{
		"all is well": {
			befalls: func(*aDaemon) {},
		},
		"the store does not answer": {
			befalls: func(d *aDaemon) {
				d.health = errors.New("i/o timeout")
				d.lead, d.leadDetail = registry.StoreSilent, d.health
			},
			want: map[string]string{
				"store":      "i/o timeout",
				"leadership": "nobody knows who leads, because the store does not answer: i/o timeout",
			},
		},
		"another process leads": {
			befalls: func(d *aDaemon) { d.lead, d.leadDetail = registry.Follows, errors.New("another ingot leads: here/1") },
			want:    map[string]string{"leadership": "this one stands by: another ingot leads: here/1"},
		},
		"the lead has ended": {
			befalls: func(d *aDaemon) { d.lead, d.leadDetail = registry.LeadEnded, registry.ErrLeadershipLost },
			want:    map[string]string{"leadership": registry.ErrLeadershipLost.Error()},
		},
		"the status branch cannot be pushed": {
			befalls: func(d *aDaemon) { d.failing = errors.New("connection refused") },
			want: map[string]string{
				"status": "the status branch cannot be pushed since 2026-11-24T08:00:00Z, so nothing disruptive begins: connection refused",
			},
		},
		"the records were not read": {
			befalls: func(d *aDaemon) { d.records = errors.New("waiting for the lead") },
			want:    map[string]string{"records": "waiting for the lead"},
		},
		"Git was never read": {
			befalls: func(d *aDaemon) { d.desired = nil },
			want:    map[string]string{"git": "no revision was read yet"},
		},
		"Git cannot be read any more": {
			befalls: func(d *aDaemon) {
				d.source = model.SourceState{Reason: model.SourceFetchFailed, Message: "connection refused"}
			},
			want: map[string]string{"git": "connection refused"},
		},
		"a network is served": {
			befalls: func(d *aDaemon) { d.networks = func() error { return nil } },
		},
		"a network cannot be served": {
			befalls: func(d *aDaemon) { d.networks = func() error { return errors.New("rack1: no such interface") } },
			want:    map[string]string{"networks": "rack1: no such interface"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := ready()
			tc.befalls(d)
			checks := Checks(Parts{
				Store: aStore{d}, Publisher: d, Source: d, RecordsRead: func() error { return d.records }, NetworksServed: d.networks,
			})
			got := make(map[string]string)
			result := runChecks(t.Context(), checks)
			for _, c := range result.Checks {
				if c.Error != "" {
					got[c.Name] = c.Error
				}
			}
			if tc.want == nil {
				tc.want = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || result.Ready != (len(tc.want) == 0) {
				t.Errorf("ready %t, checks that fail (-want +got):\n%s", result.Ready, diff)
			}
		})
	}
}
