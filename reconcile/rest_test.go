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

// plans is how often a world's loop has planned.
func (w *loopWorld) plans() uint64 {
	w.loop.mu.Lock()
	defer w.loop.mu.Unlock()
	return w.loop.round
}

// untilPlanned lets time pass until no event waits for a plan.
func (w *loopWorld) untilPlanned() {
	for before := w.plans() - 1; before != w.plans(); pass(planEvery) {
		before = w.plans()
	}
}

func TestIdleLoopPlansForAResultAtOnce(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		for _, idle := range []time.Duration{time.Minute + time.Millisecond, 3 * planEvery} {
			pass(idle)
			for range 2 { // an action and what follows it
				before := w.plans()
				w.loop.changed()
				pass(time.Millisecond)
				if got := w.plans() - before; got != 1 {
					t.Errorf("after %s without a result: %d plans at once, want 1", idle, got)
				}
			}
		}
	})
}

func TestBurstOfResultsLeadsToFewPlans(t *testing.T) {
	live(t, 0, func(t *testing.T, w *loopWorld) {
		pass(time.Minute)
		before := w.plans()
		const took = time.Second
		for range took / time.Millisecond {
			w.loop.changed()
			time.Sleep(time.Millisecond)
		}
		pass(planEvery)
		if got, want := w.plans()-before, uint64(took/planEvery+2); got > want || got < want-2 {
			t.Errorf("%d plans for a result each millisecond during %s, want %d", got, took, want)
		}
	})
}

func TestResultsWithoutEndDelayNoClaim(t *testing.T) {
	published(t, 1, func(w *loopWorld, _ *branch) {
		w.expect(2*time.Minute, 0, "Available Off")
		end := make(chan struct{})
		go func() {
			for tick := time.Tick(time.Millisecond); ; <-tick {
				select {
				case <-end:
					return
				default:
					w.loop.changed()
				}
			}
		}()
		pass(10 * time.Second)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(w.delay, 0, "Reserved On default/web") // it was asked to power on at once
		close(end)
	}, func(w *loopWorld) { w.mirror = true })
}

func TestResultsWithoutEndDelayOthersByPlanEvery(t *testing.T) {
	live(t, 0, func(t *testing.T, w *loopWorld) {
		pass(time.Minute)
		for range 10 {
			w.loop.changed()
			pass(planEvery / 3)
		}
		before := w.plans()
		w.loop.changed()
		pass(planEvery)
		if w.plans() == before {
			t.Errorf("no plan within %s", planEvery)
		}
	})
}
