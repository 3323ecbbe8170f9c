package registry

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"ingot/registry/store"
)

// The lease of a virtual machine that was paused seems to hold: only the store knows
// better.
func TestTheStoreConfirmsWhoLeads(t *testing.T) {
	tests := map[string]struct {
		befalls func(t *testing.T, m *miniredis.Miniredis, r *Registry)
		fenced  bool // for another leads, or did
	}{
		"another leads": {func(t *testing.T, m *miniredis.Miniredis, _ *Registry) {
			m.Del("{ingot}:lease")
			lead(t, Options{RedisURL: "redis://" + m.Addr()})
		}, true},
		"another led and gave the lease back": {func(t *testing.T, m *miniredis.Miniredis, _ *Registry) {
			m.Del("{ingot}:lease")
			_ = lead(t, Options{RedisURL: "redis://" + m.Addr()}).Close()
		}, true},
		"another leads with the same number, of a replica that lost who led": {func(_ *testing.T, m *miniredis.Miniredis, _ *Registry) {
			_ = m.Set("{ingot}:lease", "other")
		}, true},
		"the lead has ended":        {func(_ *testing.T, _ *miniredis.Miniredis, r *Registry) { r.Lead.End() }, true},
		"the store is empty":        {func(_ *testing.T, m *miniredis.Miniredis, _ *Registry) { m.FlushAll() }, false},
		"the store was rolled back": {func(_ *testing.T, m *miniredis.Miniredis, _ *Registry) { _ = m.Set("{ingot}:fence", "1") }, false},
		"the store is something else's": {func(_ *testing.T, m *miniredis.Miniredis, _ *Registry) {
			m.Del("{ingot}:fence")
			_, _ = m.Push("{ingot}:fence", "x")
		}, false},
		"the store does not answer": {func(_ *testing.T, m *miniredis.Miniredis, _ *Registry) { m.SetError("LOADING") }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := miniredis.RunT(t)
			r := lead(t, Options{RedisURL: "redis://" + m.Addr(), LeaderTTL: time.Hour})
			if err := r.Confirm(t.Context()); err != nil {
				t.Fatalf("while we lead: %v", err)
			}
			tt.befalls(t, m, r)
			if err := r.Confirm(t.Context()); err == nil || errors.Is(err, store.ErrFenced) != tt.fenced {
				t.Errorf("got %v, want one of another leader: %t", err, tt.fenced)
			}
		})
	}
	t.Run("a standby does not lead", func(t *testing.T) {
		m := miniredis.RunT(t)
		o := Options{RedisURL: "redis://" + m.Addr()}
		lead(t, o)
		if err := open(t, o).Confirm(t.Context()); !errors.Is(err, store.ErrFenced) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("who has the file leads", func(t *testing.T) {
		r := lead(t, Options{Dir: t.TempDir()})
		if err := r.Confirm(t.Context()); err != nil {
			t.Error(err)
		}
		r.Lead.End()
		if err := r.Confirm(t.Context()); !errors.Is(err, store.ErrFenced) {
			t.Errorf("after its end: %v", err)
		}
	})
}
