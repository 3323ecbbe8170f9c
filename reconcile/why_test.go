package reconcile

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

func TestAClaimThatCannotBeReadIsNotReleased(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.commit(func(d *model.Desired) {
			delete(d.Claims, "default/web")
			d.Quarantined[model.ClaimName("default/web").Identity()] = []string{""}
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { clear(d.Quarantined) })
		w.expect(2*time.Minute, 0, "Available Off")
	})
}

func TestNoMoreServersThanTheLimitPowerOnAtOnce(t *testing.T) {
	prepared(t, 5, func(w *loopWorld) { w.slow, w.limit = 10*time.Second, 2 }, func(t *testing.T, w *loopWorld) {
		w.expect(10*time.Minute, 4, "Available Off")
		if w.most != 2 {
			t.Errorf("%d servers were powered on at the same time, want 2", w.most)
		}
	})
}

func TestAServerTakesThePlaceOfOneThatIsOnBeforeTheNextPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		delay    time.Duration // until a machine is On
		revision bool          // another is in force by then
		observe  bool          // nothing may be done any more by then
		line     bool          // those that stand in line are powered on, too
	}{
		"as soon as that one is seen On":     {delay: 100 * time.Millisecond, line: true},
		"not while that one is not seen On":  {delay: time.Second},
		"not once something else is desired": {delay: 100 * time.Millisecond, revision: true},
		"not once nothing may be done":       {delay: 100 * time.Millisecond, observe: true},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 6, func(t *testing.T, w *loopWorld) {
				w.serve("a", "b", "c", "d", "e", "f")
				w.stop()
				w.delay, w.mostStarting = tc.delay, 0
				for i := range w.machines {
					w.machines[i].power = model.PowerOff
				}
				w.loop.Policy.MaxConcurrentPowerOns = 1
				var observe atomic.Bool
				w.loop.State = func() State {
					if observe.Load() {
						return State{ObserveOnly: "a test", Serving: time.Unix(1, 0)}
					}
					return State{Serving: time.Unix(1, 0)}
				}
				before, want := w.poweredOn(), 1
				for plans := 0; w.poweredOn() == before; plans++ {
					if plans == 1000 {
						t.Fatal("no server is powered on")
					}
					time.Sleep(w.loop.Policy.PollInterval)
					observe.Store(false)
					waiting := len(w.plan().Queued)
					if _, err := w.loop.Step(t.Context(), time.Now()); err != nil {
						t.Fatal(err)
					}
					if tc.line {
						want = 1 + waiting
					}
					if tc.revision {
						w.commit(func(*model.Desired) {})
					}
					observe.Store(tc.observe)
					w.loop.moves.Wait()
					if w.poweredOn() > before && waiting == 0 {
						t.Fatal("no server stands in line")
					}
				}
				if got := w.poweredOn() - before; got != want || w.mostStarting != 1 {
					t.Errorf("%d servers were powered on, want %d; %d at the same time, want 1", got, want, w.mostStarting)
				}
			})
		})
	}
}

// poweredOn counts the power-ons of all machines.
func (w *loopWorld) poweredOn() (n int) {
	for i := range w.machines {
		n += w.machines[i].ons
	}
	return n
}

func TestAServerThatNeverBootsIsTriedAgainAndThenSaid(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.machine(0).liar = true
		ons := w.machine(0).ons
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(5*time.Hour, 0, "Reserved On default/web")
		why := w.plan().Servers[0].Why
		if got := w.machine(0).ons - ons; got != 3 || why.Reason != "BootFailed" {
			t.Errorf("powered on %d times, and says %+v; want 3 times and BootFailed", got, why)
		}
		w.machine(0).liar = false
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(10*time.Minute, 0, "Available Off")
	})
}

func TestDiscoveryThatNeverReportsEndsInErrorUntilRetried(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) { w.machine(0).silent = true }, func(t *testing.T, w *loopWorld) {
		w.expect(5*time.Hour, 0, "Error Off")
		if got := w.machine(0).ons; got != 3 {
			t.Errorf("powered on %d times, want 3", got)
		}
		w.machine(0).silent = false
		w.commit(func(d *model.Desired) {
			d.Add(&model.Server{Meta: model.Meta{
				Name: "bmc00-system-0", Annotations: map[string]string{model.AnnotationOperation: "retry#1"},
			}})
		})
		w.expect(5*time.Minute, 0, "Available Off")
	})
}

func TestARunningServerIsAdoptedWithoutBeingTouched(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) {
		w.machine(0).power = model.PowerOn
		w.desired.Add(claim("web"))
		w.desired.Add(&model.Server{
			Meta: model.Meta{Name: "bmc00-system-0"},
			Spec: model.ServerSpec{ServerClaimRef: &model.ObjectRef{Namespace: "default", Name: "web"}},
		})
	}, func(t *testing.T, w *loopWorld) {
		w.expect(time.Hour, 0, "Reserved On default/web")
		if m := w.machine(0); m.ons != 0 || m.installs != 0 {
			t.Errorf("powered on %d times and installed %d times, want neither", m.ons, m.installs)
		}
	})
}

func TestAStateIsLoggedOnceAlthoughALookFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.delay = 100 * time.Millisecond // it is On when it is first looked at
		w.start()
		w.stop()
		var log bytes.Buffer
		w.loop.Log = slog.New(slog.NewTextHandler(&log, nil))
		for range 40 {
			if _, err := w.loop.Step(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			w.loop.moves.Wait()
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "to=Discovery"); n != 1 {
			t.Errorf("that it is in Discovery was logged %d times", n)
		}
	})
}
