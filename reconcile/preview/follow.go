package preview

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// rounds is how many plans are made at most, one after the other. A server needs few until something is
// requested of its machine, and all servers take their decisions at the same time.
const rounds = 24

// future is what happens if Git has a revision and nothing else happens.
type future struct {
	in      *world.Input
	last    *plan.Result
	servers map[model.ServerName]*plan.Server // of last
	effects []Effect
	check   func(proposal.Boot) *proposal.Failure // nil = boots are not checked
}

// follow plans until nothing is left to decide.
func (f *future) follow() *future {
	f.servers = make(map[model.ServerName]*plan.Server)
	var steps []*proposal.Proposal
	for more, n := true, 0; more && n < rounds; n++ {
		f.plan()
		steps = append(steps, f.last.Taken...)
		f.in, more = plan.Assume(f.in, f.last)
	}
	for _, s := range f.last.Servers {
		f.servers[s.Name] = s
	}
	told, others := make(map[Effect]bool), make(map[model.ServerName]int)
	for _, p := range append(steps, f.last.Asked...) {
		if e := f.effect(p); !told[e.thing()] {
			told[e.thing()] = true
			others[e.Server]++
			f.effects = append(f.effects, e)
		}
	}
	f.effects = slices.DeleteFunc(f.effects, func(e Effect) bool { return e.Kind == proposal.StepTouch && others[e.Server] > 1 })
	return f
}

// plan plans with the results of the checks that the plan needs.
func (f *future) plan() {
	more := f.check != nil
	if more && f.in.Checked == nil {
		f.in.Checked = make(map[proposal.BootKey]proposal.Checked)
	}
	f.last = plan.Plan(f.in)
	for more {
		more = false
		for key, boot := range f.last.Wanted {
			if _, done := f.in.Checked[key]; !done {
				f.in.Checked[key], more = proposal.Checked{Failed: f.check(boot)}, true
			}
		}
		if more {
			f.last = plan.Plan(f.in)
		}
	}
}

// isHeld reports whether the guard holds a step back at last.
func (f *future) isHeld(d model.Disruption) bool {
	return slices.ContainsFunc(f.in.Observed.Fleet.Holds, func(h model.GuardHold) bool { return slices.ContainsFunc(h.Steps, d.Same) })
}
