package daemon

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/registry/store"
)

func TestATakeOverWaitsForTheStore(t *testing.T) {
	d := newDaemon(&core{log: slog.New(slog.DiscardHandler)})
	for name, answers := range map[string][]error{
		"it comes back":         {errors.New("WRONGPASS"), nil},
		"another process leads": {store.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries int
			err := d.leader.untilStored(t.Context(), func() error { tries++; return answers[tries-1] })
			if want := answers[len(answers)-1]; !errors.Is(err, want) || tries != len(answers) {
				t.Errorf("got %v after %d attempts, want %v after %d", err, tries, want, len(answers))
			}
		})
	}
}

func TestGuardWindowIsAsFullAfterAGap(t *testing.T) {
	t.Parallel()
	alive := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	done := func(at time.Time) model.FleetRecord {
		return model.FleetRecord{Sequence: 7, Done: []model.Disruption{{Server: "s1", At: at}}}
	}
	store, before, after := done(alive), alive.Add(-10*time.Minute), alive.Add(3*time.Hour-10*time.Minute)
	head := &model.Records{Fleet: done(before), Claims: map[model.ClaimName]*model.ClaimRecord{"default/web": {}}}
	for name, c := range map[string]struct {
		adopted *model.Records
		fleet   model.FleetRecord
		gap     time.Duration
		want    *model.Records
	}{
		"the store counts":    {nil, done(before), 3 * time.Hour, &model.Records{Fleet: done(after)}},
		"the branch counts":   {head, store, 3 * time.Hour, &model.Records{Fleet: done(after), Claims: head.Claims}},
		"the window is empty": {nil, model.FleetRecord{}, 3 * time.Hour, nil},
		"a plain restart":     {nil, done(before), time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s start
			s.store.Alive, s.head.At = alive.Add(-time.Minute), alive
			if diff := cmp.Diff(c.want, s.withWindow(c.adopted, c.fleet, alive.Add(c.gap))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !head.Fleet.Done[0].At.Equal(before) {
				t.Error("the records of the branch were changed")
			}
		})
	}
}
