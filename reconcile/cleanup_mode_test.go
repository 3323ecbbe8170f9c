package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// wipesBy is an annotation that says how disks are wiped.
func wipesBy(mode string) map[string]string { return map[string]string{model.AnnotationCleanup: mode} }

// asks has the claim "web" ask for its disks to be wiped in a mode.
func asks(d *model.Desired, mode string) {
	d.Add(claim("web", func(c *model.ServerClaim) { c.Annotations = wipesBy(mode) }))
}

func gone(d *model.Desired) { delete(d.Claims, "default/web") }

// Of what the server and its claim say the stricter counts, also once the claim is gone.
func TestTheClaimIsWipedAsStrictlyAsItAskedFor(t *testing.T) {
	tests := []struct {
		name, server, claim string
		then                func(w *loopWorld)
		want                string
	}{
		{name: "a stricter claim", claim: "secure", want: "secure"},
		{name: "a laxer claim", server: "secure", claim: "quick", want: "secure"},
		{name: "a claim that asks for nothing", server: "quick", claim: "none", want: "quick"},
		{name: "a claim stricter than a server that is not wiped", server: "none", claim: "quick", want: "quick"},
		{name: "set once the claim is bound", want: "secure", then: func(w *loopWorld) {
			w.commit(func(d *model.Desired) { asks(d, "secure") })
			pass(time.Minute)
		}},
		{name: "taken back while it is bound", claim: "secure", want: "quick", then: func(w *loopWorld) {
			w.commit(func(d *model.Desired) { asks(d, "") })
			pass(time.Minute)
		}},
		{name: "set while the BMC does not answer", want: "secure", then: func(w *loopWorld) {
			w.change(0, func(m *machine) { m.dead = true })
			pass(5 * time.Minute)
			w.commit(func(d *model.Desired) { asks(d, "secure") })
			pass(time.Minute)
			w.commit(gone)
			pass(time.Minute)
			w.change(0, func(m *machine) { m.dead = false })
		}},
		{name: "the commit that removes the claim has its server wiped less", claim: "secure", want: "secure", then: func(w *loopWorld) {
			w.commit(func(d *model.Desired) {
				gone(d)
				d.Add(serverFile(0, func(s *model.Server) { s.Annotations = wipesBy("none") }))
			})
		}},
		{name: "the store is lost", claim: "secure", want: "secure", then: func(w *loopWorld) { w.loseStore(w.files()) }},
		{name: "the claim is back with less before its server is off", claim: "secure", want: "quick", then: func(w *loopWorld) {
			w.comesBack("quick")
			w.expect(10*time.Minute, 0, "Reserved On default/web")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 1)
				if tt.server != "" {
					w.desired.Add(serverFile(0, func(s *model.Server) { s.Annotations = wipesBy(tt.server) }))
				}
				w.start()
				defer func() { w.stop() }()
				w.expect(2*time.Minute, 0, "Available Off")
				w.commit(func(d *model.Desired) { asks(d, tt.claim) })
				w.expect(time.Minute, 0, "Reserved On default/web")
				w.change(0, func(m *machine) { m.wipeHangs = true })
				if tt.then != nil {
					tt.then(w)
				}
				w.commit(gone)
				w.expect(15*time.Minute, 0, "Cleanup On")
				if got := w.Observed().Servers[w.machine(0).name].Boot.Ticket.CleanupMode; got != tt.want {
					t.Errorf("it is wiped in mode %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// comesBack has the claim go, and come back asking for another wipe, while the BMC is dead.
func (w *loopWorld) comesBack(mode string) {
	w.change(0, func(m *machine) { m.dead = true })
	pass(5 * time.Minute)
	w.commit(gone)
	pass(time.Minute)
	w.commit(func(d *model.Desired) { asks(d, mode) })
	pass(time.Minute)
	w.change(0, func(m *machine) { m.dead = false })
}

// What a claim asked for does not count for the next one.
func TestTheNextClaimIsWipedAsItAsksItself(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { asks(d, "secure") })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(gone)
		w.expect(15*time.Minute, 0, "Available Off")
		rec := w.Observed().Servers[w.machine(0).name]
		if rec.Boot.Ticket.CleanupMode != "secure" || rec.Claim.Cleanup != "" {
			t.Errorf("wiped in mode %q, and %q is still asked for", rec.Boot.Ticket.CleanupMode, rec.Claim.Cleanup)
		}
	})
}

// A claim that comes back once its release was decided says nothing of that release.
func TestAReleaseThatIsDecidedIsWipedAsWasAskedBefore(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", image("broken:1"), func(c *model.ServerClaim) { c.Annotations = wipesBy("secure") }))
		})
		w.expect(time.Minute, 0, "Reserved Off default/web")
		w.change(0, func(m *machine) { m.wipeHangs = true })
		w.comesBack("quick")
		w.expect(15*time.Minute, 0, "Cleanup On")
		if got := w.Observed().Servers[w.machine(0).name].Boot.Ticket.CleanupMode; got != "secure" {
			t.Errorf("it is wiped in mode %q", got)
		}
	})
}
