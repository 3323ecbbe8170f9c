package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// newBlades is a world of two servers behind one BMC, each of which serves a claim.
func newBlades(t *testing.T) (w *loopWorld, a, b *machine) {
	w = newLoopWorld(t, 2)
	a, b = w.machine(0), w.machine(1)
	b.bmc, b.name = "bmc00", "bmc00-system-1"
	delete(w.desired.BMCs, "bmc01")
	w.start()
	w.expect(time.Minute, 0, "Available Off")
	w.expect(0, 1, "Available Off")
	w.commit(func(d *model.Desired) { d.Add(claim("a", on(a.name))) })
	w.commit(func(d *model.Desired) { d.Add(claim("b", on(b.name))) })
	w.expect(time.Minute, 0, "Reserved On default/a")
	w.expect(0, 1, "Reserved On default/b")
	return w, a, b
}

func on(server model.ServerName) func(*model.ServerClaim) {
	return func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: string(server)} }
}

// swap puts each of two machines into the place of the other.
func (w *loopWorld) swap(i, j int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, two := w.machine(i), w.machine(j)
	for uri, m := range w.machines {
		switch m {
		case one:
			w.machines[uri] = two
		case two:
			w.machines[uri] = one
		}
	}
}

// A server is its machine, wherever that is plugged in: what is asked of it is done to
// that, and nothing to the machine that is in its place now.
func TestSwappedBlades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := newBlades(t)
		defer w.stop()
		w.swap(0, 1)
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/a") })
		w.expect(10*time.Minute, 1, "Available Off")
		w.expect(0, 0, "Reserved On default/b")
		a, b := w.seen(1), w.seen(0)
		if a.disk != "" || a.uuid != "00000000-0000-4000-8000-000000000001" {
			t.Errorf("the machine of the claim that is gone holds %q", a.disk)
		}
		if b.offs != 1 || b.ons != 2 || b.disk == "" { // as after its discovery and its claim
			t.Errorf("the other machine was switched off %d and on %d times, and holds %q", b.offs, b.ons, b.disk)
		}
	})
}

// That another machine is in a server's place is noticed when that is read, and then the
// BMC is read at once, and once more before the servers are looked for in new places.
func TestSwappedBladesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a, b := newBlades(t)
		defer w.stop()
		read := w.discoveries()
		w.swap(0, 1)
		for range 100 {
			if w.why(0) == model.ReasonIdentityMismatch && w.why(1) == model.ReasonIdentityMismatch {
				break
			}
			pass(time.Second)
		}
		if w.why(0) != model.ReasonIdentityMismatch || w.discoveries()-read > 1 {
			t.Fatalf("server 0: %q after %d readings of its BMC", w.why(0), w.discoveries()-read)
		}
		pass(20 * time.Second)
		if n := w.discoveries() - read; n != 2 {
			t.Errorf("the BMC was read %d times, want twice", n)
		}
		w.expect(time.Minute, 0, "Reserved On default/b")
		w.expect(0, 1, "Reserved On default/a")
		recs := w.Observed().Servers
		if recs[a.name].SystemURI != "/redfish/v1/Systems/1" || recs[b.name].SystemURI != "/redfish/v1/Systems/0" {
			t.Errorf("servers are looked for at %s and %s", recs[a.name].SystemURI, recs[b.name].SystemURI)
		}
	})
}

// A machine that is another one at the moment of a power request is left alone, and the
// record says of the request that it was not made.
func TestAnotherMachineAtTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serving(t)
		defer w.stop()
		stranger := &machine{name: "stranger", bmc: "bmc00", uuid: "00000000-0000-4000-8000-00000000ffff", power: model.PowerOn}
		uri := "/redfish/v1/Systems/0"
		w.mu.Lock()
		own := w.machines[uri]
		w.machines[uri] = stranger
		w.mu.Unlock()
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(30 * time.Minute)
		w.mu.Lock()
		rec := w.observed.Servers[own.name]
		w.mu.Unlock()
		if stranger.offs+stranger.sets > 0 || stranger.power != model.PowerOn {
			t.Errorf("the stranger was touched: %+v", stranger)
		}
		if rec.Life.State != model.StateReserved || rec.Life.Failures != 0 || rec.Power.Asked != nil && rec.Power.Asked.Unsure {
			t.Errorf("the record is %+v, asked %+v", rec, rec.Power.Asked)
		}
		w.mu.Lock()
		w.machines[uri] = own
		w.mu.Unlock()
		w.expect(10*time.Minute, 0, "Available Off")
	})
}
