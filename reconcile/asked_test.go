package reconcile

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// TestAPowerOffThatTookEffectIsNotAwaitedAfterACrash is about a crash between a
// power-on and its record: what is on record is the power-off before it.
func TestAPowerOffThatTookEffectIsNotAwaitedAfterACrash(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		off := w.Observed().Servers[w.machine(0).name].Power.Asked
		if off == nil || !off.Reached {
			t.Fatalf("after a power-off the request on record is %+v, want one that was reached", off)
		}
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.stop()

		w.mu.Lock()
		m := w.machine(0)
		armed := *w.observed.Servers[m.name]
		ticket := *armed.Boot.Ticket
		ticket.Ended = ""
		armed.Boot.Ticket, armed.Install.Digest, armed.Power.Asked = &ticket, "", off
		w.observed.Servers[m.name] = &armed
		delete(w.observed.Progress, m.name)
		delete(w.observed.BootStates, m.name)
		ons := m.ons
		w.mu.Unlock()
		w.start()
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if m.ons != ons {
			t.Errorf("powered on %d times more while it was booting, want none", m.ons-ons)
		}
	})
}

func TestAServerInErrorIsRetriedAtOnce(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.machine(0).wipeFail = true
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Minute, 0, "Error Off")
		w.machine(0).wipeFail = false
		w.commit(func(d *model.Desired) {
			d.Add(&model.Server{Meta: model.Meta{
				Name: "bmc00-system-0", Annotations: map[string]string{model.AnnotationOperation: "retry#1"},
			}})
		})
		w.expect(time.Minute, 0, "Available Off") // not only after PowerOnLimit
	})
}

func texts(files map[string][]byte) map[string]string {
	t := make(map[string]string)
	for path, data := range files {
		t[path] = string(data)
	}
	return t
}

// TestTheStatusBranchHearsOfReadings looks at changes that only readings make: they
// are in no record, and yet the status branch shows them.
func TestTheStatusBranchHearsOfReadings(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		var mu sync.Mutex
		var shown map[string][]byte // as published when the loop last said that something changed
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-w.loop.dirty:
					mu.Lock()
					shown = w.files()
					mu.Unlock()
				}
			}
		}()
		agrees := func(what string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			now := w.files()
			if diff := cmp.Diff(texts(now), texts(shown)); diff != "" {
				t.Errorf("%s: status branch (-now +shown):\n%s", what, diff)
			}
		}
		w.serve("web")
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		w.expect(time.Minute, 0, "Reserved Off default/web")
		agrees("after Off was confirmed")
		w.change(0, func(m *machine) { m.dead = true })
		w.expect(5*time.Minute, 0, "Reserved Off default/web") // before its BMC is read again
		agrees("after the BMC fell silent")
		w.change(0, func(m *machine) { m.dead = false })
		w.expect(time.Hour, 0, "Reserved Off default/web")
		agrees("after it answered again")
	})
}
