package reconcile

import (
	"context"
	"errors"
	"maps"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
	"ingot/reconcile/truth"
)

// source is where revisions come from.
type source struct {
	desired *model.Desired
	changed chan struct{}
	hidden  map[model.Identity]bool // gone in a revision of which something cannot be read
}

type memory struct {
	observed *model.Observed
	last     model.Observed // that was given out
	stored   chan struct{}
	saves    int
	onSave   func(c proposal.Changes) // called with each save that is made; nil = not
	seq      uint64
	cut      int             // how many of the next saves of server records fail
	tickets  []*model.Ticket // that were saved, each as it was last
}

func (w *loopWorld) Desired() *model.Desired {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.desired
}

// commit makes a new revision.
func (w *loopWorld) commit(change func(d *model.Desired)) {
	w.mu.Lock()
	d := w.desired.Clone()
	d.Removed = maps.Clone(d.Removed)
	change(d)
	d.Revision += "1"
	w.removals(d)
	w.desired = d
	w.mu.Unlock()
	signal(w.changed)
}

// removals notes in a revision what it took away, as the source does: what cannot be
// read is not removed.
func (w *loopWorld) removals(d *model.Desired) {
	if d.Removed == nil {
		d.Removed = make(map[model.Identity][]model.Removal)
	}
	gone := func(id model.Identity, before, after bool) {
		switch {
		case after:
			delete(d.Removed, id)
		case before && d.IsQuarantined(id):
			w.hidden[id] = true
		case before:
			d.Removed[id] = []model.Removal{{Revision: d.Revision, At: time.Now()}}
		}
	}
	for id := range w.hidden {
		if !d.IsQuarantined(id) {
			delete(w.hidden, id)
			gone(id, true, false)
		}
	}
	for name := range w.desired.Claims {
		gone(name.Identity(), true, d.Claims[name] != nil)
	}
	for name := range d.Claims {
		gone(name.Identity(), false, true)
	}
	for name := range w.desired.Servers {
		gone(name.Identity(), true, d.Servers[name] != nil)
	}
	for name := range d.Servers {
		gone(name.Identity(), false, true)
	}
	for name := range w.desired.BMCs {
		gone(name.Identity(), true, d.BMCs[name] != nil)
	}
	for name := range d.BMCs {
		gone(name.Identity(), false, true)
	}
	for name := range w.desired.Maintenances {
		gone(model.MaintenanceIdentity(name), true, d.Maintenances[name] != nil)
	}
	for name := range d.Maintenances {
		gone(model.MaintenanceIdentity(name), false, true)
	}
	for name := range w.desired.ReadinessRules {
		gone(model.ReadinessRuleIdentity(name), true, d.ReadinessRules[name] != nil)
	}
	for name := range d.ReadinessRules {
		gone(model.ReadinessRuleIdentity(name), false, true)
	}
	for _, r := range d.Renamed[len(w.desired.Renamed):] {
		for old := range r.Names {
			delete(d.Removed, old.Identity())
		}
	}
}

// tokens are what people approve the guard's lists by.
func (w *loopWorld) tokens() []string {
	var all []string
	for _, h := range w.Observed().Fleet.Holds {
		all = append(all, h.Token)
	}
	return all
}

func (w *loopWorld) Observed() *model.Observed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot()
}

// snapshot is what is stored. As those of the registry, two snapshots share what has not
// changed between them.
func (w *loopWorld) snapshot() *model.Observed {
	o, last := *w.observed, w.last
	o.Servers, o.BMCs, o.Claims = shared(last.Servers, o.Servers), shared(last.BMCs, o.BMCs), shared(last.Claims, o.Claims)
	o.BMCFacts, o.ServerFacts = shared(last.BMCFacts, o.BMCFacts), shared(last.ServerFacts, o.ServerFacts)
	o.Endpoints, o.EndpointFacts = shared(last.Endpoints, o.Endpoints), shared(last.EndpointFacts, o.EndpointFacts)
	o.Probes, o.BootStates = shared(last.Probes, o.Probes), shared(last.BootStates, o.BootStates)
	o.Wipes, o.Progress = shared(last.Wipes, o.Wipes), shared(last.Progress, o.Progress)
	o.WipeProgress = shared(last.WipeProgress, o.WipeProgress)
	w.last = o
	return &o
}

// shared is a copy of what there is now, or the last one if that is the same.
func shared[K, V comparable](last, now map[K]V) map[K]V {
	if last != nil && maps.Equal(last, now) {
		return last
	}
	return maps.Clone(now)
}

func (w *loopWorld) Changed() <-chan struct{} { return w.stored }

func (w *loopWorld) Save(_ context.Context, c proposal.Changes) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saves++
	if w.cut > 0 && len(c.Servers) > 0 {
		w.cut--
		return errors.New("killed before the record was saved")
	}
	if w.onSave != nil {
		w.onSave(c)
	}
	w.seq++
	w.observed.Sequence = w.seq
	if c.Fleet != nil {
		w.observed.Fleet = *c.Fleet
	}
	for _, r := range c.Servers {
		w.letsBoot(w.observed.Servers[r.Name], r)
		w.observed.Servers[r.Name] = r
		if n := len(w.tickets); r.Boot.Ticket != nil && n > 0 && w.tickets[n-1].ID == r.Boot.Ticket.ID {
			w.tickets[n-1] = r.Boot.Ticket
		} else if r.Boot.Ticket != nil {
			w.tickets = append(w.tickets, r.Boot.Ticket)
		}
	}
	for _, r := range c.BMCs {
		w.observed.BMCs[r.Name] = r
	}
	for _, r := range c.Claims {
		w.observed.Claims[r.Name] = r
	}
	for _, n := range c.DropClaims {
		delete(w.observed.Claims, n)
	}
	for _, r := range c.Endpoints {
		w.observed.Endpoints[r.Name] = r
	}
	for _, n := range c.DropEndpoints {
		delete(w.observed.Endpoints, n)
	}
	for _, r := range c.BMCFacts {
		w.observed.BMCFacts[r.Name] = r
	}
	for _, n := range c.DropBMCFacts {
		delete(w.observed.BMCFacts, n)
	}
	for _, n := range c.DropServers {
		w.drop(n)
	}
	for _, r := range c.ServerFacts {
		w.observed.ServerFacts[r.Name] = r
	}
	return nil
}

func (w *loopWorld) drop(n model.ServerName) {
	o := w.observed
	delete(o.Servers, n)
	delete(o.ServerFacts, n)
	delete(o.Probes, n)
	delete(o.BootStates, n)
	delete(o.Wipes, n)
	delete(o.WipeProgress, n)
	delete(o.Progress, n)
}

// letsBoot looks that a record which lets a machine boot with a ticket, where the one
// before did not, is of a machine that is off: one that runs would get what is not
// its own. One that was given up is left as it is, for a person to boot it.
func (w *loopWorld) letsBoot(before, after *model.ServerRecord) {
	t, m := after.Boot.Ticket, w.machines[after.SystemURI]
	if m == nil || !t.Open() || !t.MayBoot(w.observed.Progress[after.Name]) || after.Boot.Attempts >= w.policy().BootAttempts {
		return
	}
	if before != nil && before.Boot.Ticket != nil && before.Boot.Ticket.ID == t.ID && before.Boot.Ticket.MayBoot(nil) {
		return
	}
	if p := w.observed.Progress[after.Name]; t.Disk != nil && p != nil && p.Ticket == t.ID && p.Install != nil && !p.Install.Verified() {
		return // it runs the ticket's own probe
	}
	if m.power != model.PowerOff {
		w.t.Errorf("%s may boot with ticket %s of %s while it is %s", after.Name, t.ID, t.Purpose, m.power)
	}
}

// decided is what the status branch keeps of records.
func decided[N comparable, R any](records map[N]*R) map[N]*R {
	kept := make(map[N]*R)
	for name, rec := range records {
		kept[name] = report.Decided(rec)
	}
	return kept
}

// restored are the records that a lost store is filled with from the status branch.
func restored(files map[string][]byte) (model.Records, []error) {
	b, problems := report.ReadBranch(files)
	none := model.NewObserved().Records
	return *truth.Adopt(truth.Verdict{From: truth.FromHead, Recover: true}, &none, &b.Records).Records, problems
}

// loseStore restarts with what the status branch says alone.
func (w *loopWorld) loseStore(files map[string][]byte) {
	w.t.Helper()
	w.stop()
	recs, problems := restored(files)
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	w.mu.Lock()
	o := model.NewObserved()
	o.Records = recs
	o.Progress, o.Wipes, o.BootStates, o.Probes = w.observed.Progress, w.observed.Wipes, w.observed.BootStates, w.observed.Probes
	w.observed = o
	w.mu.Unlock()
	w.start()
}
