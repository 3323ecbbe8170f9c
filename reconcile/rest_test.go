package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// TestAPauseEndsForWhatWaits: for nothing else, and what ended it is planned for.
func TestAPauseEndsForWhatWaits(t *testing.T) {
	const most = 10 * time.Second
	tests := map[string]struct {
		signal func(w *loopWorld)
		want   time.Duration
		woken  bool // it plans next
	}{
		"a new revision": {signal: func(w *loopWorld) { w.commit(func(*model.Desired) {}) }, want: time.Second, woken: true},
		"a decision was saved": {
			signal: func(w *loopWorld) { w.loop.Policy.ShowFirst = true; w.loop.hurry() }, want: time.Second, woken: true,
		},
		"the branch shows a decision": {
			signal: func(w *loopWorld) { w.loop.Announced(map[model.ServerName]model.Intent{}) }, want: time.Second, woken: true,
		},
		"a BMC was read": {signal: func(w *loopWorld) { w.loop.changed() }, want: most, woken: true},
		"nothing":        {signal: func(*loopWorld) {}, want: most},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 0)
				w.loop = NewLoop(Options{Desired: w.Desired, DesiredChanged: w.changed, Store: w, BMCs: w, Boots: w, Policy: w.policy()})
				w.loop.gather()
				began := time.Now()
				tc.signal(w)
				if !w.loop.rest(t.Context(), pause{time.Second, most}) {
					t.Fatal("it ended with its context")
				}
				if got := time.Since(began); got != tc.want {
					t.Errorf("paused for %s, want %s", got, tc.want)
				}
				if woken := drain(w.loop.wake); woken != tc.woken {
					t.Errorf("it plans next: %t", woken)
				}
			})
		})
	}
}

func TestSignalsOfBeforeAPlanAreTakenByIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 0)
		w.start()
		pass(time.Minute)
		w.loop.mu.Lock()
		before := w.loop.round
		w.loop.mu.Unlock()
		signal(w.changed)
		signal(w.loop.soon)
		w.loop.Wake()
		pass(time.Second)
		w.loop.mu.Lock()
		if got := w.loop.round - before; got != 1 {
			t.Errorf("%d plans", got)
		}
		w.loop.mu.Unlock()
		w.stop()
	})
}
