package reconcile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/preview"
)

// TestWhatComesOfACommitInTheMiddleWasAnnounced makes commits while a fleet is still busy with the ones
// before, approves some of what the guard holds, and has BMCs fail, restarts and rewritten histories. Whatever
// disturbs a machine was announced by the preview of a commit, and had not come to its end since.
func TestWhatComesOfACommitInTheMiddleWasAnnounced(t *testing.T) {
	for seed := range fleettest.Histories(2, 60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &busy{
					foretold: foretold{w: newLoopWorld(t, 7), rnd: rand.New(rand.NewPCG(seed, 78)), t: t, seen: make(map[preview.Kind]int)},
					due:      make(map[model.ServerName]bool),
				}
				f.live()
			})
		})
	}
}

// busy is a fleet that never comes to rest.
type busy struct {
	foretold
	// due is what was announced of a server and has not happened yet.
	due  map[model.ServerName]bool
	last *preview.Preview
}

func (f *busy) live() {
	w := f.w
	w.start()
	w.expect(2*time.Minute, len(w.machines)-1, "Available Off")
	w.commit(func(d *model.Desired) {
		for i := range 3 + f.rnd.IntN(3) {
			f.addClaim(d, fmt.Sprint("c", i))
		}
	})
	pass(time.Duration(f.rnd.IntN(600)) * time.Second)
	for range 8 {
		f.event()
		f.commit()
	}
	w.stop()
}

// event has something happen that no commit asks for.
func (f *busy) event() {
	i := f.rnd.IntN(len(f.w.machines))
	switch f.rnd.IntN(10) {
	case 0, 1:
		f.w.change(i, func(m *machine) { m.dead = !m.dead })
	case 2:
		f.w.set(f.w.machine(i), model.PowerOff) // a power cut
	case 3:
		f.w.change(i, func(m *machine) { m.noNotice = !m.noNotice })
	case 4:
		f.w.change(i, func(m *machine) { m.wipeFail = !m.wipeFail })
	case 5:
		f.w.change(i, func(m *machine) { m.rude = !m.rude })
	case 6:
		f.w.stop()
		f.w.start()
	case 7:
		f.w.rewrite(func(d *model.Desired) {
			if c := f.anyClaim(d); c != nil {
				delete(d.Claims, c.ClaimName())
			}
		})
	}
}

// commit makes a random commit, and looks for what came of it.
func (f *busy) commit() {
	f.t.Helper()
	f.rest()
	files, base := f.w.files(), f.w.Desired()
	f.base = base
	before := f.machines()
	f.made = nil
	f.w.commit(func(d *model.Desired) {
		for range 1 + f.rnd.IntN(3) {
			if f.rnd.IntN(2) == 0 {
				f.edit(d)
			} else {
				f.other(d)
			}
		}
	})
	p := f.foretell(files, base, f.w.Desired())
	f.note(p)
	f.last = p
	for range 1 + f.rnd.IntN(8) {
		pass(time.Duration(f.rnd.IntN(240)) * time.Second)
	}
	f.look(p, before)
}

// rest may have all come to its end that was announced.
func (f *busy) rest() {
	if f.rnd.IntN(2) == 0 {
		return
	}
	before := f.machines()
	pass(6 * time.Hour)
	f.look(f.last, before)
	o, held := f.w.Observed(), make(map[model.ServerName]bool)
	for _, h := range o.Fleet.Holds {
		for _, d := range h.Steps {
			held[d.Server] = true
		}
	}
	for name, m := range f.machines() {
		rec := o.Servers[name]
		quiet := rec.Life.State == model.StateAvailable || rec.Life.State == model.StateReleased || rec.Life.State == model.StateReserved && rec.Release == nil
		if quiet && !m.dead && !held[name] {
			delete(f.due, name)
		}
	}
}

// look looks for what was done and not announced.
func (f *busy) look(p *preview.Preview, before map[model.ServerName]machine) {
	f.t.Helper()
	for name, m := range f.machines() {
		was := before[name]
		if m.disturbed == was.disturbed && (was.disk == "" || m.disk == was.disk) {
			continue
		}
		if !f.due[name] {
			f.wrong(p, "%s was disturbed, and nothing was announced", name)
		}
	}
}

// note keeps what is announced.
func (f *busy) note(p *preview.Preview) {
	for _, e := range p.Effects {
		if e.Kind == preview.NoLonger {
			delete(f.due, e.Server)
		}
	}
	for _, e := range p.Effects {
		if e.Destructive {
			f.due[e.Server] = true
		}
	}
}

// other makes a change of a kind that quiet fleets do not see.
func (f *busy) other(d *model.Desired) {
	switch f.rnd.IntN(6) {
	case 0, 1:
		f.otherServer(d)
		return
	case 2:
		f.otherObject(d)
		return
	}
	c := f.anyClaim(d)
	if c == nil {
		return
	}
	switch f.rnd.IntN(13) {
	case 9:
		c.Annotations[model.AnnotationMaintenanceApproved] = "true"
	case 10:
		c.Spec.Image = []string{"broken:1", "disk/" + f.value()}[f.rnd.IntN(2)]
	case 11:
		c.Annotations[model.AnnotationOverwrite] = f.value()
		c.Annotations[model.AnnotationReprovision] = f.value()
	case 12:
		c.Annotations[model.AnnotationBooted] = "power"
	case 0:
		for _, h := range f.w.observed.Fleet.Holds {
			d.Approvals = append(d.Approvals, h.Token)
		}
		f.say("approves %q", d.Approvals)
		return
	case 1:
		c.Spec.ServerRef = &model.LocalRef{Name: string(f.server())}
	case 2:
		c.Spec.ServerRef = nil
	case 3:
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": string(rune('a' + f.rnd.IntN(3)))}}
	case 4:
		c.Annotations[model.AnnotationBoot] = []string{"always", "once"}[f.rnd.IntN(2)]
	case 5:
		c.Annotations[model.AnnotationKernelArguments] = "n=" + f.value()
	case 6:
		c.Annotations[model.AnnotationPriority] = f.value()
	case 7:
		d.Add(fleettest.IgnitionSecret(f.value()))
		c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"}
	case 8:
		if f.base.Claims[c.ClaimName()] == nil {
			return
		}
		f.say("the file of %s cannot be used", c.Name)
		delete(d.Claims, c.ClaimName())
		d.Quarantined[c.ClaimName().Identity()] = []string{""}
		return
	}
	f.say("claim %s: %v %v %v", c.Name, c.Spec.ServerRef, c.Spec.ServerSelector, c.Annotations)
	d.Add(c)
}

// otherServer changes a server.
func (f *busy) otherServer(d *model.Desired) {
	s := f.manifest(d, f.server())
	switch f.rnd.IntN(7) {
	case 0:
		s.Spec.IndicatorLED = []string{"Lit", "Off", "Blinking"}[f.rnd.IntN(3)]
	case 1:
		s.Spec.Taints = []model.Taint{{Key: "k", Effect: model.TaintNoBind}}
	case 2:
		s.Labels = map[string]string{"rack": string(rune('a' + f.rnd.IntN(3)))}
	case 3:
		s.Annotations[model.AnnotationDiscover] = f.value()
	case 4:
		if d.Servers[model.ServerName(s.Name)] != nil {
			f.say("no manifest of %s", s.Name)
			delete(d.Servers, model.ServerName(s.Name))
		}
		return
	case 5:
		if c := f.anyClaim(d); c != nil && !slices.Contains(f.made, "") {
			s.Spec.ServerClaimRef = &model.ObjectRef{Namespace: "default", Name: c.Name}
		}
	case 6:
		s.Annotations[model.AnnotationOperation] = model.OperationRetry + "#" + f.value()
	}
	f.say("server %s: %+v %v %v", s.Name, s.Spec, s.Annotations, s.Labels)
	d.Add(s)
}

// otherObject changes what is neither a claim nor a server.
func (f *busy) otherObject(d *model.Desired) {
	name := f.server()
	switch f.rnd.IntN(5) {
	case 0:
		m := &model.ServerMaintenance{Meta: model.Meta{Name: "x-" + string(name)}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: string(name)}}}
		m.Spec.ServerPower = []model.Power{model.PowerOn, model.PowerOff}[f.rnd.IntN(2)]
		m.Spec.Policy = []model.MaintenancePolicy{model.MaintenanceOwnerApproval, model.MaintenanceEnforced}[f.rnd.IntN(2)]
		f.say("%+v", m)
		d.Add(m)
	case 1:
		if names := slices.Sorted(maps.Keys(d.BMCs)); len(names) > 0 {
			moved := *d.BMCs[names[f.rnd.IntN(len(names))]]
			moved.Spec.Protocol.Port++
			f.say("BMC %s is elsewhere", moved.Name)
			d.Add(&moved)
		}
	case 2:
		d.Add(&model.ServerReadinessRule{Meta: model.Meta{Name: "r"}, Spec: model.ServerReadinessRuleSpec{
			EnforcementMode: "Continuous", Taint: model.Taint{Key: "r", Effect: model.TaintNoBind},
		}})
	case 3:
		delete(d.ReadinessRules, "r")
	case 4:
		ids := slices.SortedFunc(maps.Keys(d.Quarantined), func(a, b model.Identity) int { return strings.Compare(a.String(), b.String()) })
		if len(ids) == 0 {
			return
		}
		id := ids[f.rnd.IntN(len(ids))]
		delete(d.Quarantined, id)
		f.say("the file of %s is mended", id)
		if f.rnd.IntN(2) == 0 {
			d.Add(claim(id.Name))
		}
	}
}
