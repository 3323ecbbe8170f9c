package plan

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// reprovisionAsked reports whether the claim asks anew to be installed again.
func (s *server) reprovisionAsked() bool {
	v := s.claim.Annotations[model.AnnotationReprovision]
	return v != "" && !proposal.WasHandled(s.rec, proposal.AskedReprovision, v)
}

// decideReprovisions notes which servers are to be installed again.
func (f *fleet) decideReprovisions() {
	for _, s := range f.servers {
		if !s.may(proposal.StepReprovision) {
			continue
		}
		rec := s.edit()
		rec.Install.Reprovision = s.claim.Annotations[model.AnnotationReprovision]
		proposal.MarkHandled(rec, proposal.AskedReprovision, rec.Install.Reprovision)
		s.announce(model.IntentReprovision, rec.Install.Reprovision)
	}
}

// withdrawReprovision takes back a decided reprovision that the claim does not ask for any
// more, while what the server ran is still there: before it was begun, or before the server
// was booted for it. It touches nothing.
func (s *server) withdrawReprovision() (Step, bool) {
	if s.rec.Install.Reprovision == "" || s.claim == nil || s.rec.Claim.Name != s.claim.ClaimName() ||
		s.fleet.observeOnly.Reason != "" || s.claim.Annotations[model.AnnotationReprovision] == s.rec.Install.Reprovision {
		return Step{}, false
	}
	switch begun := s.rec.Install.Digest == "" && !proposal.InstallUnknown(s.rec); {
	case !begun:
		s.edit().Install.Reprovision = ""
		if s.awaitsOff(model.PurposeClaim) {
			s.end(model.TicketSpent)
		}
	case s.rec.Install.Replaces == "", s.fleet.in.Busy[s.name], s.rec.Boot.Ticket.State(s.progress()) != model.TicketArmed:
		return Step{}, false
	default:
		rec := s.edit()
		rec.Install.Digest, rec.Install.Replaces, rec.Install.Reprovision = rec.Install.Replaces, "", ""
		s.end(model.TicketSpent)
	}
	return s.stay(), true
}

// startReprovision lets a decided reprovision begin when its turn has come: first
// the new boot is armed, and only once that is there is the server taken from what it
// runs.
func (s *server) startReprovision() (Step, bool) {
	if s.rec.Install.Reprovision == "" || s.rec.Install.Digest == "" && !proposal.InstallUnknown(s.rec) || s.fleet.reprovisions <= 0 {
		return Step{}, false
	}
	boot, why := s.claimBoot()
	switch {
	case why.Reason != "" || s.reprovisionTrouble().Reason != "":
		return Step{}, false // what it runs is kept running meanwhile
	case s.fresh:
		return s.stay(), true // the decision stands on record before anything is done
	}
	armed := s.awaitsOff(model.PurposeClaim) && s.rec.Boot.Ticket.Claim == s.rec.Claim.Name && s.rec.Boot.Ticket.Digest == s.digest(&boot)
	if armed && !s.takeInstallPlace() {
		if proposal.InstallUnknown(s.rec) {
			return s.rest(s.installsLimited()), true // what goes on without it would end its ticket
		}
		return Step{}, false // nor is it taken from what it runs before its turn comes
	}
	s.fleet.reprovisions--
	s.forgetThefts() // it may run what it was served after them
	if armed {
		rec := s.edit()
		rec.Install.Replaces = ""
		if rec.Install.Unconfirmed.IsZero() {
			rec.Install.Replaces = rec.Install.Digest
		}
		rec.Install.Digest, rec.Install.Unconfirmed, rec.Doubt = "", time.Time{}, nil
		return Step{}, false
	}
	boot.Ticket.AwaitingOff = true
	return s.arm(model.PurposeClaim, boot), true
}

// reprovisionTrouble says why the server cannot be reprovisioned now.
func (s *server) reprovisionTrouble() proposal.Why {
	boot, why := s.claimBoot()
	if why.Reason != "" {
		return why
	}
	s.complete(model.PurposeClaim, &boot)
	why, _ = s.trouble(boot)
	return why
}

// pendingReprovision says that the claim asks for something else than what the
// server runs, which is left alone.
func (s *server) pendingReprovision() proposal.Why {
	if s.rec.Install.Reprovision != "" {
		if why := s.reprovisionTrouble(); why.Reason != "" {
			return why
		}
		if s.awaitsOff(model.PurposeClaim) && !s.mayInstall() {
			return s.installsLimited()
		}
		return s.why(model.ReasonReprovisionQueued, "waiting for other servers to be reprovisioned (guard.maxConcurrentReprovisions)")
	}
	if s.outdated() {
		return s.whySince(model.ReasonPendingReprovision, fmt.Sprintf("image, Secret, kernel arguments, root device or seed changed since it was installed; "+
			"give ServerClaim %s a new value of annotation %s to have it reinstalled",
			s.rec.Claim.Name, model.AnnotationReprovision), proposal.Tenant)
	}
	return proposal.Why{}
}

// outdated reports whether the claim asks for something else than was installed.
func (s *server) outdated() bool { return !s.kept.isCurrent(s) }

// current reports whether the claim asks for nothing else than was installed, as far as that is
// known.
func (s *server) current() bool {
	boot, why := s.claimBoot()
	return s.rec.Install.Digest == "" || why.Reason != "" || s.runs(&boot)
}
