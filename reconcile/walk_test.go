package reconcile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/truth"
)

// TestTheWalkBreaksNoLaw takes the pure decisions, the plan and the merge, through random
// histories of a fleet whose machines do at once what they are asked for: commits and
// rewritten histories, a status branch that takes no pushes or is set back, stores that
// are lost, older than they were or have holes, answers that are lost, and a process that
// is killed at any effect or save. HISTORIES says how many, 100 unless it is set.
func TestTheWalkBreaksNoLaw(t *testing.T) {
	n := 100
	if text := os.Getenv("HISTORIES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("HISTORIES: %v", err)
		}
	}
	first := uint64(0)
	if text := os.Getenv("HISTORY"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("HISTORY: %v", err)
		}
		first, n = seed, 1
	}
	var mu sync.Mutex
	total := make(map[string]int)
	var walkers sync.WaitGroup
	shards := uint64(runtime.GOMAXPROCS(0))
	for shard := range shards {
		walkers.Go(func() {
			for seed := first + shard; seed < first+uint64(n) && !t.Failed(); seed += shards {
				w := newWalk(t, seed)
				w.run()
				mu.Lock()
				for what, times := range w.did {
					total[what] += times
				}
				mu.Unlock()
			}
		})
	}
	walkers.Wait()
	for _, what := range []string{"install", "wipe", "restart", "shutdown", "heal", "crash", "discover", "forget", "forget when asked"} {
		if n >= 100 && total[what] == 0 {
			t.Errorf("in %d histories nothing came to %q: the walk proves nothing", n, what)
		}
	}
	t.Logf("%d histories: %v", n, total)
}

// walked is a machine as it really is, and what Git ever asked for it.
type walked struct {
	name  model.ServerName
	power model.Power
	disk  model.ClaimName // whose system is on it, "" = empty
	// ticket is what a network boot would be served.
	booted string
	rude   bool // it knows no graceful shutdown
	away   bool // its BMC does not answer
	kept   bool // the release of its disk's owner was to leave that as it is
	// asks are what commits asked for that takes something from the machine's user, and
	// that has not been done yet.
	asks map[string]int
}

// walk is one history. The book in it knows only what commits asked for and what the
// machines really did.
type walk struct {
	t   *testing.T
	rnd *rand.Rand
	log []string
	did map[string]int

	now      time.Time
	desired  *model.Desired
	observed *model.Observed // the store
	branch   *model.Records  // what the status branch shows
	copied   *model.Observed // an older copy of the store
	blocked  bool            // the branch takes no pushes
	readings map[model.ServerName]reading.State
	bmcRead  map[model.BMCName]time.Time
	machines []*walked
	seq      uint64
	mark     model.Mark // of the branch
	process  int
	hole     bool                              // the store lost a record
	shown    map[model.ServerName]model.Intent // what this process has pushed
	commits  int
	values   int
	started  time.Time

	// removals and renames are what commits took away and gave another name, and broken are the
	// claims that stand in Git and cannot be used, with what was in force before they were; nil =
	// nothing was. The source knows of what came after the revision since.
	removals []model.RemovedObject
	renames  []renamed
	broken   map[model.ClaimName]*model.ServerClaim
	since    int
	// facts are what each BMC shows that is in Git.
	facts map[model.BMCName]*model.BMCFacts
	taken map[model.BMCName]*model.BMC // out of Git
	// disruptions is what the guard lets be done.
	disruptions int
	holds       uint64 // seed of the held proposals; 0 = none is held
}

// renamed is that a commit gave a claim another name.
type renamed struct {
	from, to model.ClaimName
	commit   int
}

func newWalk(t *testing.T, seed uint64) *walk {
	in := plantest.BigFleet(3, 0)
	w := &walk{
		t: t, rnd: rand.New(rand.NewPCG(seed, 3)), did: make(map[string]int), now: in.Now, desired: in.Desired,
		observed: in.Observed, readings: in.Readings, bmcRead: in.BMCRead, started: in.Now,
		broken: make(map[model.ClaimName]*model.ServerClaim), disruptions: 100, facts: maps.Clone(in.Observed.BMCFacts),
		taken: make(map[model.BMCName]*model.BMC),
	}
	w.say("seed %d", seed)
	if seed%2 == 1 {
		w.disruptions = 1
	}
	if seed%3 == 2 {
		w.holds = seed
	}
	for _, name := range slices.Sorted(maps.Keys(in.Observed.Servers)) {
		w.machines = append(w.machines, &walked{name: name, power: model.PowerOff, rude: w.rnd.IntN(4) == 0, asks: make(map[string]int)})
	}
	w.save(proposal.Changes{})
	w.publish()
	w.copied = w.copyStore()
	return w
}

func (w *walk) say(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	for i, l := range w.log {
		w.t.Logf("%d. %s", i, l)
	}
	w.t.Errorf(format, args...)
}

func (w *walk) run() {
	for range 40 {
		w.event()
		for range 8 {
			w.step()
			if w.t.Failed() {
				return
			}
		}
	}
}

// policy is the real one, but for what would only take time.
func (w *walk) policy() policy.Options {
	p := policy.Default()
	p.DiscoveryImage, p.ShowFirst = "probe", true
	p.RememberFor = 20 * time.Minute
	p.MaxDisruptions, p.MaxPowerDisruptions = w.disruptions, 100 // the guard has a walk of its own
	return p
}

// event is something that people or chance do.
func (w *walk) event() {
	if w.rnd.IntN(2) == 0 {
		w.commitsSomething()
	} else {
		w.happens()
	}
}

// anyClaim is a name that claims may have: one of a few, or of one that was given another.
func (w *walk) anyClaim() model.ClaimName {
	if n := len(w.renames); n > 0 && w.rnd.IntN(3) == 0 {
		return w.renames[w.rnd.IntN(n)].to
	}
	return model.ClaimName(fmt.Sprint("default/c", w.rnd.IntN(3)))
}

func (w *walk) anyMachine() *walked { return w.machines[w.rnd.IntN(len(w.machines))] }

func (w *walk) change(key model.ClaimName, how func(c *model.ServerClaim)) func(d *model.Desired) {
	return func(d *model.Desired) {
		if old := d.Claims[key]; old != nil {
			c := *old
			how(&c)
			d.Add(&c)
		}
	}
}

// server changes what Git says of a machine.
func (w *walk) server(m *walked, how func(s *model.Server)) func(d *model.Desired) {
	return func(d *model.Desired) {
		s := model.Server{Meta: model.Meta{Name: string(m.name)}}
		if old := d.Servers[m.name]; old != nil {
			s = *old
		}
		how(&s)
		d.Add(&s)
	}
}

func (w *walk) commitsSomething() {
	key, m := w.anyClaim(), w.anyMachine()
	_, name := model.SplitName(key)
	w.values++
	value := fmt.Sprint(w.values)
	switch w.rnd.IntN(20) {
	case 17, 18:
		w.commit("the BMC of "+string(m.name)+" leaves Git, or is back", func(d *model.Desired) { w.takeBMC(d, m) })
	case 19:
		w.commit("forget "+string(m.name), w.server(m, func(s *model.Server) {
			s.Annotations = map[string]string{model.AnnotationOperation: model.OperationForget + "#" + value}
		}))
	case 0, 1, 2:
		w.commit("claim "+name, func(d *model.Desired) { w.claims(d, claim(name)) })
	case 3:
		w.commit("claim "+name+" for "+string(m.name), func(d *model.Desired) {
			w.claims(d, claim(name, func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: string(m.name)} }))
		})
	case 4, 5:
		w.commit("remove "+name, func(d *model.Desired) { w.remove(d, key) })
	case 6:
		w.commit("reprovision "+name, w.change(key, func(c *model.ServerClaim) {
			c.Annotations = map[string]string{model.AnnotationReprovision: value}
			w.ask(key, "install")
		}))
	case 7:
		w.commit("no reprovision of "+name, w.change(key, func(c *model.ServerClaim) {
			c.Annotations = nil
			for _, m := range w.having(key) {
				if rec := w.observed.Servers[m.name]; rec != nil && rec.Install.Digest != "" {
					m.asks["install"] = 0
				}
			}
		}))
	case 8:
		op := []string{"power-cycle-server#" + value, "power-cycle-server#" + value, "", model.OperationPark, model.OperationIgnore}[w.rnd.IntN(5)]
		w.commit("operation "+op+" of "+string(m.name), w.server(m, func(s *model.Server) {
			s.Annotations = map[string]string{model.AnnotationOperation: op}
			switch op {
			case "":
				m.asks["restart"] = 0
			case model.OperationPark:
				m.asks["shutdown"] += 3
			case model.OperationIgnore:
			default:
				m.asks["restart"]++
			}
		}))
	case 9, 10:
		w.commit("maintenance begins or ends", func(d *model.Desired) { w.maintain(d, m) })
	case 11:
		w.commit("power of "+name+" changes", w.change(key, func(c *model.ServerClaim) {
			c.Spec.Power = map[model.Power]model.Power{model.PowerOn: model.PowerOff, model.PowerOff: model.PowerOn}[c.Spec.Power]
			w.ask(key, "shutdown")
		}))
	case 12:
		w.commit("another commit, which says nothing", func(*model.Desired) {})
	case 13:
		to := "r" + value
		w.commit("rename "+name+" to "+to, func(d *model.Desired) { w.rename(d, key, to) })
	case 14:
		w.commit(string(m.name)+" is to be kept, or wiped", w.server(m, func(s *model.Server) {
			if s.Spec.ReclaimPolicy == model.ReclaimRetain {
				s.Spec.ReclaimPolicy, m.kept = model.ReclaimRecycle, false
			} else {
				s.Spec.ReclaimPolicy = model.ReclaimRetain
				if rec := w.observed.Servers[m.name]; m.asks["end"] > 0 && rec != nil && rec.Claim.Name == m.disk {
					m.kept = true
				}
			}
		}))
	case 15:
		w.commit("the file of "+name+" is broken, or right again", func(d *model.Desired) { w.breaks(d, key) })
	case 16:
		tokens := w.tokens()
		w.commit("approval of what the guard holds", func(d *model.Desired) { d.Approvals = tokens })
	}
}

// takeBMC takes the BMC of a machine out of Git, with its Server, or puts it back: then it is read again.
func (w *walk) takeBMC(d *model.Desired, m *walked) {
	name := model.BMCName(strings.TrimSuffix(string(m.name), "-system-0"))
	if b := d.BMCs[name]; b != nil {
		w.taken[name] = b
		w.removal(d, name.Identity())
		delete(d.BMCs, name)
		if d.Servers[m.name] != nil {
			w.removal(d, m.name.Identity())
			delete(d.Servers, m.name)
			if rec := w.observed.Servers[m.name]; rec != nil && rec.Release != nil {
				m.kept = rec.Release.Retain // what was asked for later went with it
			}
		}
		return
	}
	d.Add(w.taken[name])
	o := w.copyStore()
	o.BMCFacts[name] = w.facts[name]
	w.observed = o
}

// dropped judges that a server is forgotten: of one that is somebody's a person has to say so, who
// answers for what is on its disks.
func (w *walk) dropped(name model.ServerName) {
	m := w.machines[slices.IndexFunc(w.machines, func(m *walked) bool { return m.name == name })]
	rec, asked := w.observed.Servers[name], ""
	if s := w.desired.Servers[name]; s != nil {
		asked, _ = s.Operation()
	}
	w.say("  %s is forgotten (%s for %q, disk %q)", name, rec.Life.State, rec.Claim.Name, m.disk)
	w.did["forget"]++
	switch {
	case w.desired.BMCs[rec.BMC] != nil:
		w.fail("%s was forgotten, and its BMC is in Git", name)
	case w.desired.Claims[rec.Claim.Name] != nil && !rec.ReleaseDecided():
		w.fail("%s was forgotten, and claim %s has it", name, rec.Claim.Name)
	case asked == model.OperationForget:
		w.did["forget when asked"]++
		m.asks["end"]++
		m.kept = false
	case m.disk != "":
		w.fail("%s was forgotten with claim %s on its disk, and no commit asked for that", name, m.disk)
	}
}

// tokens approve what the guard holds.
func (w *walk) tokens() (all []string) {
	for _, h := range w.observed.Fleet.Holds {
		all = append(all, h.Token)
	}
	return all
}

// claims has a claim in force that was not. What its server has stays, unless that is another's by now.
func (w *walk) claims(d *model.Desired, c *model.ServerClaim) {
	key := c.ClaimName()
	wasRenamed := func(r renamed) bool { return r.from == key } // both in one look are no rename
	if d.Claims[key] != nil || slices.ContainsFunc(w.renames, wasRenamed) {
		return
	}
	delete(d.Quarantined, key.Identity())
	delete(w.broken, key)
	d.Add(c)
	w.isBack(c)
}

// isBack notes that a claim that was removed is right again.
func (w *walk) isBack(c *model.ServerClaim) {
	for _, m := range w.having(c.ClaimName()) {
		ref := c.Spec.ServerRef
		rec := w.observed.Servers[m.name]
		switch isFor := ref == nil || ref.Name == string(m.name); {
		case w.stays(m) && isFor:
			m.asks["end"], m.kept = 0, false
		case rec != nil && rec.ReleaseDecided() && !isFor:
			m.asks["end"]++
		}
	}
}

// stays reports whether a machine's disk is what its record says that is kept for its claim, should
// that come back.
func (w *walk) stays(m *walked) bool {
	rec := w.observed.Servers[m.name]
	return rec != nil && rec.Claim.Name == m.disk && rec.Install.Digest != "" && rec.Doubt == nil
}

// having are the machines that a claim's system is on.
func (w *walk) having(key model.ClaimName) (all []*walked) {
	for _, m := range w.machines {
		if m.disk == key {
			all = append(all, m)
		}
	}
	return all
}

// remove takes a claim away.
func (w *walk) remove(d *model.Desired, key model.ClaimName) {
	_, broken := w.broken[key]
	if d.Claims[key] == nil && !broken {
		return
	}
	w.ask(key, "end")
	for _, m := range w.having(key) {
		rec, s := w.observed.Servers[m.name], d.Servers[m.name]
		if rec != nil && rec.Claim.Name == key && s != nil && s.Spec.ReclaimPolicy == model.ReclaimRetain {
			m.kept = true
		}
	}
	if d.Claims[key] != nil || w.broken[key] != nil {
		w.removal(d, key.Identity())
	}
	delete(d.Claims, key)
	delete(d.Quarantined, key.Identity())
	delete(w.broken, key)
}

// removal notes that a commit took something away.
func (w *walk) removal(d *model.Desired, id model.Identity) {
	w.removals = append(w.removals, model.RemovedObject{Identity: id, Removal: model.Removal{Revision: d.Revision, At: w.now}})
}

// breaks has a claim's file be one that cannot be used, of which the source knows no other content, or
// has it be right again.
func (w *walk) breaks(d *model.Desired, key model.ClaimName) {
	was, broken := w.broken[key]
	_, name := model.SplitName(key)
	switch {
	case broken && was == nil:
		w.claims(d, claim(name))
	case broken:
		delete(d.Quarantined, key.Identity())
		delete(w.broken, key)
		d.Add(was)
	case d.Claims[key] != nil && w.hidesRename(): // the source keeps what it was called before
	default:
		if w.broken[key] = d.Claims[key]; d.Claims[key] == nil {
			for _, m := range w.having(key) {
				if w.stays(m) {
					m.asks["end"] = 0
				}
			}
		}
		delete(d.Claims, key)
		d.Quarantined[key.Identity()] = []string{""}
	}
}

func (w *walk) rename(d *model.Desired, key model.ClaimName, to string) {
	old := d.Claims[key]
	if old == nil {
		return
	}
	c := *old
	c.Name = to
	delete(d.Claims, key)
	d.Add(&c)
	w.renames = append(w.renames, renamed{key, c.ClaimName(), w.commits})
	for _, m := range w.having(key) {
		if m.asks["end"] == 0 {
			m.disk = c.ClaimName()
		}
	}
}

// maintain begins a maintenance, or ends it.
func (w *walk) maintain(d *model.Desired, m *walked) {
	if d.Maintenances["m"] != nil {
		delete(d.Maintenances, "m")
		w.removal(d, model.MaintenanceIdentity("m"))
		return
	}
	spec := model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: string(m.name)}}
	if w.rnd.IntN(2) == 0 {
		spec.ServerPower = model.PowerOn
	} else {
		m.asks["shutdown"] += 3
	}
	d.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: spec})
}

func (w *walk) happens() {
	switch w.rnd.IntN(10) {
	case 0:
		if w.hidesRename() {
			return
		}
		w.say("the claims vanish without a commit that takes them away")
		d := w.desired.Clone()
		w.commits++
		d.Revision = model.Revision(fmt.Sprint("main@sha1:", w.commits))
		clear(d.Claims)
		w.desired = d
	case 1, 2:
		m := w.anyMachine()
		w.say("a power cut at %s", m.name)
		m.power = model.PowerOff
	case 3:
		w.blocked = !w.blocked
		w.say("the status branch takes pushes: %t", !w.blocked)
	case 4:
		w.say("the store is copied")
		w.copied = w.copyStore()
	case 5:
		w.say("killed, and the store put back as it was copied")
		w.observed = w.copied
		w.copied = w.copyStore()
		w.restart()
	case 6:
		w.say("killed, and the store lost")
		w.observed = w.without()
		w.restart()
	case 7:
		if names := slices.Sorted(maps.Keys(w.observed.Servers)); len(names) > 0 && !w.hidesRename() {
			w.say("killed, and the store lost %s", names[0])
			o := w.copyStore()
			delete(o.Servers, names[0])
			w.observed, w.hole = o, true
		}
		w.restart()
	case 8, 9:
		m := w.anyMachine()
		m.away = !m.away
		w.say("the BMC of %s does not answer: %t", m.name, m.away)
	}
}

// hidesRename reports whether the status branch does not show yet what a claim is called now. Whoever
// loses just the record of its server then does not know it for the same, nor does a store that is lost
// once the history is rewritten.
func (w *walk) hidesRename() bool {
	shown, _ := strconv.Atoi(w.branch.Fleet.Applied.Commit)
	return slices.ContainsFunc(w.renames, func(r renamed) bool { return r.commit > shown })
}

// ask notes that a commit asks for something that takes a claim's server from its user.
func (w *walk) ask(claim model.ClaimName, what string) {
	for _, m := range w.machines {
		if m.disk == claim || w.observed.Servers[m.name] != nil && w.observed.Servers[m.name].Claim.Name == claim {
			m.asks[what]++
		}
	}
}

func (w *walk) commit(what string, change func(*model.Desired)) {
	w.say("%s", what)
	d := w.desired.Clone()
	w.commits++
	d.Revision = model.Revision(fmt.Sprint("main@sha1:", w.commits))
	change(d)
	w.tell(d)
	w.desired = d
}

// tell has a revision say what was removed and renamed, as far as the source knows.
func (w *walk) tell(d *model.Desired) {
	d.Removed, d.Renamed = make(map[model.Identity][]model.Removal), nil
	w.removals = slices.DeleteFunc(w.removals, func(r model.RemovedObject) bool { // what is back was not removed
		return d.Claims[r.Identity.ClaimName()] != nil || r.Identity.Kind == model.KindServerMaintenance && d.Maintenances[r.Identity.Name] != nil ||
			r.Identity.Kind == model.KindBMC && d.BMCs[model.BMCName(r.Identity.Name)] != nil ||
			r.Identity.Kind == model.KindServer && d.Servers[model.ServerName(r.Identity.Name)] != nil
	})
	for _, r := range w.removals {
		if at, _ := strconv.Atoi(r.Revision.Commit()); at > w.since && !d.IsQuarantined(r.Identity) {
			d.Removed[r.Identity] = []model.Removal{r.Removal}
		}
	}
	for _, r := range w.renames {
		if r.commit > w.since {
			names := map[model.ClaimName]model.ClaimName{r.from: r.to}
			d.Renamed = append(d.Renamed, model.Renaming{Revision: model.Revision(fmt.Sprint("main@sha1:", r.commit)), Names: names})
		}
	}
}

// forgets notes which releases that were taken back go on: while the status branch takes no pushes, an
// older copy of the store is all that is known.
func (w *walk) forgets() {
	for _, m := range w.machines {
		if rec := w.observed.Servers[m.name]; w.blocked && rec != nil && rec.Claim.Name == m.disk && rec.ReleaseDecided() && w.desired.Claims[m.disk] == nil {
			m.asks["end"]++
		}
	}
}

// begin has the source begin with the revision applied: what commits did since counts.
func (w *walk) begin() {
	w.since, _ = strconv.Atoi(w.observed.Fleet.Applied.Commit)
	d := w.desired.Clone()
	w.tell(d)
	w.desired = d
}

// copyStore is a copy of the records, without what is only observed.
func (w *walk) copyStore() *model.Observed {
	o := *w.observed
	o.Servers, o.Claims, o.BMCs = maps.Clone(o.Servers), maps.Clone(o.Claims), maps.Clone(o.BMCs)
	o.ServerFacts, o.BMCFacts = maps.Clone(o.ServerFacts), maps.Clone(o.BMCFacts)
	o.Progress, o.BootStates, o.Wipes = maps.Clone(o.Progress), maps.Clone(o.BootStates), maps.Clone(o.Wipes)
	return &o
}

// without is a store that lost everything, but that BMCs were read again.
func (w *walk) without() *model.Observed {
	o := model.NewObserved()
	o.BMCFacts = w.observed.BMCFacts
	return o
}

// restart begins a new process, which judges what store and status branch say.
func (w *walk) restart() {
	w.did["crash"]++
	head, branch := truth.Head{}, &model.Records{}
	if w.branch != nil {
		head.BranchHead, branch = model.BranchHead{Kind: model.HeadOurs, Mark: w.mark, Intact: true}, w.branch
	}
	o := w.copyStore()
	v := truth.Compare(truth.Store{Marks: o.Marks, Last: o.Sequence, Whole: !w.hole}, head, false)
	if v.Choose || v.Refuse {
		w.fail("a start comes to %+v", v)
	}
	w.did[string(v.Case)]++
	switch a := truth.Adopt(v, &o.Records, branch); {
	case a.Only:
		o.Records = *a.Records
		o.Servers, o.Claims, o.BMCs = maps.Clone(o.Servers), maps.Clone(o.Claims), maps.Clone(o.BMCs)
	case a.Records != nil:
		maps.Copy(o.Servers, a.Records.Servers)
		maps.Copy(o.Claims, a.Records.Claims)
		maps.Copy(o.BMCs, a.Records.BMCs)
	}
	w.hole, w.seq = false, max(w.seq, o.Sequence, head.Sequence)+1
	w.process++
	o.Sequence, o.Marks = w.seq, model.Marks{Deployment: "d", Line: "l", Base: head.Mark}
	w.observed, w.shown, w.readings, w.started = o, nil, make(map[model.ServerName]reading.State), w.now
	w.begin()
	w.forgets()
	w.publish()
}

// publish pushes what the store holds to the status branch, if that takes it.
func (w *walk) publish() {
	if w.blocked {
		return
	}
	now := w.copyStore().Records
	now.Servers, now.BMCs = decided(now.Servers), decided(now.BMCs)
	w.branch, w.shown = &now, intents(now.Servers, nil)
	w.seq++ // each push has a number of its own
	w.mark = model.Mark{Line: "l", Deployment: "d", Process: fmt.Sprint(w.process), Sequence: w.seq}
	o := w.copyStore()
	o.Sequence, o.Marks = w.seq, model.Marks{Deployment: "d", Line: "l", Base: w.mark}
	w.observed = o
}

// save writes to the store.
func (w *walk) save(c proposal.Changes) {
	w.seq++
	o := w.copyStore()
	o.Sequence = w.seq
	if c.Fleet != nil {
		o.Fleet = *c.Fleet
	}
	for _, rec := range c.Servers {
		o.Servers[rec.Name] = rec
	}
	for _, facts := range c.ServerFacts {
		o.ServerFacts[facts.Name] = facts
	}
	for _, rec := range c.Claims {
		o.Claims[rec.Name] = rec
	}
	for _, name := range c.DropClaims {
		delete(o.Claims, name)
	}
	for _, name := range c.DropServers {
		w.dropped(name)
		delete(o.Servers, name)
		delete(o.ServerFacts, name)
		delete(o.Progress, name)
		delete(o.BootStates, name)
		delete(o.Wipes, name)
		delete(o.Probes, name)
		delete(w.readings, name)
	}
	for _, name := range c.DropBMCFacts {
		delete(o.BMCFacts, name)
	}
	w.observed = o
}

// killed is chance having the process killed.
func (w *walk) killed() bool {
	if w.rnd.IntN(60) != 0 {
		return false
	}
	w.say("killed")
	w.restart()
	return true
}

// step plans once and carries out what comes of it, one server after the other.
func (w *walk) step() {
	w.now = w.now.Add(time.Duration(1+w.rnd.IntN(120)) * time.Second)
	in := &world.Input{
		Desired: w.desired, Observed: w.observed, Readings: maps.Clone(w.readings), BMCRead: w.bmcRead, Policy: w.policy(), Now: w.now,
		Process: world.Process{Shown: w.shown, Started: w.started, Serving: w.started}, Nonce: fmt.Sprint(w.seq, w.now.UnixNano()),
		Hold: func(p *proposal.Proposal) bool { return plantest.Hold(w.holds, p) },
	}
	r := plan.Plan(in)
	if s := unexplained(in, r); s != nil {
		w.fail("%s is not at its goal, and the plan gives no reason: %+v", s.Name, s.Record)
	}
	c := r.Decided
	for _, m := range r.Moves {
		if len(m.Do) == 0 {
			c.Servers = append(c.Servers, m.Then)
		}
	}
	if c.Fleet != nil || len(c.Servers)+len(c.Claims)+len(c.DropClaims)+len(c.DropServers) > 0 {
		if w.killed() {
			return
		}
		w.save(c)
		if w.killed() {
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Moves)) {
		if m := r.Moves[name]; len(m.Do) > 0 && w.carryOut(name, m) {
			return // killed
		}
	}
	if w.rnd.IntN(3) > 0 {
		w.publish()
	}
}

// carryOut does a server's move as the loop does, and reports whether the process was
// killed on the way.
func (w *walk) carryOut(name model.ServerName, move *plan.Move) (killed bool) {
	i := slices.IndexFunc(w.machines, func(m *walked) bool { return m.name == name })
	m := w.machines[i]
	var answers []proposal.Answer
	for a, ok := move.Next(nil); ok; a, ok = move.Next(answers) {
		answer := proposal.Answer{At: w.now}
		if _, arms := a.(proposal.Arm); m.away && !arms {
			answer.Failed = &proposal.Failure{Kind: proposal.FailureUndone, Text: "no answer"}
			answers = append(answers, answer)
			continue
		}
		switch a := a.(type) {
		case proposal.Inspect:
			answer.Facts = &model.ServerFacts{Power: m.power, Inventory: &model.Inventory{}}
		case proposal.Arm:
			answer.Ticket = a.Boot.Ticket
			answer.Ticket.Image = model.PinnedImage{Ref: a.Boot.Image}
		case proposal.BootOnce:
			m.booted = "network"
		case proposal.DiskOnce:
			m.booted = "disk"
		case proposal.ClearBoot:
			m.booted = ""
		case proposal.SetPower:
			if w.killed() {
				return true
			}
			w.save(move.BeforeAsking(answers))
			if w.killed() {
				return true
			}
			if m.rude && a.Reset == model.ResetGracefulOff {
				answer.Failed = &proposal.Failure{Kind: proposal.FailureUndone, Reason: model.ReasonUnsupported, Text: "no graceful shutdown"}
				break
			}
			w.reset(m, a.Reset, w.observed.Servers[name])
			if w.killed() {
				return true
			}
			if w.rnd.IntN(20) == 0 {
				w.say("the answer of %s to %s is lost", name, a.Reset)
				answer.Failed = &proposal.Failure{Text: "no answer"}
			}
		}
		answers = append(answers, answer)
	}
	s := move.Settle(answers, w.now)
	w.readings[name] = s.Reading
	if len(s.Servers)+len(s.ServerFacts) > 0 {
		w.save(s.Changes)
	}
	return false
}

// reset is what a machine does, and the book's judgement of it.
func (w *walk) reset(m *walked, reset model.ResetKind, rec *model.ServerRecord) {
	w.say("  %s of %s (%s for %s, %s, disk %q, asks %v)", reset, m.name, rec.Life.State, rec.Claim.Name, m.power, m.disk, m.asks)
	ran := m.disk != "" && m.power == model.PowerOn
	switch reset {
	case model.ResetGracefulOff, model.ResetForceOff:
		c := w.desired.Claims[m.disk]
		wantsOff := c != nil && c.Spec.Power == model.PowerOff // and was powered on by an operation
		for _, out := range w.desired.Maintenances {
			wantsOff = wantsOff || out.Spec.ServerRef.Name == string(m.name) && out.Spec.ServerPower != model.PowerOn
		}
		if s := w.desired.Servers[m.name]; s != nil { // the guard may have held it back until it was installed
			wantsOff = wantsOff || s.Annotations[model.AnnotationOperation] == model.OperationPark
		}
		if ran && m.asks["install"] == 0 && !wantsOff && !w.spend(m, "end", "shutdown") {
			w.fail("%s of claim %s was shut down, and no commit asked for that", m.name, m.disk)
		}
		if ran {
			w.did["shutdown"]++
		}
		m.power = model.PowerOff
	case model.ResetPowerCycle, model.ResetForceRestart, model.ResetGracefulRestart:
		if ran && !w.spend(m, "restart") {
			w.fail("%s of claim %s was restarted, and no commit asked for that", m.name, m.disk)
		}
		if ran {
			w.did["restart"]++
		}
		m.power = model.PowerOn
	case model.ResetOn:
		if m.power == model.PowerOff {
			m.power = model.PowerOn
			w.boot(m, rec)
		}
	}
}

// spend takes one of the asks that would explain what is done. An end explains all that
// follows on it until the machine has another owner.
func (w *walk) spend(m *walked, which ...string) bool {
	for _, what := range which {
		if m.asks[what] > 0 {
			if what != "end" {
				m.asks[what]--
			}
			return true
		}
	}
	return false
}

// boot is what comes of a power-on.
func (w *walk) boot(m *walked, rec *model.ServerRecord) {
	by := m.booted
	m.booted = ""
	t := rec.Boot.Ticket
	w.say("  %s boots from %s with ticket %+v", m.name, by, t)
	if by != "network" || !t.MayBoot(w.observed.Progress[m.name]) {
		if m.disk != "" {
			w.did["heal"]++
		}
		return
	}
	o := w.copyStore()
	o.Progress[m.name] = &model.Progress{Ticket: t.ID, ScriptAt: w.now, IgnitionAt: w.now}
	switch t.Purpose {
	case model.PurposeDiscovery:
		w.did["discover"]++
		o.Probes = maps.Clone(o.Probes)
		o.Probes[m.name] = &model.ProbeReport{Ticket: t.ID, ReceivedAt: w.now, Data: model.ProbeData{
			NetworkInterfaces: fleettest.Probed([]string{fleettest.CardOf(slices.Index(w.machines, m))}),
		}}
	case model.PurposeCleanup:
		w.did["wipe"]++
		if m.disk != "" && m.asks["end"] == 0 {
			w.fail("the disk of %s with claim %s was wiped, and no commit asked for that", m.name, m.disk)
		}
		if m.disk != "" && m.kept {
			w.fail("the disk of %s with claim %s was wiped, and was to be kept", m.name, m.disk)
		}
		m.disk, m.kept = "", false
		o.Wipes[m.name] = &model.WipeReport{Ticket: t.ID, ReceivedAt: w.now}
	case model.PurposeClaim:
		w.did["install"]++
		if m.disk != "" && !(m.disk == t.Claim && w.spend(m, "install")) {
			w.fail("%s with claim %s was installed for %s, and no commit asked for that", m.name, m.disk, t.Claim)
		}
		for _, other := range w.machines {
			if other != m && other.disk == t.Claim && other.asks["end"] == 0 {
				w.fail("claim %s is on %s and %s", t.Claim, other.name, m.name)
			}
		}
		m.disk, m.kept = t.Claim, false
		clear(m.asks)
		if w.rnd.IntN(4) > 0 { // else it never says so
			o.BootStates[m.name] = &model.BootState{Ticket: t.ID, ReceivedAt: w.now}
		}
	}
	w.observed = o
}
