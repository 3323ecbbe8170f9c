package daemon

import (
	"errors"
	"log/slog"
	"testing"

	"ingot/registry/store"
)

func TestATakeOverWaitsForTheStore(t *testing.T) {
	d := &daemon{log: slog.New(slog.DiscardHandler)}
	for name, answers := range map[string][]error{
		"it comes back":         {errors.New("WRONGPASS"), nil},
		"another process leads": {store.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries int
			err := d.untilStored(t.Context(), func() error { tries++; return answers[tries-1] })
			if want := answers[len(answers)-1]; !errors.Is(err, want) || tries != len(answers) {
				t.Errorf("got %v after %d attempts, want %v after %d", err, tries, want, len(answers))
			}
		})
	}
}
