package registry

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/store"
)

func fill(t *testing.T, r *Registry) {
	t.Helper()
	c, ctx := everything(), t.Context()
	c.ServerFacts = []*model.ServerFacts{facts(0)}
	save(t, r, c)
	ticket := c.Servers[0].Boot.Ticket
	for _, err := range []error{
		r.Boots.Note(ctx, ticket, model.StageScript, netip.MustParseAddr("192.0.2.1")),
		r.Boots.SaveReport(ctx, ticket, &model.ProbeReport{Ticket: ticket.ID, ReceivedAt: now}),
		r.Boots.SaveReport(ctx, ticket, &model.BootState{Ticket: ticket.ID, ReceivedAt: now}),
		r.Boots.SaveReport(ctx, ticket, &model.WipeProgress{Ticket: ticket.ID, ReceivedAt: now, Mode: model.CleanupQuick}),
		r.SaveMarks(ctx, model.Marks{Deployment: "d", Line: "l"}),
		r.Leases.SaveLeases(ctx, []model.Lease{leaseOf(1)}),
		r.SavePayload(ctx, ticket.ID, model.NewSensitive("ignition")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A lost store is filled with the same bytes.
func TestLostStoreIsWrittenAgainToTheByte(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		fill(t, r)
		want, _ := mustLoad(t, r.store)
		b.lose(t)
		must.Do(t, r.keep(t.Context()))
		got, _ := mustLoad(t, r.store)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("contents (-before the loss +after):\n%s", diff)
		}
	})
}

func TestWhetherAChangeWouldChangeAnything(t *testing.T) {
	tests := map[string]struct {
		stored, next store.Change
		want         bool
	}{
		"the same": {
			stored: set(store.BucketBMC, "a", `{"name":"a"}`),
			next:   set(store.BucketBMC, "a", `{"name":"a"}`),
		},
		"another value": {
			stored: set(store.BucketBMC, "a", `{"name":"a"}`),
			next:   set(store.BucketBMC, "a", `{"name":"a","fingerprint":"f"}`),
			want:   true,
		},
		"the same, sealed": {
			stored: set(store.BucketPayload, "a", "x"),
			next:   set(store.BucketPayload, "a", "x"),
		},
		"another value, sealed": {
			stored: set(store.BucketPayload, "a", "x"),
			next:   set(store.BucketPayload, "a", "y"),
			want:   true,
		},
		"a deletion": {
			stored: set(store.BucketBMC, "a", `{"name":"a"}`),
			next:   del(store.BucketBMC, "a"),
			want:   true,
		},
		"a deletion of a sealed value": {
			stored: set(store.BucketPayload, "a", "x"),
			next:   del(store.BucketPayload, "a"),
			want:   true,
		},
		"a deletion of nothing": {
			stored: set(store.BucketBMC, "a", `{"name":"a"}`),
			next:   del(store.BucketBMC, "b"),
		},
		"a new value": {
			stored: set(store.BucketBMC, "a", `{"name":"a"}`),
			next:   set(store.BucketBMC, "b", `{"name":"a"}`),
			want:   true,
		},
		"a value after a deletion": {
			stored: del(store.BucketBMC, "a"),
			next:   set(store.BucketBMC, "a", `{"name":"a"}`),
			want:   true,
		},
		"a deletion after a deletion": {
			stored: del(store.BucketBMC, "a"),
			next:   del(store.BucketBMC, "a"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			if bad := m.apply(store.Batch{set(store.BucketBMC, "a", `{"name":"a","fingerprint":"old"}`), test.stored}); len(bad) > 0 {
				t.Fatal(bad)
			}
			if got := m.differs(test.next); got != test.want {
				t.Errorf("got %v", got)
			}
			m.apply(store.Batch{test.next})
			if raw, err := m.stored(test.next.Key); err != nil || !bytes.Equal(raw, test.next.Value) {
				t.Errorf("stored as %s, %v; want %s", raw, err, test.next.Value)
			}
		})
	}
}
