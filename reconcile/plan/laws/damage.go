package laws

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// damage is law 4: damage stays local. A server that cannot be reached, or that failed a moment ago, waits alone.
func damage(_ *Laws, s *server, p *proposal.Proposal) (why proposal.Why) {
	switch {
	case p.Kind == proposal.Note || p.Blind:
	case s.Blocked.Reason != "":
		return s.Blocked
	case s.Now.Before(s.NotBefore()):
		why = s.WhyBy(model.ReasonFailing, s.Record.Life.LastError+"; it is tried again", proposal.RackOperator)
		if last := s.Record.Life.LastReason; last != "" {
			why.Reason, why.Actor = last, model.BMCAdvice[last].Actor
		}
		why.Until = s.NotBefore()
	case s.Now.Before(s.Reading.NotBefore):
		why = Unreachable(s)
		why.Until = s.Reading.NotBefore
	}
	return why
}

// SpecificReasons are the reasons of failures that ask for something else to be done than that no answer came.
var SpecificReasons = []model.Reason{
	model.ReasonAuthenticationFailed, model.ReasonPasswordChangeRequired, model.ReasonReadOnlyAccount, model.ReasonSessionsFull,
	model.ReasonUpdateInProgress, model.ReasonBMCBusy, model.ReasonTLSFailed, model.ReasonCertificateChanged, model.ReasonCertificateInvalid,
	model.ReasonNotRedfish, model.ReasonHalfAnswer, model.ReasonNoNetworkBoot, model.ReasonBootOverrideNotKept, model.ReasonPowerOnRefused,
	model.ReasonIdentityMismatch, model.ReasonIdentityUnknown,
}

// Specific returns the reason of a failure if it is one of SpecificReasons, else "".
func Specific(reason model.Reason) model.Reason {
	if slices.Contains(SpecificReasons, reason) {
		return reason
	}
	return ""
}

// Unreachable says why the BMC gives no answer, or none that is of use.
func Unreachable(s *server) proposal.Why {
	why := proposal.Why{Reason: model.ReasonBMCUnreachable, Message: s.Reading.Err, Since: s.Reading.Since, Actor: proposal.RackOperator}
	if reason := Specific(s.Reading.Reason); reason != "" {
		why.Reason, why.Actor = reason, model.BMCAdvice[reason].Actor
	}
	return why
}
