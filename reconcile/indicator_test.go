package reconcile

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

func lit(led string, more ...func(*model.Server)) func(*model.Desired) {
	return func(d *model.Desired) {
		d.Add(serverFile(0, append(more, func(s *model.Server) { s.Spec.IndicatorLED = led })...))
	}
}

func TestAnIndicatorIsSwitchedOnceInEachState(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		before := w.seen(0)
		expect := func(led string, asks int) {
			t.Helper()
			pass(10 * time.Minute)
			if m := w.seen(0); m.led.LED != led || m.ledAsks != asks {
				t.Errorf("the indicator is %q, asked for %d times; want %q and %d", m.led.LED, m.ledAsks, led, asks)
			}
			if m := w.seen(0); m.ons != before.ons || m.offs != before.offs || m.installs != 1 {
				t.Errorf("%d power-ons, %d power-offs, %d installs", m.ons, m.offs, m.installs)
			}
		}
		w.commit(lit("Lit"))
		pass(5 * time.Second)
		if m := w.seen(0); m.led.LED != "Lit" {
			t.Errorf("the indicator is %q seconds after the commit", m.led.LED)
		}
		expect("Lit", 1)
		w.commit(lit("Unknown"))
		expect("Lit", 1)
		w.commit(lit("Off"))
		expect("Off", 2)
		w.change(0, func(m *machine) { m.led.OnOff = true })
		w.commit(lit("Blinking"))
		expect("Lit", 3) // which is all that it knows of it
	})
}

func TestAnIndicatorThatABMCDoesNotSwitchDelaysNothing(t *testing.T) {
	refused := &resetError{model.ReasonSettingNotKept, "asked IndicatorLED Lit, read Off"}
	published(t, 1, func(w *loopWorld, _ *branch) {
		w.change(0, func(m *machine) { m.noLED = refused })
		w.commit(lit("Lit"))
		w.serve("web")
		pass(2 * time.Hour)
		if m := w.seen(0); m.ledAsks != 3 {
			w.t.Errorf("it was asked %d times, want 3", m.ledAsks)
		}
		shown := func() string {
			return conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "IndicatorLED")
		}
		want := "False SettingNotKept: its indicator is not Lit: asked IndicatorLED Lit, read Off; it is asked for again once"
		if got := shown(); !strings.HasPrefix(got, want) {
			w.t.Errorf("got  %s\nwant %s", got, want)
		}
		if why := w.why(0); why != "" {
			w.t.Errorf("it is not Ready: %s", why)
		}
		w.change(0, func(m *machine) { m.noLED = nil })
		w.commit(lit("Lit", operation1("retry#1")))
		pass(time.Minute)
		if m := w.seen(0); m.led.LED != "Lit" || shown() != "" {
			w.t.Errorf("after a retry it is %q, and shown is %q", m.led.LED, shown())
		}
	})
}

// What failed of a server's life is tried again at its own pace, whatever becomes of its
// indicator meanwhile.
func TestAnIndicatorDoesNotForgiveFailures(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) {
			m.refuses = map[model.ResetKind]bool{model.ResetGracefulOff: true, model.ResetForceOff: true}
			m.noLED = &resetError{model.ReasonConnectionFailed, "busy"}
		})
		w.commit(func(d *model.Desired) {
			d.Add(fleettest.MaintenanceOf("m", 0))
			lit("Lit")(d)
		})
		pass(30 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		rec := w.observed.Servers[w.machine(0).name]
		if rec.Life.Failures < 6 || rec.Settings.IndicatorProblem == nil || rec.Settings.IndicatorProblem.Failures < 6 {
			t.Errorf("%d failures of its life, and of its indicator %+v", rec.Life.Failures, rec.Settings.IndicatorProblem)
		}
	})
}
