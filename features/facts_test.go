package features

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/model"
)

// facts is what is to be seen of a machine from outside.
type facts struct {
	PowerOns, Installs, Resets, Boots, Wipes int
	Power                                    model.Power
	Disk                                     string // what is on it, and when that was installed
}

func (m *machine) facts() facts {
	f := facts{
		PowerOns: m.PowerOns(), Installs: len(m.Installs()), Resets: len(m.Resets()), Boots: len(m.Boots()),
		Wipes: m.wipes(), Power: m.Power(),
	}
	if d := m.Disk(); d != nil {
		f.Disk = fmt.Sprintf("%s since %s", d.Image, d.InstalledAt.Format(time.RFC3339Nano))
	}
	return f
}

func (m *machine) wipes() int {
	n := 0
	for _, e := range m.Events() {
		if e.Kind == sim.EventWiped && len(e.Left) == 0 {
			n++
		}
	}
	return n
}

func noteBeforeAction(ctx context.Context, step *godog.Step) (context.Context, error) {
	w := siteOf(ctx)
	if step.Type == "Action" && w.noted == nil {
		w.noted = make(map[string]facts)
		for name, m := range w.machines {
			w.noted[name] = m.facts()
		}
	}
	return ctx, nil
}

// stranded counts the boots that came to nothing, as while Ingot is down: each is made
// good by another power-on.
func (m *machine) stranded() int {
	n := 0
	for _, e := range m.Events() {
		if e.Kind == sim.EventNoDevice || strings.HasPrefix(e.What, "boot: failed") {
			n++
		}
	}
	return n
}

// nothingHappens waits until Ingot has acted upon another commit and has looked
// at the servers' BMCs again, and then compares what is to be seen of them.
func nothingHappens(ctx context.Context, list string) error {
	w := siteOf(ctx)
	if err := w.marker(ctx, list); err != nil {
		return err
	}
	return forEach(list, func(name string) error {
		m, err := w.machine(name)
		if err != nil {
			return err
		}
		if now, before := m.facts(), w.noted[name]; now != before {
			return fmt.Errorf("something happened to %s: it was %+v and is %+v", name, before, now)
		}
		return nil
	})
}

// marker makes sure that Ingot has had its chance to do something wrong. Where
// it cannot act upon commits, or a BMC cannot be asked, that part says nothing.
func (w *site) marker(ctx context.Context, list string) error {
	s, err := w.ingot.summary(ctx)
	if err != nil {
		return err
	}
	if (s.Trouble == nil) && w.ready(ctx) {
		commit, err := w.repo.CommitTo(w.branch, map[string]string{"marker.txt": time.Now().String() + "\n"}, "mark the time")
		if err != nil {
			return err
		}
		if err := w.applied(ctx, commit); err != nil {
			return err
		}
	}
	var reachable []string
	for _, name := range names(list) {
		m, err := w.machine(name)
		if err != nil {
			return err
		}
		if len(m.BMC().Faults()) == 0 && w.inGit(bmcPath(m.bmc)) {
			reachable = append(reachable, m.bmc)
		}
	}
	return w.lookedAt(reachable...)
}

func (w *site) inGit(path string) bool {
	files, err := w.repo.ReadBranch(w.branch)
	return err == nil && files[path] != ""
}

// wasDone compares what was done to a machine since the first When. Where it does not
// matter how often it was switched on, powerOns is "": a machine that asked while Ingot
// was down is switched on again.
func wasDone(ctx context.Context, m *machine, powerOns, installs, wipes string) error {
	w := siteOf(ctx)
	if err := w.marker(ctx, m.name); err != nil {
		return err
	}
	want := facts{PowerOns: m.PowerOns() - w.noted[m.name].PowerOns, Installs: count(installs), Wipes: count(wipes)}
	if powerOns != "" {
		want.PowerOns = count(powerOns)
	}
	return w.expect(m.name, m, want)
}

// lastReset waits until a machine was asked to go off, which has to be in this way.
func lastReset(ctx context.Context, m *machine, how string) error {
	want := map[string]string{"shut down": "GracefulShutdown", "forced off": "ForceOff"}[how]
	return siteOf(ctx).eventually(ctx, func(summary) error {
		resets := m.Resets()
		if len(resets) == 0 || resets[len(resets)-1].Type != want {
			return fmt.Errorf("%s was asked for %v, want a last %s", m.name, resets, want)
		}
		return nil
	})
}

func (w *site) expect(name string, m *machine, want facts) error {
	now, before := m.facts(), w.noted[name]
	got := facts{PowerOns: now.PowerOns - before.PowerOns, Installs: now.Installs - before.Installs, Wipes: now.Wipes - before.Wipes}
	if got != want {
		return fmt.Errorf("%s was powered on %d times, installed %d times and wiped %d times; want %d, %d and %d",
			name, got.PowerOns, got.Installs, got.Wipes, want.PowerOns, want.Installs, want.Wipes)
	}
	return nil
}

// watched is how long it is watched that something does not happen.
const watched = 4 * time.Second

func wasRestarted(ctx context.Context, m *machine, times string) error {
	restarts := func() error {
		if n := m.restarts(); n != count(times) {
			return fmt.Errorf("%s was restarted %d times, not %s", m.name, n, times)
		}
		return nil
	}
	if err := rig.Within(patience, restarts); err != nil {
		return err
	}
	return watch(restarts)
}

func (m *machine) restarts() (n int) {
	for _, e := range m.Events() {
		if e.Kind == sim.EventRestart || e.Kind == sim.EventPowerOff && e.Reset == "PowerCycle" {
			n++
		}
	}
	return n
}

// watch looks for a while whether check finds something wrong: that nothing happens has
// no event to wait for.
func watch(check func() error) error {
	for end := time.Now().Add(watched); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
