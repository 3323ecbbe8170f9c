package features

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/model"
	"ingot/reconcile/report"
)

func serversAre(ctx context.Context, list, state string) error {
	return worldOf(ctx).eventually(ctx, func(s report.Summary) error {
		return forEach(list, func(name string) error { return serverIn(s, worldOf(ctx).called(name), state) })
	})
}

func poweredIs(ctx context.Context, name, power string) error {
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if p := m.Power(); string(p) != power {
			return fmt.Errorf("%s is powered %s", name, p)
		}
		return nil
	})
}

func inError(ctx context.Context, name string) error {
	if err := serversAre(ctx, name, "Error"); err != nil {
		return err
	}
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	seen := w.report.exchanges(func(e exchange) bool { return e.uuid == m.UUID() && e.disk != "" })
	if len(seen) == 0 {
		return fmt.Errorf("the probe of %s never named a disk", name)
	}
	return w.statusHolds("servers/"+name+".yaml", "(serial "+seen[0].disk)
}

// wipedAgain waits for the report of a second wipe, which changes nothing.
func wipedAgain(ctx context.Context, name string) error {
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	err = rig.Within(patience, func() error {
		seen := w.report.exchanges(func(e exchange) bool { return e.uuid == m.UUID() && strings.HasSuffix(e.path, "/wipe") })
		if len(seen) < 2 {
			return fmt.Errorf("%s reported %d wipes", name, len(seen))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return inError(ctx, name)
}

func claimIsOn(ctx context.Context, claim, state, server string) error {
	return worldOf(ctx).eventually(ctx, func(s report.Summary) error {
		c, err := claimIn(s, claim)
		if err != nil {
			return err
		}
		if string(c.Server) != worldOf(ctx).called(server) || string(c.State) != state {
			return fmt.Errorf("claim %s is %s on %q: %s", claim, c.State, c.Server, c.Why)
		}
		return nil
	})
}

func claimIn(s report.Summary, name string) (report.ClaimSummary, error) {
	for _, c := range s.Claims {
		if c.Name == claimName(name) {
			return c, nil
		}
	}
	return report.ClaimSummary{}, fmt.Errorf("there is no claim %s", name)
}

func claimUnbound(ctx context.Context, claim string) error {
	return claimIsOn(ctx, claim, "Unbound", "")
}

// eachBooted looks at claims and machines alike: each claim has one server, and
// each server was installed once.
func eachBooted(ctx context.Context, n int) error {
	w := worldOf(ctx)
	taken := make(map[model.ServerName]model.ClaimName)
	err := rig.Within(3*patience, func() error {
		s, err := w.ingot.summary(ctx)
		if err != nil {
			return err
		}
		clear(taken)
		booted := 0
		for _, c := range s.Claims {
			if c.State == report.ClaimBooted {
				taken[c.Server] = c.Name
				booted++
			}
		}
		if booted < n || len(taken) < n {
			return fmt.Errorf("%d of %d claims are Booted, on %d servers", booted, n, len(taken))
		}
		return nil
	})
	for name, m := range w.machines {
		err = errors.Join(err, w.expect(name, m, facts{PowerOns: 1 + m.stranded(), Installs: 1}))
	}
	return err
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
	w := worldOf(ctx)
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
func (w *world) marker(ctx context.Context, list string) error {
	s, err := w.ingot.summary(ctx)
	if err != nil {
		return err
	}
	if (s.Source == nil || s.Source.Reason == "") && w.ready(ctx) {
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

func (w *world) inGit(path string) bool {
	files, err := w.repo.ReadBranch(w.branch)
	return err == nil && files[path] != ""
}

func wasDone(ctx context.Context, name, powerOns, installs, wipes string) error {
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	if err := w.marker(ctx, name); err != nil {
		return err
	}
	return w.expect(name, m, facts{PowerOns: count(powerOns), Installs: count(installs), Wipes: count(wipes)})
}

// wasInstalled is wasDone where it does not matter how often a machine was switched on:
// one that asked while Ingot was down is switched on again.
func wasInstalled(ctx context.Context, name, installs, wipes string) error {
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	if err := w.marker(ctx, name); err != nil {
		return err
	}
	return w.expect(name, m, facts{
		PowerOns: m.PowerOns() - w.noted[name].PowerOns, Installs: count(installs), Wipes: count(wipes),
	})
}

// expect compares what was done to a machine since the scenario's first When.
func (w *world) expect(name string, m *machine, want facts) error {
	now, before := m.facts(), w.noted[name]
	got := facts{PowerOns: now.PowerOns - before.PowerOns, Installs: now.Installs - before.Installs, Wipes: now.Wipes - before.Wipes}
	if got != want {
		return fmt.Errorf("%s was powered on %d times, installed %d times and wiped %d times; want %d, %d and %d",
			name, got.PowerOns, got.Installs, got.Wipes, want.PowerOns, want.Installs, want.Wipes)
	}
	return nil
}

// runsFromDisk waits for a boot since the first When that came to what is on the disk.
func runsFromDisk(ctx context.Context, name string) error {
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		boots := m.Boots()
		if len(boots) <= w.noted[name].Boots {
			return fmt.Errorf("%s has not booted", name)
		}
		if last := boots[len(boots)-1]; last.Outcome != sim.OutcomeDisk {
			return fmt.Errorf("%s booted from %s: %s", name, last.From, last.Outcome)
		}
		return diskKept(ctx, name)
	})
}

func runsImage(ctx context.Context, name, image string) error {
	m, err := worldOf(ctx).machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if d := m.Disk(); d == nil || d.Image != kernelDigest(image) {
			return fmt.Errorf("the disk of %s holds %+v", name, d)
		}
		return nil
	})
}

func diskEmpty(ctx context.Context, name string) error {
	m, err := worldOf(ctx).machine(name)
	if err == nil && m.Disk() != nil {
		err = fmt.Errorf("the disk of %s holds %+v", name, *m.Disk())
	}
	return err
}

func diskKept(ctx context.Context, name string) error {
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err == nil && m.facts().Disk != w.noted[name].Disk {
		err = fmt.Errorf("the disk of %s holds %q, and held %q", name, m.facts().Disk, w.noted[name].Disk)
	}
	return err
}

func guardHolds(ctx context.Context, n int) error {
	w := worldOf(ctx)
	err := w.eventually(ctx, func(s report.Summary) error {
		held := 0
		for _, g := range s.Guard {
			held += len(g.Steps)
		}
		if held != n {
			return fmt.Errorf("the guard holds %+v", s.Guard)
		}
		return nil
	})
	return errors.Join(err, w.statusHolds(model.ReportRevision, "Ingot-Approve: "))
}

func guardHoldsNothing(ctx context.Context) error {
	return worldOf(ctx).eventually(ctx, func(s report.Summary) error {
		if len(s.Guard) > 0 {
			return fmt.Errorf("the guard holds %+v", s.Guard)
		}
		return nil
	})
}

// leftInPeace watches a BMC for as long as another takes to be asked again.
func leftInPeace(ctx context.Context, name string) error {
	w := worldOf(ctx)
	before := w.bmcs[name].Requests()
	var others []string
	for b := range w.bmcs {
		if b != name {
			others = append(others, b)
		}
	}
	if err := w.lookedAt(others...); err != nil {
		return err
	}
	if n := w.bmcs[name].Requests() - before; n > 0 {
		return fmt.Errorf("BMC %s was asked %d times more", name, n)
	}
	return nil
}

func refusedWith(ctx context.Context, code int) error {
	if got := worldOf(ctx).refused; got != code {
		return fmt.Errorf("the answer was %d, not %d", got, code)
	}
	return nil
}

// reportsRefused waits until more than one report with a machine's token was refused.
func reportsRefused(ctx context.Context, name string) error {
	w := worldOf(ctx)
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		given := w.boot.exchanges(func(e exchange) bool { return e.uuid == m.UUID() && e.report != "" })
		refused := w.report.exchanges(func(e exchange) bool {
			return e.code == 403 && slices.ContainsFunc(given, func(g exchange) bool { return g.report == e.token })
		})
		if len(refused) < 2 {
			return fmt.Errorf("%d reports of %s were refused", len(refused), name)
		}
		return nil
	})
}

// statusHolds waits until a file of the status branch holds a text.
func (w *world) statusHolds(path, want string) error {
	return rig.Within(patience, func() error {
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		if !strings.Contains(unfolded(files[path]), want) {
			return fmt.Errorf("%s of the status branch does not say %q:\n%s", path, want, files[path])
		}
		return nil
	})
}

// unfolded is YAML with its folded lines put together.
func unfolded(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

func statusSaysOf(ctx context.Context, kind, name, want string) error {
	folder := map[string]string{"server": "servers/", "claim": "serverclaims/default/", "BMC": "bmcs/", "endpoint": "endpoints/", "boot configuration": "serverbootconfigurations/default/"}[kind]
	w := worldOf(ctx)
	return w.statusHolds(folder+w.called(name)+".yaml", strings.ReplaceAll(want, `\"`, `"`))
}

func statusSays(ctx context.Context, what, want string) error {
	path := map[string]string{"problems": model.ReportProblems, "revision": model.ReportRevision, "front page": model.ReportReadme}[what]
	return worldOf(ctx).statusHolds(path, want)
}

func statusOmits(ctx context.Context, claim string) error {
	return rig.Within(patience, func() error {
		files, err := worldOf(ctx).statusBranch()
		if err != nil {
			return err
		}
		for path, text := range files {
			if path == model.ReportRevision {
				continue // where the guard's list of the last hour names it
			}
			if strings.Contains(path, "/"+claim+".yaml") || strings.Contains(text, "default/"+claim) {
				return fmt.Errorf("%s of the status branch mentions claim %s", path, claim)
			}
		}
		return nil
	})
}

func statusIsOurs(ctx context.Context) error {
	w := worldOf(ctx)
	return w.eventually(ctx, func(s report.Summary) error {
		files, err := w.statusBranch()
		if err != nil {
			return err
		}
		if files[foreignFile] != "" {
			return fmt.Errorf("the status branch still shows %s; it has %v", foreignFile, slices.Sorted(maps.Keys(files)))
		}
		return w.statusBranchAgrees(s)
	})
}

func statusStays(ctx context.Context) error {
	w := worldOf(ctx)
	if now := w.repo.Head(statusBranch); now != w.statusHead {
		return fmt.Errorf("the status branch moved from %s to %s", w.statusHead, now)
	}
	return nil
}

// fetchedOnce looks for layers that their registry was asked for more than once.
func fetchedOnce(ctx context.Context) error {
	fetched := make(map[string]int)
	for _, e := range worldOf(ctx).imagesSeen.exchanges(func(e exchange) bool { return strings.Contains(e.path, "/blobs/") }) {
		fetched[e.path]++
	}
	if len(fetched) == 0 {
		return errors.New("no layer was fetched")
	}
	for path, n := range fetched {
		if n > 1 {
			return fmt.Errorf("%s was fetched %d times", path, n)
		}
	}
	return nil
}
