package plan

import (
	"cmp"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// onReadings is how often in a row a server that is to be off must be read On to be
// switched off: some BMCs are wrong for seconds after a reset.
const onReadings = 2

func (s *server) available() Step {
	switch {
	case s.rec.Boot.Ticket.Open():
		s.end(model.TicketSpent)
		return s.stay()
	case s.power() == model.PowerOn && s.reading.Ons < onReadings && !s.goingOff():
		return s.look(s.reading.At.Add(s.fleet.in.Policy.ConfirmEvery), s.why(model.ReasonWaitingForPowerOff, "its BMC says that it is "+
			"on, though Ingot did not switch it on: reading it again to make sure"))
	case s.power() == model.PowerOn:
		return s.again(model.PowerOff, s.switchOff)
	case s.reading.Offs < s.fleet.in.Policy.OffReadings:
		return s.switchOff()
	case s.bind != nil:
		rec := s.edit()
		rec.Claim.Name, rec.Claim.BoundAt, rec.Claim.Power = s.bind.ClaimName(), s.now(), s.bind.Spec.Power
		rec.Claim.Tenant, rec.Claim.Cleanup = s.bind.Tenant, s.bind.Annotations[model.AnnotationCleanup]
		s.announce(model.IntentBind, string(rec.Claim.Name))
		proposal.ResetHandled(rec, proposal.AskedReprovision, s.bind.Annotations[model.AnnotationReprovision])
		proposal.ResetHandled(rec, proposal.AskedOverwrite, "") // its first install asks for it as well as any other
		rec.Install.RootDisk = nil
		rec.Install.Digest, rec.Install.Unconfirmed, rec.Install.Reprovision, rec.Boot.Attempts, rec.Release = "", time.Time{}, "", 0, nil
		return s.enter(model.StateReserved)
	}
	return s.rest(cmp.Or(s.duplicate(), s.awaitsConditions()))
}
