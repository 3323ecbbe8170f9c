package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// burnIn is a rule that keeps servers off until label burn-in/passed attests them, and the
// BMC answers.
func burnIn(mode string) func(d *model.Desired) {
	return func(d *model.Desired) {
		d.Add(&model.ServerReadinessRule{Meta: model.Meta{Name: "burn-in"}, Spec: model.ServerReadinessRuleSpec{
			Conditions: []model.RequiredCondition{
				{Type: "burn-in/passed", RequiredStatus: model.StatusTrue}, {Type: model.ConditionBMCReadable, RequiredStatus: model.StatusTrue},
			},
			EnforcementMode: mode, Taint: model.Taint{Key: "burn-in", Effect: model.TaintNoBind},
		}})
	}
}

// attested labels a server; "" takes the label away.
func attested(name model.ServerName, value string) func(d *model.Desired) {
	return func(d *model.Desired) {
		s := &model.Server{Meta: model.Meta{Name: string(name)}}
		if value != "" {
			s.Labels = map[string]string{"burn-in/passed": value}
		}
		d.Add(s)
	}
}

func TestARuleIsAboutNewClaimsAlone(t *testing.T) {
	for mode, again := range map[string]string{model.BootstrapOnly: "Reserved On default/db", model.Continuous: "Available Off"} {
		t.Run(mode, func(t *testing.T) {
			live(t, 2, func(t *testing.T, w *loopWorld) {
				w.expect(2*time.Minute, 1, "Available Off")
				name := w.machine(1).name
				w.commit(burnIn(mode))
				w.commit(func(d *model.Desired) { d.Add(claim("web")) })
				w.expect(time.Hour, 0, "Available Off")
				w.expect(0, 1, "Available Off")
				w.commit(attested(name, "true"))
				w.expect(time.Minute, 1, "Reserved On default/web")

				w.commit(attested(name, ""))
				w.expect(10*time.Minute, 1, "Reserved On default/web")
				saved := 0 // decisions, not what was read of BMCs
				w.mu.Lock()
				w.onSave = func(c proposal.Changes) { saved += len(c.Servers) + len(c.Claims) }
				w.mu.Unlock()
				before, files := w.seen(1), w.files()
				w.expect(time.Hour, 1, "Reserved On default/web")
				if after := w.seen(1); after.ons != before.ons || after.offs != before.offs || saved > 0 {
					t.Errorf("the bound server is touched, or %d records are saved of an unchanged fleet", saved)
				}
				if diff := cmp.Diff(files, w.files()); diff != "" {
					t.Errorf("an unchanged fleet is shown otherwise (-before +after):\n%s", diff)
				}

				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
				w.expect(10*time.Minute, 1, "Available Off")
				w.commit(func(d *model.Desired) { d.Add(claim("db")) })
				w.expect(time.Minute, 1, again)
				w.expect(0, 0, "Available Off")
			})
		})
	}
}

// A rule whose file cannot be read lifts nothing and forgets nothing; one that a commit
// removed is begun anew under the same name.
func TestWhatABootstrapRuleIsDoneForIsForgottenByACommitAlone(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		name := w.machine(0).name
		done := func(want ...string) {
			t.Helper()
			pass(time.Minute)
			if got := w.Observed().Servers[name].Life.BootstrapCompleted; !slices.Equal(got, want) {
				t.Errorf("it was ready for %v, want %v", got, want)
			}
		}
		w.commit(attested(name, "True"))
		w.commit(burnIn(model.BootstrapOnly))
		done("burn-in")
		w.commit(func(d *model.Desired) {
			delete(d.ReadinessRules, "burn-in")
			d.Quarantined[model.ReadinessRuleIdentity("burn-in")] = []string{""}
		})
		done("burn-in")
		w.stop()
		w.start()
		w.commit(func(d *model.Desired) { clear(d.Quarantined); burnIn(model.BootstrapOnly)(d) })
		w.commit(attested(name, ""))
		done("burn-in")
		w.commit(func(d *model.Desired) { delete(d.ReadinessRules, "burn-in") })
		done()
		w.commit(burnIn(model.BootstrapOnly))
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		done()
		w.expect(time.Minute, 0, "Available Off")
	})
}

// What the status branch shows of rules is the same after a restart: no commit is made of it.
func TestARestartShowsRulesAsBefore(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 1, "Available Off")
		w.commit(burnIn(model.Continuous))
		w.commit(attested(w.machine(1).name, "True"))
		pass(time.Minute)
		shown := func() [3]string {
			return [3]string{
				w.document("serverreadinessrules/burn-in.yaml"),
				w.document("servers/" + string(w.machine(0).name) + ".yaml"), w.document("servers/" + string(w.machine(1).name) + ".yaml"),
			}
		}
		before := shown()
		w.stop()
		w.loop.readings = nil
		w.start()
		if diff := cmp.Diff(before[0], shown()[0]); diff != "" {
			t.Errorf("before the BMCs were read (-before +after):\n%s", diff)
		}
		pass(5 * time.Minute)
		if diff := cmp.Diff(before, shown()); diff != "" {
			t.Errorf("once they were (-before +after):\n%s", diff)
		}
	})
}
