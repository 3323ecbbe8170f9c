package truth

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ingot/model"
)

// The walks take stores, processes and one status branch through random histories, and check that
//
//	(a)  a decision that was on the branch and was acted on is never forgotten,
//	(a') a decision that was acted on before it was on the branch is lost only with Recover,
//	(b)  two processes do not act at the same time,
//	(c)  ordinary operation needs no person, and ends no process,
//	(d)  one process acts, or a person is asked, once the faults end,
//	(e)  no document of the branch vanishes,
//	(f)  a deleted document returns only by a fill.
//
// Known limits are counted, see the calls of limit.

const (
	interval = 4       // steps between two polls
	tick     = 1000000 // sequences that the clock has in one step
)

// doc is one version of a document. A deleted document stays in the maps of the test as gone, so
// that versions can be compared. To the processes it does not exist.
type doc struct {
	id, at     int
	seq        uint64
	wait, gone bool // wait: nothing acts on it before it is on the branch
}

type docs map[string]doc

type commit struct {
	model.BranchHead
	id, onto   int  // onto: the top of the branch when it was pushed
	docs, full docs // full: before people edited it
}

func (c commit) String() string {
	return fmt.Sprintf("head(%s %d by %s continues %d intact %v clean %v)", c.Deployment, c.Sequence, c.Process, c.Continues, c.Intact, c.Clean)
}

// disk is a store. Of Redis it is the copy in the memory of a process.
type disk struct {
	model.Marks
	docs   docs
	last   uint64
	copied uint64 // last when it was copied, 0 = it is not an older copy
	hole   bool
	opened int // time of the last opening commit
	fence  uint64
	leader string
}

func newDisk() *disk { return &disk{docs: docs{}} }

func (d *disk) clone() *disk {
	c := *d
	c.docs, c.Pushing = maps.Clone(d.docs), slices.Clone(d.Pushing)
	return &c
}

// older is a copy that may be used when there is a newer state.
func (d *disk) older() *disk {
	c := d.clone()
	c.copied = max(c.last, 1)
	return c
}

func (d disk) String() string {
	return fmt.Sprintf("store(%s base %d pushing %d continues %d last %d fence %d hole %v ended %v)",
		d.Deployment, d.Base.Sequence, len(d.Pushing), d.Continues, d.last, d.fence, d.hole, d.Ended)
}

// site is a machine with a store. Clones of a machine have another host.
type site struct {
	name, host, machine, boot string
	disk                      *disk
	proc                      *proc
	flag, shown               string // --take-over, and the process that the last refusal named
	asks                      bool   // its last start was refused, or waits for a person
}

func newSite(name string) *site {
	s := &site{name: name, disk: newDisk()}
	s.moveTo("machine of " + name)
	return s
}

func (s *site) moveTo(machine string) { s.host, s.machine, s.boot = machine, machine, machine+" boot" }

type proc struct {
	id                        string
	s                         *site
	tip, polled               int // the top of the branch as the process knows it, since when
	opened, paused            bool
	observes                  bool // until its next commit is on the branch for two polls
	actsAt                    int
	openAt, firstAct, lastAct int
	blind                     bool // store and branch were older than another process
	stale                     bool // a person chose other decisions since
}

// walk is a kind of random history.
type walk struct {
	name, kinds string // kinds of steps, in addition to those of all walks
	ordinary    bool   // check (c)
	single      bool   // check (a')
	shared      bool
}

type world struct {
	walk
	t              *testing.T
	seed           uint64
	steps          int
	r              *rand.Rand
	now, ids       int
	log            []func() string
	cases          map[Case]int
	count          map[string]int
	branch, late   []commit
	sites          []*site
	backup         *disk
	redis          *disk   // the store that all sites share, nil = each has its own
	replicas       []*disk // earlier states of it
	parent         map[int]int
	acted, early   map[string]int // on versions that were on the branch, and that were perhaps not
	wasReset       bool           // since the last push
	olderThanStore bool           // store and branch were both older than another store, see limit (b)
	mayFork        bool           // a late push arrived, or a failover let two processes lead
}

// fail ends the walk with a violation of a law, and the log of its history.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log {
		w.t.Log(line())
	}
	w.t.Fatalf("seed %d, %d steps: "+format, append([]any{w.seed, w.steps}, args...)...)
}

func (w *world) note(format string, args ...any) {
	now := w.now
	w.log = append(w.log, func() string { return fmt.Sprintf("%d "+format, append([]any{now}, args...)...) })
}

// limit counts a loss that no function of a store and a branch can avoid. The design has the letters.
func (w *world) limit(name string) { w.count["limit "+name]++ }

func (w *world) next() int { w.ids++; return w.ids }

func (w *world) name(prefix string) string { return prefix + strconv.Itoa(w.next()) }

// has reports whether d has a version of a document, or one that descends from it.
func (w *world) has(d docs, name string, version int) bool {
	id := d[name].id
	for id > version {
		id = w.parent[id]
	}
	return id == version
}

func (w *world) top() int {
	if len(w.branch) == 0 {
		return 0
	}
	return w.branch[len(w.branch)-1].id
}

func (w *world) head() commit {
	for _, c := range slices.Backward(w.branch) {
		if c.Kind == model.HeadOurs {
			return c
		}
	}
	if len(w.branch) > 0 {
		return commit{BranchHead: model.BranchHead{Kind: model.HeadForeign}}
	}
	return commit{}
}

// mayLive reports whether the writer of a commit may be running.
func (w *world) mayLive(o model.Holder, s *site, sameDeployment bool) bool {
	if o.Machine == s.machine && o.Boot == s.boot {
		return slices.ContainsFunc(w.sites, func(x *site) bool { return x.host == s.host && x.proc != nil && x.proc.id == o.ID })
	}
	return o.ID != "" && (o.Machine != s.machine || sameDeployment)
}

func (w *world) procs() (l []*proc) {
	for _, s := range w.sites {
		if s.proc != nil {
			l = append(l, s.proc)
		}
	}
	return l
}

// known reports whether a process has the version, and did not start from older copies.
func (w *world) known(name string, version int) bool {
	return slices.ContainsFunc(w.procs(), func(p *proc) bool { return !p.blind && w.has(p.s.disk.docs, name, version) })
}

func (w *world) stored(name string, version int) bool {
	return w.has(w.head().full, name, version) ||
		slices.ContainsFunc(w.sites, func(s *site) bool { return w.has(s.disk.docs, name, version) })
}

// kill ends a process. If the others all started from older copies, their decisions count.
func (w *world) kill(p *proc, why string) {
	w.note("%s is gone: %s", p.id, why)
	if p.s.proc = nil; w.redis != nil {
		p.s.disk = newDisk()
	}
	for _, b := range w.procs() {
		known := !b.blind
		for k, id := range w.acted {
			known = known || !w.has(b.s.disk.docs, k, id) && w.known(k, id)
		}
		if !known {
			b.blind = false
			w.forget(b.s.disk.docs)
		}
	}
}

// forget drops the acted versions that d lacks.
func (w *world) forget(d docs) {
	maps.DeleteFunc(w.acted, func(k string, id int) bool { return !w.has(d, k, id) })
}

// write makes the changes of p.s.disk one commit, with a sequence above the given one. It reports
// false if another process leads. The last digits of sequences are random, because two stores must
// not draw the same one. The clocks of sites that are added later are slow.
func (w *world) write(p *proc, above uint64) bool {
	if !w.leads(p) {
		return false
	}
	clock := (100 + w.now) * tick
	if len(p.s.name) > 1 {
		clock -= 30 * tick
	}
	d := p.s.disk
	if d.last = max(d.last, above, uint64(clock)) + 1 + uint64(w.r.IntN(tick/10)); w.redis != nil {
		w.replicate(d)
	}
	return true
}

// leads reports whether a process may use its store. If Redis is an older replica, the leader
// writes its memory back.
func (w *world) leads(p *proc) bool {
	d, r := p.s.disk, w.redis
	if r == nil {
		return true
	}
	if r.fence > d.fence || r.fence == d.fence && r.leader != d.leader {
		w.kill(p, "another process leads")
		return false
	}
	if r.fence < d.fence || r.last < d.last {
		w.note("%s writes its memory back", p.id)
		w.replicate(d)
	}
	w.mayFork = w.mayFork || slices.ContainsFunc(w.procs(), func(o *proc) bool { return o.s.disk.fence > d.fence })
	return true
}

func (w *world) replicate(d *disk) {
	w.redis = d.clone()
	w.replicas = append(w.replicas, w.redis)
}

// acquire takes the lease of Redis, or follows its leader. A standby that followed a newer state
// than Redis has keeps that.
func (w *world) acquire(s *site, id string) bool {
	if w.redis == nil {
		return true
	}
	if slices.ContainsFunc(w.procs(), func(p *proc) bool { return !p.paused }) {
		s.disk = w.redis.older()
		return false
	}
	if s.disk.last <= w.redis.last {
		s.disk = w.redis.clone()
	}
	s.disk.fence, s.disk.leader = max(s.disk.fence, w.redis.fence, w.head().Fence)+1, id
	w.replicate(s.disk)
	return true
}

// start starts the Ingot of a site. If a person has to choose, that is the choice.
func (w *world) start(s *site, choice From) {
	id := w.name(s.name + "#")
	if s.proc != nil || !w.acquire(s, id) {
		return
	}
	c, d := w.head(), s.disk
	same := c.Kind == model.HeadOurs && c.Deployment == d.Deployment
	h := Head{BranchHead: c.BranchHead, MayLive: !(same && w.redis != nil) && w.mayLive(c.Writer, s, same)}
	v := Compare(Store{Marks: d.Marks, Last: d.last, Whole: !d.hole && !d.Ended}, h, s.flag != "" && s.flag == h.Process)
	w.cases[v.Case]++
	w.note("%s starts: %+v, %v, %v, may live %v, --take-over=%s", id, v, *d, c, h.MayLive, s.flag)
	s.asks, s.shown = v.Choose || v.Refuse, h.Process
	// A replica may lack the note of a late push, or be empty, which is a lost store.
	if s.asks && w.ordinary && !(w.redis != nil && (w.mayFork || !same)) {
		w.fail("(c) %s in ordinary operation", v.Case)
	}
	chosen := v.Choose && choice != Nothing && (choice != FromHead || h.Kind == model.HeadOurs)
	if s.asks && !chosen {
		return
	}
	if chosen {
		w.note("a person chooses the %s", choice)
		v.From, v.Recover, s.asks = choice, true, false
	}
	p := &proc{id: id, s: s, tip: w.top(), polled: w.now}
	now := docs{}
	switch v.From {
	case Nothing:
	case FromHead:
		maps.Copy(now, c.docs)
	case FromStore:
		maps.Copy(now, d.docs)
	}
	for k, x := range c.docs {
		if _, had := now[k]; v.Fill && (!had || !x.gone && now[k].gone) {
			now[k] = x
		}
	}
	if chosen {
		w.accept(now)
	} else {
		w.findOlder(p, c)
		w.check(p, v, c, now)
	}
	if !p.blind {
		w.forget(now)
	}
	clear(w.early)

	s.proc = p
	p.observes = h.MayLive || w.redis == nil && (v.Case == BranchLost || v.Case == BranchReset)
	d.Continues = Continues(d.Marks, c.BranchHead)
	if v.From == FromHead || v.Case == HalfPushed || v.Case == StoreDamaged {
		d.Base, d.Pushing = h.Mark, nil // the documents are not those of earlier pushes, which may be late
	}
	d.Deployment = cmp.Or(d.Deployment, w.name(s.name+"d"))
	d.Line = cmp.Or(d.Base.Line, h.Line, d.Line, w.name("line"))
	d.docs, d.hole, d.Ended, d.copied = now, false, false, 0
	w.write(p, h.Sequence)
	switch w.r.IntN(10) {
	case 0:
		w.kill(p, "killed after it adopted")
	case 1, 2:
	default:
		w.push(p, w.outcome(), false)
	}
}

// accept has all processes and commits agree with the documents that a person chose.
func (w *world) accept(chosen docs) {
	for _, c := range slices.Concat(w.branch, w.late) {
		maps.DeleteFunc(c.full, func(k string, _ doc) bool { _, ok := chosen[k]; return !ok })
	}
	for _, o := range w.procs() {
		o.stale = true
	}
}

// check compares the documents of a start with those of head and store, and with earlier acts.
func (w *world) check(p *proc, v Verdict, c commit, now docs) {
	d := p.s.disk
	for k, x := range c.full {
		if _, ok := now[k]; !ok && !x.gone && !w.olderThanStore {
			w.fail("(e) %s vanished", k)
		}
	}
	for k, x := range d.docs {
		switch {
		case v.From != FromStore || !x.gone || now[k].gone:
		case v.Fill && d.hole:
			w.limit("of a fill: a deleted document is back") // it is not known whether it is lost or deleted
		default:
			w.fail("(f) %s was deleted, and is back", k)
		}
	}
	for k, id := range w.acted {
		switch {
		case w.has(now, k, id):
		case !w.olderThanStore && (w.has(c.full, k, id) || w.has(d.docs, k, id)):
			w.fail("(a) %s forgets version %d of %s, has %d (head %d, store %d)", p.id, id, k, now[k].id, c.full[k].id, d.docs[k].id)
		default: // neither the store nor the branch has it
			p.blind = p.blind || !w.olderThanStore && w.known(k, id)
			w.limit("(b)")
		}
	}
	for k, id := range w.early {
		_, onHead := c.full[k]
		switch {
		case !w.single || w.has(now, k, id) || v.Case == NewFleet || v.Recover && (!v.Fill || now[k] != d.docs[k]):
		case v.Fill && !onHead:
			w.limit("of a fill: the branch never had the document") // so there is no name to recover
		case w.wasReset:
			w.limit("(b)") // the branch was reset to a state before the copy of the store
		case d.copied > 0 && d.copied >= c.Sequence && (v.From == FromStore || !onHead):
			w.limit("(a)") // nothing was pushed since the copy was made, so nothing shows that it is older
		default:
			w.fail("(a') early version %d of %s is lost without Recover, has %d", id, k, now[k].id)
		}
	}
}

// findOlder finds limit (b): the store of p and the branch are both older than another store.
func (w *world) findOlder(p *proc, c commit) {
	for _, o := range w.sites {
		b := o.disk.Base
		if o == p.s || o.disk.hole || o.disk.Ended || b.Line != c.Line && c.Kind != model.HeadAbsent ||
			b.Sequence <= max(c.Sequence, p.s.disk.Base.Sequence) {
			continue
		}
		w.note("%s: store and branch are older than %s", p.id, o.name)
		w.olderThanStore = true
		p.blind = p.blind || o.proc != nil && !o.proc.blind && o.proc.opened
	}
}

func (w *world) outcome() string {
	return []string{"done", "killed before", "killed after", "no answer", "lost", "late", "killed, late"}[max(0, w.r.IntN(21)-14)]
}

func (w *world) push(p *proc, outcome string, clean bool) {
	d := p.s.disk
	if !p.opened && d.opened > 0 && w.now-d.opened <= interval {
		return // one opening commit in an interval
	}
	if p.tip != w.top() {
		w.note("%s: push finds another head", p.id)
		w.poll(p)
		return
	}
	w.findOlder(p, w.head())
	docs, redis := maps.Clone(d.docs), w.redis
	w.redis = nil // the note and its number are one commit, so they are replicated together
	written := w.write(p, 0)
	if w.redis = redis; !written {
		return
	}
	m := model.Mark{Line: d.Line, Deployment: d.Deployment, Process: p.id, Sequence: d.last, Push: fmt.Sprint(w.next())}
	if d.Pushing = append(d.Pushing, m); !p.opened {
		d.opened = w.now
	}
	if w.redis != nil {
		w.replicate(d)
	}
	c := commit{id: w.next(), onto: p.tip, docs: docs, full: maps.Clone(docs)}
	c.BranchHead = model.BranchHead{Kind: model.HeadOurs, Mark: m, Continues: d.Continues, Intact: true, Clean: clean, Fence: d.fence}
	c.Writer = model.Holder{ID: p.id, Machine: p.s.machine, Boot: p.s.boot}
	w.note("%s pushes %d, %s, clean %v", p.id, m.Sequence, outcome, clean)
	switch outcome {
	case "done", "killed after", "no answer":
		w.branch = append(w.branch, c)
	case "late", "killed, late":
		w.late = append(w.late, c)
	}
	if strings.HasPrefix(outcome, "killed") {
		w.kill(p, outcome)
	} else if outcome == "done" {
		w.wasReset, p.tip = false, c.id
		w.based(p, m)
	}
}

// based notes a push as base.
func (w *world) based(p *proc, m model.Mark) {
	d := p.s.disk
	d.Base, d.Pushing = m, nil
	if !w.write(p, 0) {
		return
	}
	p.opened, p.openAt = true, cmp.Or(p.openAt, w.now)
	if p.observes {
		p.observes, p.actsAt = false, w.now+2*interval
	}
}

func (w *world) poll(p *proc) {
	if !w.leads(p) {
		return
	}
	c, d := w.head(), p.s.disk
	p.polled, p.tip = w.now, w.top()
	next := Watch(d.Marks, p.id, p.opened, c.BranchHead)
	if next != GoOn {
		w.note("%s polls: %s, %v, %v", p.id, next, *d, c)
	}
	if next == Again && c.Kind != model.HeadOurs && d.Base == (model.Mark{}) {
		next = GoOn // the case would be the same: NewFleet or NeverPushed
	}
	switch next {
	case GoOn:
	case Note:
		w.based(p, c.Mark)
	case Again:
		w.kill(p, "starts again")
		w.start(p.s, w.choice())
	case Overwrite:
		p.observes = true
		w.findOlder(p, c)
		d.Continues = Continues(d.Marks, c.BranchHead)
		if w.write(p, c.Sequence) {
			w.push(p, w.outcome(), false)
		}
	case End:
		w.end(p, c)
	}
}

// end ends a process because of another's head.
func (w *world) end(p *proc, c commit) {
	d := p.s.disk
	if w.ordinary && w.redis == nil {
		w.fail("(c) a process ended in ordinary operation")
	}
	w.count["ended"]++
	sameLine := c.Line == d.Base.Line // with another line the next start is AnotherFleet
	for k, id := range w.acted {
		if sameLine && !p.blind && !p.stale && !w.olderThanStore && w.has(d.docs, k, id) && !w.has(c.full, k, id) {
			w.fail("(a) %s ends because of a head that lacks version %d of %s", p.id, id, k)
		}
	}
	if sameLine && (w.redis == nil || c.Deployment != d.Deployment) { // a deployment on Redis goes on
		d.Deployment, d.Ended = w.name(p.s.name+"d"), true
		d.Base, d.Pushing, d.Continues = c.Mark, nil, max(d.Continues, c.Sequence)
		w.write(p, c.Sequence)
	}
	w.kill(p, "ended")
}

func (w *world) save(p *proc) {
	if p.observes || w.now < p.actsAt || !w.leads(p) {
		return
	}
	d := p.s.disk
	k := "s" + strconv.Itoa(w.r.IntN(3))
	old, had := d.docs[k]
	x := doc{id: w.next(), seq: d.last + 1, at: w.now, gone: had && !old.gone && w.r.IntN(3) == 0}
	x.wait = w.r.IntN(2) == 0 || old.wait && old.seq > d.Base.Sequence
	d.docs[k], w.parent[x.id] = x, old.id
	w.write(p, 0)
	w.note("%s saves %s %+v", p.id, k, x)
}

// act makes a request to a machine.
func (w *world) act(p *proc) {
	if p.opened && !p.observes && (w.now-p.polled > interval || p.polled < p.actsAt) {
		w.poll(p)
	}
	if p.s.proc != p || !p.opened || p.observes || w.now < p.actsAt || !w.leads(p) {
		return
	}
	d := p.s.disk
	k := w.pick(d.docs)
	x := d.docs[k]
	shown := x.seq <= d.Base.Sequence
	if k == "" || x.wait && !shown {
		return
	}
	for _, o := range w.procs() {
		since := max(o.firstAct, p.firstAct)
		if o.id == p.id {
			since = max(since, x.at) // limit (d): a clone acts on the same decisions until one of both pushes
		}
		switch {
		case o == p || o.firstAct == 0 || o.paused:
		case !p.blind && !o.blind && o.opened && p.openAt < o.openAt && w.now-o.openAt > interval:
			w.fail("(b) %s acts though %s opened at %d and acts", p.id, o.id, o.openAt)
		case p.firstAct > 0 && o.s.disk.docs[k].id != x.id && w.now-since > 2*interval && w.now-o.lastAct <= interval:
			w.fail("(b) %s and %s both act", p.id, o.id)
		}
	}
	w.note("%s acts on %s %+v, shown %v", p.id, k, x, shown)
	p.firstAct, p.lastAct = cmp.Or(p.firstAct, w.now), w.now
	if p.blind || p.stale {
		return
	}
	if id := w.acted[k]; !w.has(d.docs, k, id) && !w.olderThanStore {
		if w.stored(k, id) {
			w.fail("(a) %s acts on version %d of %s against %d", p.id, x.id, k, id)
		}
		w.limit("(b)") // no store and no branch has it
	}
	if shown {
		w.acted[k] = x.id
	} else {
		w.early[k] = x.id
	}
}

// pick returns the name of a document, "" if there is none.
func (w *world) pick(d docs) string {
	if len(d) == 0 {
		return ""
	}
	return slices.Sorted(maps.Keys(d))[w.r.IntN(len(d))]
}

func (w *world) choice() From { return []From{Nothing, FromHead, FromStore}[w.r.IntN(3)] }

// arrive has the oldest late push arrive. It fails if the branch has changed.
func (w *world) arrive() {
	if len(w.late) == 0 {
		return
	}
	c := w.late[0]
	w.late = w.late[1:]
	if c.onto == w.top() {
		w.note("late push of %d arrives", c.Sequence)
		w.branch, w.mayFork = append(w.branch, c), true
	}
}

// rewrite replaces the last commit by a squashed or signed one with the same mark, or has a person
// drop a document of it.
func (w *world) rewrite(edit bool) {
	n := len(w.branch)
	if n == 0 || w.branch[n-1].Kind != model.HeadOurs {
		return
	}
	c, kept := w.branch[n-1], n-1
	c.id = w.next()
	switch {
	case !edit:
		kept *= w.r.IntN(2)
	case len(c.docs) == 0:
		return
	default:
		c.Intact, c.docs = false, maps.Clone(c.docs)
		delete(c.docs, w.pick(c.docs))
		kept += w.r.IntN(2)
	}
	w.note("%d is rewritten, edited: %v", c.Sequence, edit)
	w.branch = append(slices.Clone(w.branch[:kept]), c)
}

// reset drops commits. It takes longer than a push, so that no push is late after it.
func (w *world) reset() {
	if n := len(w.branch) - 1 - w.r.IntN(4); n >= 0 {
		w.branch, w.late, w.wasReset = slices.Clone(w.branch[:n]), nil, true
		w.note("reset to %d", w.head().Sequence)
	}
}

// addSite adds an empty store on a machine of its own, a copy of a store, or a clone of a machine.
func (w *world) addSite(s *site, isCopy bool) {
	o := newSite(w.name("z"))
	how := w.r.IntN(4)
	w.note("new site, copy of %s %v, kind %d", s.name, isCopy, how)
	if isCopy {
		o.name, o.disk, o.flag = s.name+"c", s.disk.clone(), s.flag
	}
	if isCopy && how != 1 {
		o.host, o.machine, o.boot = s.host, s.machine, s.boot
	}
	switch {
	case isCopy && how == 2:
		o.boot, o.host = w.name("boot"), w.name("host")
	case isCopy && how == 3 && s.proc != nil:
		clone := *s.proc
		clone.s, clone.firstAct, clone.lastAct = o, 0, 0
		o.host, o.proc = w.name("host"), &clone
	}
	w.sites = append(w.sites, o)
}

// failover makes an earlier state of Redis the current one.
func (w *world) failover() {
	n := len(w.replicas)
	n -= 1 + w.r.IntN(min(n, 8))
	w.replicas = slices.Clone(w.replicas[:n+1])
	w.redis = w.replicas[n].older()
	w.note("Redis is an older replica, %v", *w.redis)
}

func (w *world) step(kind string) {
	w.now++
	for _, p := range w.procs() {
		if p.s.proc == p && !p.paused && w.now-p.polled >= interval {
			w.poll(p)
		}
	}
	s := w.sites[w.r.IntN(len(w.sites))]
	p := s.proc
	ends := slices.Contains([]string{"kill", "power", "move", "restore", "lose", "hole"}, kind) || kind == "failover" && w.r.IntN(2) == 0
	switch {
	case p != nil && ends:
		w.kill(p, kind)
	case p != nil && !p.paused:
		w.use(p, kind)
	}
	switch kind {
	case "run":
		w.start(s, w.choice())
	case "power":
		s.boot = w.name("boot")
	case "move":
		s.moveTo(w.name("machine"))
	case "pause":
		if p != nil {
			p.paused = !p.paused
			w.note("%s paused: %v", p.id, p.paused)
		}
	case "late":
		w.arrive()
	case "squash", "edit":
		w.rewrite(kind == "edit")
	case "foreign":
		if len(w.branch) > 0 {
			w.branch = append(w.branch, commit{id: w.next(), BranchHead: model.BranchHead{Kind: model.HeadForeign}})
		}
	case "reset":
		w.reset()
	case "time":
		w.now += w.r.IntN(3 * interval)
	case "backup":
		w.backup = s.disk.older()
	case "restore":
		if w.backup != nil {
			s.disk = w.backup.clone()
			w.note("%s is an older copy, %v", s.name, *s.disk)
		}
	case "lose":
		s.disk = newDisk()
	case "hole":
		if k := w.pick(s.disk.docs); k != "" && !s.disk.docs[k].gone {
			s.disk.hole = true
			delete(s.disk.docs, k)
			w.note("%s loses document %s", s.name, k)
		}
	case "flag":
		s.flag = s.shown
	case "copy", "second":
		if len(w.sites) < 3 {
			w.addSite(s, kind == "copy")
		}
	case "failover":
		w.failover()
	}
}

// use has a process do one thing.
func (w *world) use(p *proc, kind string) {
	switch kind {
	case "save":
		w.save(p)
	case "push":
		w.push(p, w.outcome(), false)
	case "act":
		w.act(p)
	case "poll":
		w.poll(p)
	case "stop":
		if w.push(p, w.outcome(), p.opened); p.s.proc == p {
			w.kill(p, "stopped")
		}
	}
}

// calm ends all faults and checks (d).
func (w *world) calm() {
	w.note("calm")
	w.late = nil
	for _, p := range w.procs() {
		p.paused = false
	}
	ended := 0
	for round := range 60 {
		if round == 30 {
			ended = w.count["ended"]
		}
		for _, s := range w.sites {
			w.now++
			w.start(s, Nothing)
			for _, kind := range []string{"poll", "open", "save", "push", "act"} {
				switch p := s.proc; {
				case p == nil:
				case kind == "push" || kind == "open" && !p.opened:
					w.push(p, "done", false)
				default:
					w.use(p, kind)
				}
			}
		}
	}
	if w.count["ended"] > ended+2 {
		w.fail("(d) processes end each other forever")
	}
	acting := len(slices.DeleteFunc(w.procs(), func(p *proc) bool { return !p.opened }))
	asking := slices.ContainsFunc(w.sites, func(s *site) bool { return s.asks })
	if acting > 1 || acting == 0 && !asking {
		w.fail("(d) %d processes act, a person is asked: %v", acting, asking)
	}
}

func TestWalks(t *testing.T) {
	for _, k := range []walk{
		{"ordinary", "move", true, true, false},
		{"faults", "move reset edit backup restore lose hole flag flag", false, true, false},
		{"copies", "copy copy second flag flag reset pause pause lose edit move", false, false, false},
		{"deployments", "copy second flag flag pause pause", false, false, false},
		{"shared store", "failover failover pause pause pause flag", true, true, true},
	} {
		t.Run(k.name, k.run)
	}
}

// run takes HISTORIES histories of each length, or a few.
func (k walk) run(t *testing.T) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("HISTORIES"), "30"))
	if err != nil {
		t.Fatalf("HISTORIES: %v", err)
	}
	kinds := strings.Fields("run run run save save save push push push act act act act act poll kill stop power late squash foreign time " + k.kinds)
	cases, count := map[Case]int{}, map[string]int{}
	for _, steps := range []int{6, 10, 15, 25, 40, 60} {
		for seed := range uint64(n) {
			w := &world{walk: k, t: t, seed: seed, steps: steps, r: rand.New(rand.NewPCG(seed, uint64(steps))), now: 1, cases: cases, count: count,
				parent: map[int]int{}, acted: map[string]int{}, early: map[string]int{}, sites: []*site{newSite("a")}}
			if k.shared {
				w.sites = append(w.sites, newSite("b"))
				w.replicate(newDisk())
			}
			w.start(w.sites[0], Nothing)
			for range steps {
				w.step(kinds[w.r.IntN(len(kinds))])
			}
			w.calm()
		}
	}
	t.Log(cases, count)
}
