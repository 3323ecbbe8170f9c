package plan

import (
	"cmp"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/power"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/settings"
	"ingot/reconcile/plan/world"
)

// A choice is what is done with a server now, and what would have been done first.
type choice struct {
	proposal.Proposal
	holds  []proposal.Why     // of the proposals that had precedence
	queued *proposal.Proposal // a power-on that waits for a place; nil = none
}

// queuedPerPowerOn is how many servers are queued for each that may be powering on.
const queuedPerPowerOn = 4

// choose takes the first proposal that no law holds and that finds its places; queued is how many power-ons are queued.
func (f *planner) choose(s *world.Server, queued int) choice {
	var c choice
	v := s.Server
	if v.Stored == nil { // its record is saved before anything else
		c.Proposal = v.Change(func(rec *model.ServerRecord) { rec.MACs = life.MACs(v) }).Stay(proposal.Note)
		return c
	}
	mayQueue := queued < queuedPerPowerOn*f.In.Policy.MaxConcurrentPowerOns && !v.Starting() && v.Now.Before(proposal.NextPoll(v, v.Reading.At))
	for p := range f.proposals(s) {
		p, why := f.prepare(v, p)
		if why.Reason == "" {
			if why = f.places.take(&p); why.Reason == model.ReasonPowerOnsLimited && mayQueue {
				c.queued = new(p)
			}
		}
		if why.Reason != "" {
			c.Wake, why.Until = c.WakeBy(why.Until).Wake, time.Time{}
			c.holds = append(c.holds, why)
			continue
		}
		p.Wake = p.WakeBy(c.Wake).Wake
		c.Proposal = p
		break
	}
	if c.Of == nil { // it must not even be read
		c.Proposal, c.holds = v.Wait(c.Wake, c.holds[len(c.holds)-1]), nil
	}
	if c.Kind != proposal.Look && c.Kind != proposal.Keep && c.Do != nil {
		c.queued = nil
	}
	return f.finish(c, v)
}

// prepare asks the laws about a proposal, and completes one that they do not hold.
func (f *planner) prepare(s *proposal.Server, p proposal.Proposal) (next proposal.Proposal, why proposal.Why) {
	if why = f.laws.Check(s, &p); why.Reason != "" {
		return p, why
	}
	if f.In.Hold != nil && f.In.Hold(&p) {
		return p, s.Why(model.ReasonInProgress, "a test holds it")
	}
	next = p
	switch { // what it needs first becomes actions
	case p.Arm != nil:
		if next, why = boot.Arm(p); why.Reason != "" {
			return p, why
		}
	case p.Goal != nil:
		if next = power.Toward(p, boot.Before(p.Of, p.Goal)); next.Kind == proposal.Act {
			next.Kind = p.Kind
		}
		next.Place = append(next.Place, p.Place...)
		if slices.ContainsFunc(next.Do, proposal.Touches) {
			next.What = cmp.Or(p.What, proposal.StepTouch)
		}
	}
	return next, f.laws.Pushed(s, &next)
}

// finish adds what every choice has: settings at rest, the disks at a new state, and when to look at the server again.
func (f *planner) finish(c choice, s *proposal.Server) choice {
	if (c.Kind == proposal.Look || c.Kind == proposal.Keep) && len(c.holds) > 0 {
		c.Why = c.holds[0]
	}
	if c.Why.Reason == "" && c.Kind == proposal.Look {
		c.Why = f.ObserveOnly
	}
	if c.Rests() && c.queued == nil && f.ObserveOnly.Reason == "" {
		c.Proposal = settings.Propose(s, c.Proposal)
	}
	if state := c.Of.State(); state != s.State() && state != model.StateDiscovery {
		c.Of = c.Of.Change(func(rec *model.ServerRecord) { disks.Note(s, rec) })
	}
	_, end := install.Window(s)
	for _, at := range []time.Time{proposal.StrandedEnd(s), end} {
		if at.After(s.Now) {
			c.Proposal = c.WakeBy(at)
		}
	}
	return c
}

func (f *planner) move(s *world.Server, p *proposal.Proposal) *Move {
	in, rec := f.In, p.Of.Record
	m := &Move{Do: p.Do, Then: rec, Routine: p.Routine, Heals: p.Kind == proposal.Keep && !p.Routine}
	m.was = known{old: s.Stored, facts: in.Observed.ServerFacts[s.Name], reading: *s.Reading, policy: &in.Policy}
	if b := in.Observed.BMCFacts[rec.BMC]; b != nil {
		m.was.bmcReset = b.LastResetTime
	}
	m.Target = model.SystemTarget{URI: rec.SystemURI, UUID: rec.UUID}
	if rec.Board != nil {
		m.Target.UUID, m.Target.Board = "", *rec.Board
	}
	if b := f.BMCs.Named(rec.BMC); b != nil {
		m.Target.BMC = b.Target
	}
	return m
}
