package daemon

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

func TestOnlySeenSilenceCounts(t *testing.T) {
	unseen := errors.New("connection refused")
	tests := map[string]struct {
		look     func(since time.Duration) (answered bool, err error)
		answered bool
		after    time.Duration
	}{
		"an answer is heeded as soon as it is seen": {
			look:     func(since time.Duration) (bool, error) { return since >= 20*time.Second, nil },
			answered: true, after: 20 * time.Second,
		},
		"no answer for as long as was agreed is silence": {
			look:  func(time.Duration) (bool, error) { return false, nil },
			after: time.Minute,
		},
		"a branch that cannot be seen is waited for, and the answer on it counts": {
			look: func(since time.Duration) (bool, error) {
				if since < time.Hour {
					return false, unseen
				}
				return true, nil
			},
			answered: true, after: time.Hour,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &daemon{log: slog.New(slog.DiscardHandler)}
				start := time.Now()
				_, answered, err := d.awaitAnswer(t.Context(), func(context.Context) (model.Holder, bool, error) {
					answered, err := tt.look(time.Since(start))
					return model.Holder{}, answered, err
				}, time.Minute)
				if took := time.Since(start); err != nil || answered != tt.answered || took < tt.after || took > tt.after+2*time.Second {
					t.Errorf("answered %t after %s with error %v, want %t after %s", answered, took, err, tt.answered, tt.after)
				}
			})
		})
	}
}
