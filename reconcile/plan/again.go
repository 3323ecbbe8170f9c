package plan

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// again brings a server back to a power state that it left by itself, or did not reach. The
// first time that is done at once; each time in a row the pause is twice as long, from
// PowerPause to PowerPauseMax: a machine that goes off each time it is switched on is not
// worn out by Ingot. What a commit asks for does not wait for that.
func (s *server) again(want model.Power, do func() Step) Step {
	a, p := s.rec.Power.Asked, s.fleet.in.Policy
	if a != nil && a.Want == want && a.Again > 0 && !a.At.After(s.now()) && !s.settling() && s.unsureTries() == 0 && !s.goingOff() {
		if until := a.At.Add(p.PauseAfter(a.Again)); s.now().Before(until) {
			says := fmt.Sprintf("it was brought back to %s %d times in a row, and its power is %s again", want, a.Again, s.power())
			if !s.reached() {
				says = fmt.Sprintf("it was asked %d times in a row to go %s, and its power stays %s: look at the machine", a.Again+1, want, s.power())
			}
			why := proposal.Why{Reason: model.ReasonPowerUnstable, Message: says + fmt.Sprintf("; the next time in %s at most", p.PauseAfter(a.Again)), Since: a.At, Actor: proposal.RackOperator}
			return s.rest(why).wakeBy(until)
		}
	}
	s.bringsBack = true
	return do()
}

// heals brings back the power of what is bound, and does nothing else.
func (s *server) heals(boot func() Step) Step {
	st := s.again(model.PowerOn, boot)
	for _, m := range []*Move{st.Move, st.Queued} {
		if m != nil && !m.Routine {
			m.Heals = true
		}
	}
	return st
}

// timesAgain is how often in a row the server will have been brought back to a power state,
// once it is asked for now.
func (s *server) timesAgain(want model.Power) int {
	a := s.rec.Power.Asked
	switch {
	case !s.bringsBack || a == nil || a.Want != want:
		return 0
	case !s.now().Before(a.At.Add(s.fleet.in.Policy.PauseAfter(a.Again) + s.fleet.in.Policy.PowerPauseMax)):
		return 1 // it stayed so for a while
	case !s.reached() && (a.Unsure || want == model.PowerOff):
		return a.Again // the same request, or one that forces it
	}
	return a.Again + 1
}

// forgetAgain has the next time be at once: a person asks for it.
func (s *server) forgetAgain() {
	if a := s.rec.Power.Asked; a != nil && a.Again > 0 {
		first := *a
		first.Again = 0
		s.edit().Power.Asked = &first
	}
}
