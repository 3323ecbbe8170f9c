package reconcile

import (
	"fmt"
	"testing"
	"time"

	"ingot/model"
)

// unstable has the power of the first machine go to a state by itself, whenever it was in the
// other for 20 s. It returns after how long the machine was asked to go back, and the pauses
// between that and the next times, in minutes.
func (w *loopWorld) unstable(to model.Power, requests func(m machine) int, during time.Duration) (first time.Duration, pauses []int) {
	begun, last, since := time.Now(), time.Time{}, time.Time{}
	w.set(w.machine(0), to)
	for n := requests(w.seen(0)); time.Since(begun) < during; pass(time.Second) {
		m := w.seen(0)
		switch now := time.Now(); {
		case requests(m) != n && last.IsZero():
			first, last, n = now.Sub(begun), now, requests(m)
		case requests(m) != n:
			pauses = append(pauses, int(now.Sub(last).Round(time.Minute).Minutes()))
			last, n = now, requests(m)
		case m.power == to:
			since = time.Time{}
		case since.IsZero():
			since = now
		case now.Sub(since) >= 20*time.Second:
			w.set(w.machine(0), to)
		}
	}
	return first, pauses
}

func powerOns(m machine) int  { return m.ons }
func powerOffs(m machine) int { return m.offs }

func power(p model.Power) func(d *model.Desired) {
	return func(d *model.Desired) { d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = p })) }
}

func TestAMachineThatDoesNotStayOnIsNotWornOut(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		pass(time.Hour)
		first, pauses := w.unstable(model.PowerOff, powerOns, 40*time.Minute)
		if first == 0 || first > 70*time.Second {
			t.Errorf("it was switched on again after %s, want once that was seen", first)
		}
		if got, want := fmt.Sprint(pauses), "[1 2 4 8 10 10]"; got != want {
			t.Errorf("and again after %s minutes, want %s", got, want)
		}
		if why := w.plan().Servers[0].Why; why.Reason != model.ReasonPowerUnstable {
			t.Errorf("it is said to be %+v", why)
		}
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1("retry#1"))) })
		w.expect(10*time.Second, 0, "Reserved On default/web")
		pass(time.Hour) // it stays so
		w.set(w.machine(0), model.PowerOff)
		w.expect(2*time.Minute, 0, "Reserved On default/web")
	})
}

func TestAMachineThatDoesNotComeOnIsNotWornOut(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		before := w.seen(0).ons
		w.change(0, func(m *machine) { m.power, m.dark = model.PowerOff, true })
		pass(24 * time.Hour)
		if n := w.seen(0).ons - before; n < 100 || n > 150 {
			t.Errorf("it was asked %d times in a day to power on", n)
		}
	})
}

func TestAMachineThatDoesNotStayOffIsNotWornOut(t *testing.T) {
	for name, begin := range map[string]func(w *loopWorld){
		"an available one": func(w *loopWorld) { w.expect(2*time.Minute, 0, "Available Off") },
		"one whose claim is Off": func(w *loopWorld) {
			w.serve("web")
			w.commit(power(model.PowerOff))
			w.expect(10*time.Minute, 0, "Reserved Off default/web")
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				begin(w)
				pass(time.Hour)
				first, pauses := w.unstable(model.PowerOn, powerOffs, 40*time.Minute)
				if first == 0 || first > 70*time.Second {
					t.Errorf("it was switched off again after %s, want once that was seen", first)
				}
				if got, want := fmt.Sprint(pauses), "[1 2 4 8 10 10]"; got != want {
					t.Errorf("and again after %s minutes, want %s", got, want)
				}
			})
		})
	}
}

// Of what quick commits ask for only the last matters, and none waits for what went wrong before.
func TestTheLastOfQuickCommitsMatters(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.serve("web")
		before := w.seen(0).poweredBy()
		b.fail(true)
		for _, p := range []model.Power{model.PowerOff, model.PowerOn, model.PowerOff, model.PowerOn} {
			w.commit(power(p))
			pass(10 * time.Second)
		}
		b.fail(false)
		w.expect(time.Hour, 0, "Reserved On default/web")
		if got := w.seen(0).poweredBy(); got != before {
			w.t.Errorf("asked %v to go on and off, want %v", got, before)
		}
		w.unstable(model.PowerOff, powerOns, 30*time.Minute)
		w.commit(power(model.PowerOff))
		w.expect(10*time.Second, 0, "Reserved Off default/web")
		w.commit(power(model.PowerOn))
		w.expect(20*time.Second, 0, "Reserved On default/web")
	}, func(w *loopWorld) { w.mirror = true })
}
