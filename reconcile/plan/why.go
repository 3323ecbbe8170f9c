package plan

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// why is a reason that holds since the server's state was entered.
func (s *server) why(reason, message string) proposal.Why {
	return s.whySince(reason, message, proposal.ActorNone)
}

func (s *server) whySince(reason, message string, a proposal.Actor) proposal.Why {
	return proposal.Why{Reason: reason, Message: message, Since: s.rec.Life.Since, Actor: a}
}

// failing says what went wrong with the last move.
func (s *server) failing() proposal.Why {
	return s.whySince(model.ReasonFailing, s.rec.Life.LastError+"; it is tried again", proposal.RackOperator)
}

// tellingReasons are the reasons of failed readings that say more than that there was no
// answer, and ask for something else to be done.
var tellingReasons = []model.Reason{
	model.ReasonAuthenticationFailed, model.ReasonCertificateChanged, model.ReasonHalfAnswer,
	model.ReasonIdentityMismatch, model.ReasonIdentityUnknown,
}

// ranWhenLastRead reports whether the server was On when it was last read, and why is
// nothing but that it cannot be read now: what runs on it goes on without its BMC.
func (s *server) ranWhenLastRead(why proposal.Why) bool {
	if s.power() != model.PowerOn || why.Reason == "" {
		return false
	}
	if s.blocked.Reason != "" {
		b := s.bmc
		ofBMC := b != nil && why == b.why && (why.Reason == b.rec.Reason || why.Reason == model.ReasonAuthenticationFailed)
		return why == s.blocked && (why.Reason == model.ReasonSystemUnreadable || ofBMC)
	}
	return s.reading.Failures > 0 && !s.reading.Mistaken() && why == s.unreachable()
}

// unreachable says why the BMC gives no answer, or none that is of use.
func (s *server) unreachable() proposal.Why {
	why := proposal.Why{Reason: model.ReasonBMCUnreachable, Message: s.reading.Err, Since: s.reading.Since, Actor: proposal.RackOperator}
	if slices.Contains(tellingReasons, s.reading.Reason) {
		why.Reason = s.reading.Reason
	}
	return why
}

// discoveryFailure says that discovery was given up.
func (s *server) discoveryFailure() string {
	return fmt.Sprintf("no report after %d attempts, %s; %s; fix it and set annotation %s: %s#1 on Server %s",
		s.rec.Boot.Attempts, s.rec.Life.LastError, s.hint(), model.AnnotationOperation, model.OperationRetry, s.name)
}
