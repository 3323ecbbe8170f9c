package preview

import (
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// laterBoots are the servers that boot from elsewhere than before, or would if they were
// installed again, because annotation ingot/boot of their claim is another.
func (c *comparison) laterBoots(effects []Effect) []Effect {
	told := serversOf(effects, Bind, Adopt, Reprovision, Install, Release, Retain)
	var all []Effect
	for _, cl := range c.after.last.Claims {
		before := c.formerly(cl.Name)
		if cl.Server == "" || told[cl.Server] || before == nil || cl.Manifest == nil || always(before) == always(cl.Manifest) {
			continue
		}
		e := Effect{Server: cl.Server, Claim: cl.Name}
		was, is := c.before.bootsAlways(cl.Server), c.after.bootsAlways(cl.Server)
		switch {
		case is && !was:
			e.Kind, e.Message = Boot, "boots its image from the network at each boot"
		case was && !is:
			e.Kind = Boot
			e.Message = "boots from its disk from its next boot on, and no longer from the network each time: an image that runs from memory alone does not come back"
		case always(cl.Manifest):
			e.Kind = Pending
			e.Message = "boots from its disk: " + model.AnnotationBoot + ": always counts from its next installation on"
			e.Next = fmt.Sprintf("to have it installed, which restarts the server: give %s a new value of annotation %s", cl.Name.Identity(), model.AnnotationReprovision)
		default:
			continue // it waited to be installed, and nothing came of it
		}
		all = append(all, e)
	}
	return all
}

// bootsAlways reports whether a server boots from the network each time, by the ticket that
// it has or is about to get.
func (f *future) bootsAlways(name model.ServerName) bool {
	for _, a := range f.asked[name] {
		if arm, ok := a.(proposal.Arm); ok {
			return arm.Boot.Ticket.Always
		}
	}
	rec := f.in.Observed.Servers[name]
	return rec != nil && rec.Boot.Ticket != nil && rec.Boot.Ticket.Always
}

// laterCleanups are the servers of whose disks something else becomes once they are released,
// or is about to become as they are being released.
func (c *comparison) laterCleanups(effects []Effect) []Effect {
	told := serversOf(effects, Release, Retain, Wipe)
	var all []Effect
	for _, name := range slices.Sorted(maps.Keys(c.after.in.Observed.Servers)) {
		was := c.Fleet.Observed.Servers[name]
		if was == nil || told[name] {
			continue
		}
		before, after := c.before.disposal(name), c.after.disposal(name)
		if before == after {
			continue
		}
		e := Effect{Kind: Cleanup, Server: name, Claim: c.after.in.Observed.Servers[name].Claim.Name, Cleanup: after.mode}
		when := "when it is next released"
		switch {
		case underRelease(was):
			when = "now"
			e.Destructive = before.keeps() && !after.keeps()
		case was.Life.State == model.StateReleased:
			when = "once reclaimPolicy is Recycle"
			before.retained, after.retained = false, false
		}
		e.Message = fmt.Sprintf("has its disks %s %s; without this: %s", after, when, before)
		all = append(all, e)
	}
	return all
}

// underRelease reports whether a server was taken from its claim, and what becomes of its
// disks comes next.
func underRelease(rec *model.ServerRecord) bool {
	state := rec.Life.State
	if state == model.StateError || state == model.StateMaintenance {
		state = rec.Life.Back
	}
	return state == model.StateCleanup || state == model.StateReserved && rec.Release != nil
}

// disposal is what becomes of a server's disks once it is released.
type disposal struct {
	retained bool
	mode     string
}

func (f *future) disposal(name model.ServerName) disposal {
	if f.in.Observed.Servers[name] == nil {
		return disposal{}
	}
	return disposal{f.retained(name), f.cleanup(name)}
}

// keeps reports whether the disks stay as they are.
func (d disposal) keeps() bool { return d.retained || d.mode == model.CleanupNone }

// String says what becomes of the disks.
func (d disposal) String() string {
	says := "wiped (cleanup " + d.mode + ")"
	if d.mode == model.CleanupNone {
		says = "left as they are (cleanup none)"
	}
	if d.retained {
		return "kept until reclaimPolicy is Recycle, then " + says
	}
	return says
}

// serversOf are the servers that effects of some kinds are of.
func serversOf(effects []Effect, kinds ...Kind) map[model.ServerName]bool {
	all := make(map[model.ServerName]bool)
	for i := range effects {
		if slices.Contains(kinds, effects[i].Kind) {
			all[effects[i].Server] = true
		}
	}
	return all
}
