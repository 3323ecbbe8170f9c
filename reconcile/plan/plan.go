package plan

import (
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/laws/window"
	"ingot/reconcile/plan/world"
)

// planner is one plan under way.
type planner struct {
	*world.World
	laws      *laws.Laws
	places    *places
	guardNext time.Time // when a list that is held may go; zero = none will by time
}

// Plan decides what to do now, and says why each object is where it is. The same input
// gives the same result.
func Plan(in *world.Input) *Result {
	f := &planner{World: world.New(in)}
	p := f.BMCs.Propose()
	r := &Result{Decided: p.Changes, Moves: make(map[model.ServerName]*Move), Readings: p.Readings, Next: p.Wake}
	f.planClaims(r)
	f.loadLaws()
	r.wake(f.guardNext)
	bound := f.bindClaims()
	r.ObserveOnly = f.ObserveOnly
	f.noteUnread()
	r.Claims, r.BMCs, r.Endpoints, r.Maintenances = bound.Claims, f.BMCs.BMCs, f.BMCs.Endpoints(), f.maintenances(bound)
	r.ReadinessRules, r.Unmatched = bound.Rules, f.unmatched(bound)
	f.planServers(r)
	if !sameFleet(f.Record, &in.Observed.Fleet) {
		r.Decided.Fleet = f.Record
	}
	return r
}

// planServers takes each server's next step.
func (f *planner) planServers(r *Result) {
	f.places = newPlaces(f)
	f.Moment.InstallsLeft = f.places.installs
	r.Servers = make([]*Server, len(f.Servers))
	for i, s := range f.Servers {
		c := f.choose(s)
		r.Servers[i] = f.describe(s, &c)
		r.wake(c.Wake)
		if f.In.Busy[s.Name] {
			continue
		}
		move, queued := f.moves(s, &c)
		if move != nil {
			r.Moves[s.Name] = move
		}
		if queued != nil {
			f.places.queued = append(f.places.queued, QueuedMove{s.Name, queued})
		}
		if c.Forget {
			forget(&r.Decided, s.Record)
		}
	}
	r.Queued = f.places.queued
}

// target is how a server is reached.
func (f *planner) target(rec *model.ServerRecord) model.SystemTarget {
	t := model.SystemTarget{URI: rec.SystemURI, UUID: rec.UUID}
	if rec.Board != nil {
		t.UUID, t.Board = "", *rec.Board
	}
	if b := f.BMCs.Named(rec.BMC); b != nil {
		t.BMC = b.Target
	}
	return t
}

func (r *Result) wake(at time.Time) {
	if !at.IsZero() && (r.Next.IsZero() || at.Before(r.Next)) {
		r.Next = at
	}
}

// sameFleet reports whether two records of the fleet say the same.
func sameFleet(a, b *model.FleetRecord) bool {
	return a.Applied == b.Applied && a.Sequence == b.Sequence && slices.Equal(a.Tips, b.Tips) &&
		slices.EqualFunc(a.Holds, b.Holds, window.SameHold) && slices.Equal(a.ApprovedSteps, b.ApprovedSteps) && slices.Equal(a.Done, b.Done) &&
		slices.Equal(a.Absent, b.Absent) && a.AbsentMore == b.AbsentMore && a.AbsentToken == b.AbsentToken &&
		slices.Equal(a.Removed, b.Removed) && slices.Equal(a.Unreadable, b.Unreadable) &&
		a.Unknown.Equal(b.Unknown) && a.UnknownToken == b.UnknownToken && a.GapToken == b.GapToken
}
