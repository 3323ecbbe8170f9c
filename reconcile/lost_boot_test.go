package reconcile

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
)

// The former user's system is powered off though the firmware ignores the boot override.
func TestAWipeThatDoesNotBoot(t *testing.T) {
	for _, mode := range []string{model.CleanupQuick, model.CleanupSecure} {
		t.Run(mode, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				cleanup := func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = mode }
				w.serve("web")
				w.commit(func(d *model.Desired) { d.Add(serverFile(0, cleanup)) })
				before := w.seen(0).ons
				w.change(0, func(m *machine) { m.fromDisk = true })
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
				w.expect(80*time.Minute, 0, "Error Off")
				if n := w.seen(0).ons - before; n != 3 {
					t.Errorf("it was switched on %d times, want 3", n)
				}
				if l := w.record().Life; l.Reason != model.ReasonBootFailed || !strings.Contains(l.Message, "in 3 attempts, it has not asked for its boot script") {
					t.Errorf("%s: %s", l.Reason, l.Message)
				}
				w.expect(24*time.Hour, 0, "Error Off")
				w.change(0, func(m *machine) { m.fromDisk = false })
				w.commit(func(d *model.Desired) { d.Add(serverFile(0, cleanup, operation1("retry#1"))) })
				w.expect(10*time.Minute, 0, "Available Off")
			})
		})
	}
}

// Firmware that did not get its boot script does not ask for it again.
func TestABootScriptWhoseAnswerIsLost(t *testing.T) {
	discover := func(w *loopWorld) {}
	install := func(w *loopWorld) { w.commit(func(d *model.Desired) { d.Add(claim("web")) }) }
	wipe := func(w *loopWorld) { w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") }) }
	for name, tt := range map[string]struct {
		before []func(w *loopWorld)
		begin  func(w *loopWorld)
		then   string
	}{
		"of a discovery": {nil, discover, "Available Off"},
		"of an install":  {[]func(w *loopWorld){discover}, install, "Reserved On default/web"},
		"of a wipe":      {[]func(w *loopWorld){discover, install}, wipe, "Available Off"},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				for _, step := range tt.before {
					step(w)
					pass(2 * time.Minute)
				}
				w.change(0, func(m *machine) { m.lost = 1 })
				tt.begin(w)
				before := w.seen(0).ons
				w.expect(6*time.Minute, 0, tt.then)
				if n := w.seen(0).ons - before; n != 2 {
					t.Errorf("it was switched on %d times, want 2", n)
				}
			})
		})
	}
}

// One that loses each script is given its whole time from then on, and is given up in the end.
func TestBootScriptsThatNeverArrive(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		pass(2 * time.Minute)
		w.change(0, func(m *machine) { m.lost = 10 })
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		before := w.seen(0).ons
		pass(5 * time.Minute)
		if why := w.plan().Servers[0].Why.Message; !strings.Contains(why, "attempt 2 of 3; in the last one it did not boot within 3m0s, last seen fetching iPXE script") {
			t.Errorf("it says %s", why)
		}
		pass(55 * time.Minute)
		if n := w.seen(0).ons - before; n != 3 {
			t.Errorf("it was switched on %d times, want 3", n)
		}
	})
}
