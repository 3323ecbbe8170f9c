package plan

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// reserved serves a server's claim: it installs what the claim asks for once,
// and from then on keeps the power as the claim says, booting from disk.
func (s *server) reserved() Step {
	switch {
	case s.rec.Release != nil:
		return s.releasing()
	case s.claim == nil:
		return s.keepAbsent()
	}
	if why := s.fleet.unready(s.claim); why.Reason == model.ReasonIgnored {
		return s.rest(s.whySince(why.Reason, why.Message, why.Actor))
	}
	if st, ok := s.wantPower(); ok {
		return st
	}
	if s.rec.Claim.Power == model.PowerOff {
		return s.keepOff()
	}
	if st, ok := s.startReprovision(); ok {
		return st
	}
	if proposal.InstallUnknown(s.rec) {
		return s.awaitInstall()
	}
	if s.rec.Install.Digest == "" {
		return s.install()
	}
	return s.keepRunning()
}

// wantPower notes that the claim asks for another power state than before.
func (s *server) wantPower() (Step, bool) {
	want := s.claim.Spec.Power
	switch {
	case s.rec.Claim.Power == want:
		return Step{}, false
	case want == model.PowerOff && s.rec.Claim.Power == model.PowerOn && !s.may(proposal.StepPowerOff):
		return Step{}, false // it goes on as it did
	case s.rec.Claim.Power != "":
		s.announce(model.IntentPower, string(want))
	}
	s.edit().Claim.Power = want
	s.forgetAgain()
	return s.stay(), true
}

// keepOff keeps the server off. What was armed is of no use meanwhile.
func (s *server) keepOff() Step {
	if s.power() == model.PowerOn {
		return s.again(model.PowerOff, s.switchOff)
	}
	st, done := s.off(s.fleet.in.Policy.PowerOffGrace)
	if !done {
		return st
	}
	if s.opened(model.PurposeClaim) && s.rec.Boot.Ticket.State(s.progress()) != model.TicketIgnitionServed {
		s.end(model.TicketSpent)
	}
	return s.restOrSave(proposal.Why{})
}

// keepRunning heals the power of an installed server (law 1: from its disk).
func (s *server) keepRunning() Step {
	if s.unconfirmed() && s.confirmed() {
		return s.installed()
	}
	if s.power() == model.PowerOff && !s.claim.BootConfiguration { // which is booted once
		if t := s.rec.Boot.Ticket; t != nil && t.Always && t.MayBoot(s.progress()) {
			return s.heals(func() Step { return s.netBoot(nil) })
		}
		return s.heals(s.diskBoot)
	}
	why := s.pendingReprovision()
	if s.unconfirmed() && why.Reason == "" {
		return s.restOrSave(s.unconfirmedWhy()).wakeBy(s.quietEnd())
	}
	st := s.restOrSave(why)
	if why.Reason == model.ReasonImagePreparing {
		st = st.wakeBy(s.reading.PreparedAfter)
	}
	return st
}

// keepAbsent keeps a server as it was whose claim Git lacks, though no commit took it
// away.
func (s *server) keepAbsent() Step {
	if s.rec.Claim.Power == model.PowerOn && s.power() == model.PowerOff && (s.rec.Install.Digest != "" || proposal.InstallUnknown(s.rec)) {
		return s.heals(s.diskBoot)
	}
	return s.rest(s.notReleased())
}
