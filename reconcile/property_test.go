package reconcile

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// TestRandomHistoriesBreakNoLaw lets fleets live through commits, power cuts,
// dead BMCs, restarts and lost stores in random order, and after each step looks
// whether a law was broken.
func TestRandomHistoriesBreakNoLaw(t *testing.T) {
	for seed := range fleettest.Histories(5, 40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newHistory(newLoopWorld(t, 4), seed, 1).live() })
		})
	}
}

// history is a random life of a fleet.
type history struct {
	rnd   *rand.Rand
	w     *loopWorld
	log   []string
	looks int // how often was looked
	// removed is before which look each claim last left Git, again before which it was
	// last asked anew to be installed, and asked how often it was.
	removed, again map[model.ClaimName]int
	asked          map[model.ClaimName]int
	disks          map[model.ServerName]seenDisk
	owner          map[model.ServerName]seenOwner
}

// seenDisk is what a disk holds, and at which look that was first seen. It is untold if nobody knows
// that it was written whole: a claim that asks for another image by then gets that.
type seenDisk struct {
	holds  string
	since  int
	untold bool
}

// seenOwner is whom a server was bound to last, and at which look that was first seen.
type seenOwner struct {
	claim model.ClaimName
	at    time.Time
	since int
}

// newHistory returns a life that nothing has happened in. Each kind of lives has its
// own sequence of chances.
func newHistory(w *loopWorld, seed, kind uint64) *history {
	w.holds.Store(seed % 2 * seed) // in every other life
	return &history{
		rnd: rand.New(rand.NewPCG(seed, kind)), w: w,
		removed: make(map[model.ClaimName]int), again: make(map[model.ClaimName]int), asked: make(map[model.ClaimName]int),
		disks: make(map[model.ServerName]seenDisk), owner: make(map[model.ServerName]seenOwner),
	}
}

// say notes what happens.
func (h *history) say(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// revive has all BMCs answer again, and no proposal held.
func (h *history) revive() {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	for _, m := range h.w.machines {
		m.dead, m.liar, m.lies = false, false, 0
	}
	h.w.cut, h.w.broken = 0, false
	h.w.holds.Store(0)
}

func (h *history) live() {
	h.w.start()
	for range 60 {
		h.event()
		pass(time.Duration(h.rnd.IntN(90)) * time.Second)
		h.check()
	}
	h.revive()
	h.end(3 * time.Hour)
}

// end checks whether everything has come to rest where Git wants it, after a while, with what is
// asked of the rack operator done: a machine that is on though the status branch, which is behind
// the store that was lost, has it off is left alone until a person switches it off.
func (h *history) end(after time.Duration) {
	pass(10 * time.Minute)
	for _, s := range h.w.plan().Servers {
		if s.Record.Doubt != nil && s.Why.Reason == model.ReasonFoundRunning {
			h.w.set(h.w.machines[s.Record.SystemURI], model.PowerOff)
		}
	}
	pass(after)
	h.check()
	h.atRest()
	h.w.stop()
}

func (h *history) event() {
	w := h.w
	m := w.machine(h.rnd.IntN(4))
	name := fmt.Sprint("c", h.rnd.IntN(3))
	key := model.ClaimName("default/" + name)
	switch h.rnd.IntN(9) {
	case 0, 1:
		h.say("claim %s", name)
		w.commit(func(d *model.Desired) {
			if d.Claims[key] == nil {
				d.Add(claim(name))
			}
		})
	case 2:
		h.say("release %s", name)
		w.commit(func(d *model.Desired) {
			if d.Claims[key] != nil {
				delete(d.Claims, key)
				h.removed[key] = h.looks + 1
			}
		})
	case 3:
		h.say("new image and reprovision of %s", name)
		w.commit(func(d *model.Desired) {
			if old := d.Claims[key]; old != nil {
				c := *old
				h.asked[key]++
				h.again[key] = h.looks + 1
				c.Spec.Image = fmt.Sprint("os:", h.asked[key])
				c.Annotations = map[string]string{model.AnnotationReprovision: fmt.Sprint(h.asked[key])}
				d.Add(&c)
			}
		})
	case 4:
		h.say("power cut at %s", m.name)
		w.set(m, model.PowerOff)
	case 5:
		h.say("the BMC of %s changes between dead and alive", m.name)
		w.mu.Lock()
		m.dead = !m.dead
		w.mu.Unlock()
	case 6:
		if o := w.Observed(); o.Fleet.Applied == w.Desired().Applied() && h.rnd.IntN(2) == 0 {
			h.say("restart, with a source that begins with the revision applied")
			w.begin()
			return
		}
		h.say("restart")
		w.stop()
		w.start()
	case 7:
		h.say("new image of %s that nobody asked to install", name)
		w.commit(func(d *model.Desired) {
			if old := d.Claims[key]; old != nil {
				c := *old
				c.Spec.Image += "x"
				d.Add(&c)
			}
		})
	case 8:
		h.say("store lost and read back from the status branch")
		files := w.files()
		w.stop()
		recs, _ := restored(files)
		w.mu.Lock()
		o := model.NewObserved()
		o.Records = recs
		o.Progress, o.Wipes, o.BootStates, o.Probes = w.observed.Progress, w.observed.Wipes, w.observed.BootStates, w.observed.Probes
		w.observed = o
		w.mu.Unlock()
		w.start()
	}
}

// check looks for broken laws.
func (h *history) check() {
	w := h.w
	h.checkReasons()
	w.mu.Lock()
	defer w.mu.Unlock()
	h.looks++
	bound := make(map[model.ClaimName]model.ServerName)
	for name, rec := range w.observed.Servers {
		if rec.Claim.Name == "" {
			continue
		}
		if other, twice := bound[rec.Claim.Name]; twice {
			h.fail("claim %s has servers %s and %s", rec.Claim.Name, other, name)
		}
		bound[rec.Claim.Name] = name
	}
	for _, m := range w.machines {
		rec := w.observed.Servers[m.name]
		if old := h.disks[m.name]; m.disk != old.holds {
			if old.holds != "" && !old.untold && !h.allowed(m.name) {
				h.fail("the disk of %s changed from %.15s to %.15s though Git did not ask for it", m.name, old.holds, m.disk)
			}
			h.disks[m.name] = seenDisk{holds: m.disk, since: h.looks}
		}
		seen := h.disks[m.name]
		seen.untold = m.untold && rec != nil && rec.Install.Digest == ""
		h.disks[m.name] = seen
		if old := h.owner[m.name]; rec != nil && rec.Claim.Name != "" && (rec.Claim.Name != old.claim || !rec.Claim.BoundAt.Equal(old.at)) {
			h.owner[m.name] = seenOwner{rec.Claim.Name, rec.Claim.BoundAt, h.looks}
		}
		h.checkTicket(rec)
	}
}

// checkReasons checks whether the plan gives a reason for each server that waits, now and when time alone has passed.
func (h *history) checkReasons() {
	h.w.mu.Lock()
	loop := h.w.loop
	h.w.mu.Unlock()
	for _, later := range []time.Duration{0, time.Minute, time.Hour} {
		in := loop.Input(time.Now().Add(later))
		if s := unexplained(in, plan.Plan(in)); s != nil {
			h.fail("%s later %s is not at its goal, and the plan gives no reason: %+v", later, s.Name, s.Record)
		}
	}
}

// unexplained is a server that is not at its goal, and for which the plan has neither a reason nor a step; nil = none is.
func unexplained(in *world.Input, r *plan.Result) *plan.Server {
	for _, s := range r.Servers {
		atGoal, power := false, model.PowerUnknown
		if facts := in.Observed.ServerFacts[s.Name]; facts != nil {
			power = facts.Power
		}
		switch rec := s.Record; rec.Life.State {
		case model.StateAvailable:
			atGoal = power == model.PowerOff
		case model.StateReserved:
			atGoal = s.Claim != nil && rec.Release == nil && power == s.Claim.Spec.Power &&
				(rec.Install.Digest != "" || s.Claim.Spec.Power == model.PowerOff)
		case model.StateReleased, model.StateMaintenance:
			atGoal = rec.Release == nil || rec.Release.Retain
		case model.StateInitial, model.StateDiscovery, model.StateCleanup, model.StateError:
		}
		if m := r.Moves[s.Name]; !atGoal && s.Why.Reason == "" && !in.Busy[s.Name] && (m == nil || m.Routine) {
			return s
		}
	}
	return nil
}

// checkTicket checks whether a ticket is open for longer than it is of use.
func (h *history) checkTicket(rec *model.ServerRecord) {
	if rec == nil || !rec.Boot.Ticket.Open() || rec.Doubt != nil || h.w.loop == nil || h.w.suspended(rec) {
		return
	}
	t, from := rec.Boot.Ticket, rec.Boot.Ticket.ArmedAt
	if rec.Power.Asked != nil && rec.Power.Asked.At.After(from) {
		from = rec.Power.Asked.At
	}
	longest := map[model.TicketPurpose]time.Duration{
		model.PurposeDiscovery: 30 * time.Minute,
		model.PurposeClaim:     15 * time.Minute,
		model.PurposeCleanup:   30 * time.Minute,
	}
	if !t.IgnitionAt.IsZero() || h.w.observed.Progress[rec.Name] != nil && h.w.observed.Progress[rec.Name].Ticket == t.ID {
		return // it was used
	}
	if age := time.Since(from); age > longest[t.Purpose]+5*time.Minute {
		h.fail("the %s ticket of %s is open for %v, unused", t.Purpose, rec.Name, age)
	}
}

// suspended reports whether nothing is done to a server, not even on record.
func (w *loopWorld) suspended(*model.ServerRecord) bool {
	in := &world.Input{Desired: w.desired, Observed: w.snapshot(), Policy: w.policy(), Now: time.Now()}
	return plan.Plan(in).ObserveOnly.Reason != ""
}

// allowed reports whether Git asked for the disk of a server to change: its claim left
// Git since the server was bound to it, or was asked to be installed anew since the disk
// holds what it does. That it did so once, for another binding or another install, is no
// leave for ever.
func (h *history) allowed(name model.ServerName) bool {
	o := h.owner[name]
	removed, wasRemoved := h.removed[o.claim]
	again, wasAsked := h.again[o.claim]
	return wasRemoved && removed >= o.since || wasAsked && again >= h.disks[name].since
}

// atRest checks whether all is where Git wants it.
func (h *history) atRest() {
	w := h.w
	in := w.loop.Input(time.Now())
	r := plan.Plan(in)
	for name, m := range r.Moves {
		for _, a := range m.Do {
			if _, reads := a.(proposal.Inspect); !reads {
				h.fail("after hours of rest %s is still to %s", name, a)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range r.Claims {
		if c.Server == "" {
			h.fail("claim %s has no server: %s", c.Name, c.Why.Message)
		}
	}
	for _, s := range r.Servers {
		m := w.machines[s.Record.SystemURI]
		switch s.Record.Life.State {
		case model.StateReserved:
			if m.power != model.PowerOn || m.disk == "" && (s.Record.Doubt == nil || s.Record.Doubt.Reason != model.DoubtInstallUnknown) {
				h.fail("%s is Reserved for %s with power %s and disk %q: %+v", s.Name, s.Record.Claim.Name, m.power, m.disk, s.Why)
			}
		case model.StateAvailable:
			if m.power != model.PowerOff || m.disk != "" {
				h.fail("%s is Available with power %s and disk %q: %+v", s.Name, m.power, m.disk, s.Why)
			}
		case model.StateInitial, model.StateDiscovery, model.StateCleanup, model.StateReleased, model.StateMaintenance, model.StateError:
			h.fail("%s rests in %s: %+v", s.Name, s.Record.Life.State, s.Why)
		}
	}
}

func (h *history) fail(format string, args ...any) {
	h.w.t.Helper()
	for i, l := range h.log {
		h.w.t.Logf("%d. %s", i, l)
	}
	h.w.t.Fatalf(format, args...)
}
