package reconcile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/preview"
)

// variedSeeds are seeds of TestWhatAPreviewDoesNotAnnounceIsNotDone that have effects of each kind among them.
var variedSeeds = []uint64{3, 4, 7, 8, 16, 19, 24, 28, 29, 32, 35}

// TestWhatAPreviewDoesNotAnnounceIsNotDone makes random commits to random fleets, foretells
// from the status branch what each does, lets the loop run with it, and compares: a machine
// that was disturbed and not announced is what `ingot plan` must never miss, and one that was
// announced and left alone is a lie, too.
func TestWhatAPreviewDoesNotAnnounceIsNotDone(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[preview.Kind]int)
	n := fleettest.Histories(uint64(len(variedSeeds)), 200)
	for seed := range n {
		if n == uint64(len(variedSeeds)) {
			seed = variedSeeds[seed]
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &foretold{w: newLoopWorld(t, 7), rnd: rand.New(rand.NewPCG(seed, 77)), t: t, seen: make(map[preview.Kind]int)}
				if seed%4 == 3 { // BMCs that nobody wrote a manifest for
					f.w = newNetwork(t, 7)
					for i := range f.w.machines {
						n, _ := strconv.Atoi(path.Base(i))
						f.w.plugIn(n, "calvin")
					}
				}
				f.run()
				mu.Lock()
				defer mu.Unlock()
				for kind, n := range f.seen {
					seen[kind] += n
				}
			})
		})
	}
	t.Cleanup(func() { checkKinds(t, seen) }) // after all histories
}

// checkKinds checks that histories had effects of each kind.
func checkKinds(t *testing.T, seen map[preview.Kind]int) {
	t.Helper()
	for _, kind := range []preview.Kind{
		proposal.StepBind, proposal.StepRelease, proposal.StepRetain, proposal.StepWipe, proposal.StepReprovision, preview.Pending, proposal.StepMaintenance, proposal.StepReturn,
		proposal.StepPowerOff, proposal.StepPowerOn, proposal.StepOperation, proposal.StepRename, preview.Wait, preview.BMCRemoved, preview.Cleanup,
	} {
		if seen[kind] == 0 {
			t.Errorf("no commit came to %q: the test proves nothing of it", kind)
		}
	}
	t.Logf("%v", seen)
}

// foretold is one fleet, and the commits that are made to it.
type foretold struct {
	w    *loopWorld
	rnd  *rand.Rand
	t    *testing.T
	seen map[preview.Kind]int
	made []string // what the newest commit did
	base *model.Desired
	n    int // makes names and values new
}

func (f *foretold) run() {
	w := f.w
	w.start()
	w.expect(2*time.Minute, len(w.machines)-1, "Available Off")
	w.commit(func(d *model.Desired) {
		for i := range 3 + f.rnd.IntN(3) {
			f.addClaim(d, fmt.Sprint("c", i))
		}
	})
	pass(20 * time.Minute)
	for range 3 {
		f.commit()
		pass(3 * time.Hour) // what the guard let pass is out of its window by then
	}
	w.stop()
}

// commit makes a random commit, and compares what comes of it with what was foretold.
func (f *foretold) commit() {
	f.t.Helper()
	files, base := f.w.files(), f.w.Desired()
	f.base = base
	before := f.machines()
	f.made = nil
	f.w.commit(func(d *model.Desired) {
		for range 1 + f.rnd.IntN(4) {
			f.edit(d)
		}
	})
	p := f.foretell(files, base, f.w.Desired())
	pass(30 * time.Minute)
	f.compare(p, before)
}

func (f *foretold) machines() map[model.ServerName]machine {
	all := make(map[model.ServerName]machine)
	for i := range len(f.w.machines) {
		m := f.w.seen(i)
		all[m.name] = m
	}
	return all
}

func (f *foretold) foretell(files map[string][]byte, base, head *model.Desired) *preview.Preview {
	f.t.Helper()
	fleet, err := preview.ReadFleet(files)
	if err != nil || len(fleet.Problems) > 0 {
		f.t.Fatal(err, fleet.Problems)
	}
	policy, notes := fleet.Policy()
	if len(notes) > 0 {
		f.t.Error("the status branch does not show the policy: ", notes)
	}
	p := preview.Of(preview.Input{Fleet: fleet, Base: base, Head: head, Policy: policy, Now: time.Now(), Notes: notes})
	for _, e := range p.Effects {
		f.seen[e.Kind]++
	}
	return p
}

// compare looks for what was done and not announced, and the other way round.
func (f *foretold) compare(p *preview.Preview, before map[model.ServerName]machine) {
	f.t.Helper()
	waits := make(map[model.ServerName]bool)
	announced, held, bound := make(map[model.ServerName]bool), make(map[model.ServerName]bool), make(map[model.ClaimName]model.ServerName)
	for _, e := range p.Effects {
		switch {
		case e.Destructive && e.Held:
			held[e.Server] = true
		case e.Waits != "":
			waits[e.Server], announced[e.Server] = true, true
		case e.Destructive:
			announced[e.Server] = true
		case e.Kind == proposal.StepBind || e.Kind == proposal.StepKeep:
			bound[e.Claim] = e.Server
		}
	}
	for name, m := range f.machines() {
		was := before[name]
		disturbed := m.disturbed > was.disturbed || was.disk != "" && m.disk != was.disk
		runs := was.power == model.PowerOn && was.disk != ""
		switch {
		case disturbed && held[name] && !announced[name]:
			f.wrong(p, "%s was disturbed though the guard was to hold that back", name)
		case disturbed && !announced[name]:
			f.wrong(p, "%s was disturbed, and nothing was announced", name)
		case !disturbed && announced[name] && runs && !waits[name]:
			f.wrong(p, "%s was left alone, though something destructive was announced", name)
		}
	}
	o := f.w.Observed()
	for _, e := range p.Effects {
		t := o.Servers[e.Server]
		if (e.Kind == proposal.StepRelease || e.Kind == proposal.StepWipe) && t.Boot.Ticket != nil && t.Boot.Ticket.Purpose == model.PurposeCleanup &&
			t.Boot.Ticket.ArmedAt.After(f.w.Desired().Time) && t.Boot.Ticket.CleanupMode != e.Cleanup {
			f.wrong(p, "the disks of %s were wiped %s, and %q was announced", e.Server, t.Boot.Ticket.CleanupMode, e.Cleanup)
		}
	}
	for claim, server := range bound {
		if rec := o.Servers[server]; rec.Claim.Name != claim {
			f.wrong(p, "claim %s was to get server %s, which has %q", claim, server, rec.Claim.Name)
		}
	}
	for _, rec := range o.Servers {
		if rec.Life.State == model.StateReserved && rec.Claim.BoundAt.After(f.w.Desired().Time) && rec.Intent != nil &&
			rec.Intent.Kind == model.IntentBind && rec.Intent.Revision == f.w.Desired().Revision && bound[rec.Claim.Name] != rec.Name {
			f.wrong(p, "claim %s got server %s, which was not announced", rec.Claim.Name, rec.Name)
		}
	}
}

func (f *foretold) wrong(p *preview.Preview, format string, args ...any) {
	f.t.Helper()
	f.t.Errorf(format, args...)
	for _, m := range f.made {
		f.t.Log("the commit: ", m)
	}
	for _, e := range p.Effects {
		f.t.Logf("announced: %+v", e)
	}
	for _, h := range p.Held {
		f.t.Logf("held: %+v", h)
	}
}

func (f *foretold) say(format string, args ...any) {
	f.made = append(f.made, fmt.Sprintf(format, args...))
}

// value is one that was not used before.
func (f *foretold) value() string {
	f.n++
	return fmt.Sprint(f.n)
}

func (f *foretold) addClaim(d *model.Desired, name string) {
	c := claim(name)
	switch f.rnd.IntN(4) {
	case 0:
		c.Spec.ServerRef = &model.LocalRef{Name: string(f.server())}
	case 1:
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "a"}}
	}
	d.Add(c)
	f.say("claim %s for %v %v", name, c.Spec.ServerRef, c.Spec.ServerSelector)
}

func (f *foretold) server() model.ServerName { return f.w.machine(f.rnd.IntN(len(f.w.machines))).name }

// anyClaim is a claim in Git, nil if there is none.
func (f *foretold) anyClaim(d *model.Desired) *model.ServerClaim {
	names := slices.Sorted(maps.Keys(d.Claims))
	if len(names) == 0 {
		return nil
	}
	c := *d.Claims[names[f.rnd.IntN(len(names))]]
	c.Annotations = maps.Clone(c.Annotations)
	if c.Annotations == nil {
		c.Annotations = make(map[string]string)
	}
	return &c
}

func (f *foretold) manifest(d *model.Desired, name model.ServerName) *model.Server {
	s := model.Server{Meta: model.Meta{Name: string(name)}}
	if old := d.Servers[name]; old != nil {
		s = *old
	}
	s.Annotations = maps.Clone(s.Annotations)
	if s.Annotations == nil {
		s.Annotations = make(map[string]string)
	}
	return &s
}

func (f *foretold) serves(claim model.ClaimName) model.ServerName {
	for _, name := range slices.Sorted(maps.Keys(f.w.observed.Servers)) {
		if f.w.observed.Servers[name].Claim.Name == claim {
			return name
		}
	}
	return ""
}

// recycle has a server wiped that was kept, if there is one.
func (f *foretold) recycle(d *model.Desired) bool {
	for _, name := range slices.Sorted(maps.Keys(f.w.observed.Servers)) {
		if f.w.observed.Servers[name].Life.State == model.StateReleased {
			s := f.manifest(d, name)
			s.Spec.ReclaimPolicy = model.ReclaimRecycle
			f.say("recycle %s", name)
			d.Add(s)
			return true
		}
	}
	return false
}

// edit makes one random change.
func (f *foretold) edit(d *model.Desired) {
	switch f.rnd.IntN(4) {
	case 0:
		if f.recycle(d) {
			return
		}
		for _, m := range slices.Sorted(maps.Keys(d.Maintenances)) {
			if f.base.Maintenances[m] != nil {
				f.say("end maintenance %s", m)
				delete(d.Maintenances, m)
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.Claims)) {
			if off := *d.Claims[name]; off.Spec.Power == model.PowerOff && f.serves(name) != "" {
				off.Spec.Power = model.PowerOn
				f.say("power of %s is to be On", name)
				d.Add(&off)
				return
			}
		}
	case 1, 2:
		f.editServer(d)
		return
	}
	c := f.anyClaim(d)
	if c == nil {
		f.addClaim(d, "n"+f.value())
		return
	}
	switch f.rnd.IntN(10) {
	case 8:
		delete(c.Annotations, model.AnnotationReprovision)
		f.say("no reprovision of %s", c.Name)
		d.Add(c)
	case 9:
		f.putBack(d)
	case 0, 1:
		f.say("remove claim %s", c.Name)
		delete(d.Claims, c.ClaimName())
	case 2:
		f.addClaim(d, "n"+f.value())
	case 3:
		c.Spec.Image = "os:" + f.value()
		f.say("image of %s", c.Name)
		d.Add(c)
	case 4:
		c.Spec.Image = "os:" + f.value()
		c.Annotations[model.AnnotationReprovision] = f.value()
		f.say("reprovision %s", c.Name)
		d.Add(c)
	case 5:
		c.Spec.Power = map[model.Power]model.Power{model.PowerOn: model.PowerOff, model.PowerOff: model.PowerOn}[c.Spec.Power]
		f.say("power of %s is to be %s", c.Name, c.Spec.Power)
		d.Add(c)
	case 7:
		c.Annotations[model.AnnotationCleanup] = f.cleanup()
		f.say("claim %s asks for cleanup %s", c.Name, c.Annotations[model.AnnotationCleanup])
		d.Add(c)
	case 6:
		if f.base.Claims[c.ClaimName()] == nil {
			return // it came with this very commit
		}
		to := "r" + f.value()
		f.say("rename %s to %s", c.Name, to)
		fleettest.Renamed(c.Name, to)(d)
	}
}

// putBack has a claim in Git again that a server was taken from, if there is one.
func (f *foretold) putBack(d *model.Desired) {
	for _, name := range slices.Sorted(maps.Keys(f.w.observed.Servers)) {
		if rec := f.w.observed.Servers[name]; rec.Claim.Name != "" && d.Claims[rec.Claim.Name] == nil && f.base.Claims[rec.Claim.Name] == nil {
			_, claimed := model.SplitName(rec.Claim.Name)
			f.say("claim %s is back", claimed)
			d.Add(claim(claimed))
			return
		}
	}
}

// cleanup is any way to wipe disks.
func (f *foretold) cleanup() string {
	return []string{model.CleanupNone, model.CleanupQuick, model.CleanupSecure}[f.rnd.IntN(3)]
}

// editServer makes one random change to what Git says of a server.
func (f *foretold) editServer(d *model.Desired) {
	name := f.server()
	s := f.manifest(d, name)
	switch f.rnd.IntN(10) {
	case 9:
		delete(s.Annotations, model.AnnotationOperation)
	case 8:
		s.Annotations[model.AnnotationCleanup] = f.cleanup()
	case 0:
		if c := f.anyClaim(d); c != nil && f.serves(c.ClaimName()) != "" {
			s = f.manifest(d, f.serves(c.ClaimName()))
			if f.rnd.IntN(2) == 0 {
				delete(d.Claims, c.ClaimName())
				f.say("remove claim %s", c.Name)
			}
		}
		s.Spec.ReclaimPolicy = model.ReclaimRetain
	case 1:
		s.Spec.ReclaimPolicy = model.ReclaimRecycle
	case 2:
		s.Annotations[model.AnnotationOperation] = []string{
			model.OperationGracefulRestart, model.OperationPowerCycle, model.OperationForceOff, model.OperationForceOn,
		}[f.rnd.IntN(4)] + "#" + f.value()
	case 3:
		s.Annotations[model.AnnotationOperation] = []string{model.OperationPark, model.OperationUnpark, model.OperationIgnore}[f.rnd.IntN(3)]
	case 4:
		s.Spec.Unclaimable = !s.Spec.Unclaimable
	case 5:
		b := f.w.machine(f.rnd.IntN(len(f.w.machines))).bmc
		if d.BMCs[b] != nil && f.rnd.IntN(3) == 0 {
			f.say("remove BMC %s", b)
			delete(d.BMCs, b)
		}
		return
	default:
		m := "m-" + string(name)
		if d.Maintenances[m] != nil {
			f.say("end maintenance of %s", name)
			delete(d.Maintenances, m)
			return
		}
		f.say("maintenance of %s", name)
		d.Add(&model.ServerMaintenance{Meta: model.Meta{Name: m}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: string(name)}}})
		return
	}
	f.say("server %s: %+v %v", s.Name, s.Spec, s.Annotations)
	d.Add(s)
}
