package reconcile

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// checks are the checks of boots, whose result and duration a test sets.
type checks struct {
	failed  atomic.Pointer[armError]
	takes   atomic.Int64
	counted atomic.Int64
}

func (c *checks) check(ctx context.Context, _ proposal.Boot) error {
	c.counted.Add(1)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(c.takes.Load())):
	}
	if failed := c.failed.Load(); failed != nil {
		return failed
	}
	return nil
}

func (c *checks) fail(reason string) { c.failed.Store(&armError{reason, "image os:1: " + reason}) }

func checkedWorld(t *testing.T, test func(t *testing.T, w *loopWorld, c *checks)) {
	c := new(checks)
	prepared(t, 1, func(w *loopWorld) { w.check = c.check }, func(t *testing.T, w *loopWorld) { test(t, w, c) })
}

func TestBoundClaimIgnoresChecks(t *testing.T) {
	checkedWorld(t, func(t *testing.T, w *loopWorld, c *checks) {
		w.serve("web")
		before, counted := w.seen(0), c.counted.Load()
		c.fail(model.ReasonNotFound)
		for range 2 {
			w.expect(time.Hour, 0, "Reserved On default/web")
			w.stop()
			w.start()
		}
		w.expect(time.Hour, 0, "Reserved On default/web")
		if now := w.seen(0); now.ons != before.ons || now.installs != before.installs || c.counted.Load() != counted {
			t.Errorf("powered on %d times, installed %d times, checked %d times", now.ons-before.ons, now.installs-before.installs, c.counted.Load()-counted)
		}
	})
}

func TestClaimWaitsForItsCheck(t *testing.T) {
	for reason, actor := range map[string]string{
		model.ReasonNotFound: "tenant", model.ReasonSourceInvalid: "tenant", model.ReasonRegistryUnreachable: "rack operator", model.ReasonUnauthorized: "rack operator",
	} {
		t.Run(reason, func(t *testing.T) {
			checkedWorld(t, func(t *testing.T, w *loopWorld, c *checks) {
				w.expect(time.Minute, 0, "Available Off")
				c.fail(reason)
				w.commit(func(d *model.Desired) { d.Add(claim("web")) })
				w.expect(time.Hour, 0, "Available Off")
				if n := c.counted.Load(); n < 10 || n > 20 {
					t.Errorf("checked %d times in an hour", n)
				}
				want := "False " + reason + ": image os:1: " + reason + "; the claim gets no server until this is corrected, and it is tried again (to act: " + actor + ")"
				if got := conditionOf(w.shown("serverclaims/default/web.yaml").Status.Conditions, "Bound"); got != want {
					t.Errorf("the claim says %s, want %s", got, want)
				}
				w.stop()
				w.start()
				w.expect(time.Hour, 0, "Available Off")
				c.failed.Store(nil)
				w.expect(6*time.Minute, 0, "Reserved On default/web")
			})
		})
	}
}

func TestRestartDuringCheck(t *testing.T) {
	checkedWorld(t, func(t *testing.T, w *loopWorld, c *checks) {
		w.expect(time.Minute, 0, "Available Off")
		c.takes.Store(int64(time.Minute))
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(30*time.Second, 0, "Available Off")
		w.stop()
		c.takes.Store(0)
		w.start()
		w.expect(time.Minute, 0, "Reserved On default/web")
		if n := c.counted.Load(); n != 2 {
			t.Errorf("checked %d times, want once before the restart and once after", n)
		}
	})
}

func TestCheckDelaysBindingByItsAnswer(t *testing.T) {
	bound := func(takes time.Duration, unchecked bool) (after time.Duration) {
		c := new(checks)
		c.takes.Store(int64(takes))
		prepared(t, 1, func(w *loopWorld) {
			if !unchecked {
				w.check = c.check
			}
		}, func(_ *testing.T, w *loopWorld) {
			w.expect(time.Minute, 0, "Available Off")
			began := time.Now()
			w.commit(func(d *model.Desired) { d.Add(claim("web")) })
			for w.seen(0).power != model.PowerOn {
				pass(time.Millisecond)
			}
			after = time.Since(began)
		})
		return after
	}
	without := bound(0, true)
	for _, takes := range []time.Duration{0, 200 * time.Millisecond, 5 * time.Second} {
		if got := bound(takes, false); got > without+takes+planEvery {
			t.Errorf("a check of %v: powered on after %v, and after %v without checks", takes, got, without)
		}
	}
}

func TestSuccessOfCheckExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(checks)
		l := NewLoop(Options{Check: c.check})
		key := proposal.BootKey{Digest: "a"}
		wanted := map[proposal.BootKey]proposal.Boot{key: {Image: "r.example/os:1"}}
		step := func() (result proposal.Checked) {
			result = l.checks.results(time.Now())[key]
			l.checkBoots(t.Context(), wanted, time.Now())
			synctest.Wait()
			return result
		}
		step()
		if got := step(); got.Pending || got.Failed != nil {
			t.Fatalf("after a check: %+v", got)
		}
		time.Sleep(checkedFor - time.Second)
		if got := step(); got.Pending || c.counted.Load() != 1 {
			t.Errorf("before the success expires: %+v, checked %d times", got, c.counted.Load())
		}
		c.fail(model.ReasonNotFound)
		time.Sleep(time.Second)
		if got := step(); !got.Pending || c.counted.Load() != 2 {
			t.Errorf("when the success expires: %+v, checked %d times", got, c.counted.Load())
		}
		if got := step(); got.Failed == nil || got.Failed.Reason != model.ReasonNotFound {
			t.Errorf("after the tag moved: %+v", got)
		}
		l.checkBoots(t.Context(), nil, time.Now())
		if got := l.checks.results(time.Now()); len(got) != 0 {
			t.Errorf("results that no claim needs are kept: %v", got)
		}
	})
}
