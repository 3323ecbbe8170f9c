package install

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
)

// DecideReprovision decides to install the server again, as its claim asks for.
func DecideReprovision(s *server) (p proposal.Proposal, ok bool) {
	value := s.ClaimAnnotation(model.AnnotationReprovision)
	if s.State() != model.StateReserved || s.Record.Release != nil || value == "" ||
		proposal.WasHandled(s.Record, proposal.AskedReprovision, value) || !s.HasInstall() && !s.InstallUnknown() {
		return p, false
	}
	p = s.Change(func(rec *model.ServerRecord) {
		event.ForgetOff(&rec.Power)
		rec.Install.Reprovision, rec.Install.ReplacesImage = value, nil
		now, _ := proposal.ResolveImage(s, s.Claim)
		if had := rec.Claim.Image; had != nil && now != nil && *had != *now {
			rec.Claim.Image, rec.Install.ReplacesImage = now, had
		}
		proposal.MarkHandled(rec, proposal.AskedReprovision, value)
		event.Announce(s, rec, model.IntentReprovision, value)
	}).Stay(proposal.Decide)
	p.Blind, p.Takes = true, &model.Disruption{Action: proposal.StepReprovision, Value: value}
	return p, true
}

// WithdrawReprovision takes back a decided reprovision while the former install is still there.
func WithdrawReprovision(s *server) (p proposal.Proposal, ok bool) {
	if s.Record.Install.Reprovision == "" || s.Claim == nil || s.Record.Claim.Name != s.Claim.ClaimName() ||
		s.ClaimAnnotation(model.AnnotationReprovision) == s.Record.Install.Reprovision {
		return p, false
	}
	begun := !s.HasInstall() && !s.InstallUnknown()
	if begun && (s.Record.Install.Replaces == "" || s.Busy || s.TicketState() != model.TicketArmed) {
		return p, false
	}
	ends := begun || s.AwaitsOff(model.PurposeClaim)
	return s.Change(func(rec *model.ServerRecord) {
		if begun {
			rec.Install.Digest, rec.Install.Replaces = rec.Install.Replaces, ""
		}
		event.ForgetOff(&rec.Power)
		rec.Install.Reprovision = ""
		if had := rec.Install.ReplacesImage; had != nil {
			rec.Claim.Image, rec.Install.ReplacesImage = had, nil
		}
		if ends {
			proposal.EndTicket(rec, model.TicketSpent)
		}
	}).Stay(proposal.Note), true
}

// Reprovision begins a decided reprovision. The server loses its install only once the new boot is armed.
func Reprovision(s *server) (p proposal.Proposal, ok bool) {
	if !servesOn(s) || s.Record.Install.Reprovision == "" || !s.HasInstall() && !s.InstallUnknown() {
		return p, false
	}
	boot, why := booting.ClaimBoot(s)
	if why.Reason != "" {
		return p, false // what it runs is kept running meanwhile
	}
	digest := booting.Digest(s.DigestKey, &boot)
	s = s.Change(event.ForgetThefts) // it may run what it was served after them
	if !s.AwaitsOff(model.PurposeClaim) || s.Ticket().Claim != s.Record.Claim.Name || s.Ticket().Digest != digest ||
		s.Ticket().SSHKeys != model.SSHKeysSum(boot.SSHKeys) {
		boot.Ticket.AwaitingOff = true
		p = s.ToArm(model.PurposeClaim, boot).As(proposal.StepReprovision)
		p.Place = []proposal.Place{proposal.ReprovisionPlace}
		return p, true
	}
	places := []proposal.Place{proposal.ReprovisionPlace}
	if proposal.NeedsInstallPlace(s) {
		places = []proposal.Place{proposal.InstallPlace, proposal.ReprovisionPlace}
	}
	s = s.Change(func(rec *model.ServerRecord) {
		rec.Install.Replaces = ""
		if rec.Install.Unconfirmed.IsZero() {
			rec.Install.Replaces = rec.Install.Digest
		}
		rec.Install.Digest, rec.Install.Unconfirmed, rec.Doubt = "", time.Time{}, nil
	})
	if p, ok = Install(s); ok {
		p.Place = append(places, p.Place...)
	}
	return p, ok
}

// Pending says that the claim requests another install than the server has, which stays as it is.
func Pending(s *server) proposal.Why {
	if s.Record.Install.Reprovision != "" {
		_, why := booting.ClaimBoot(s)
		return why
	}
	if !s.Outdated {
		return proposal.Why{}
	}
	return s.WhyBy(model.ReasonPendingReprovision, fmt.Sprintf("image, Secret, kernel arguments, root device or seed changed since it was installed; "+
		"give ServerClaim %s a new value of annotation %s to have it reinstalled",
		s.Record.Claim.Name, model.AnnotationReprovision), proposal.Tenant)
}

// Rekey puts the recorded digests under the present key.
func Rekey(s *server) (p proposal.Proposal, ok bool) {
	digest := s.Record.Install.Digest
	if digest == "" || s.DigestKey.Made(digest) || s.Claim == nil {
		return p, false
	}
	boot, why := booting.ClaimBoot(s)
	if why.Reason != "" || !booting.SameBoot(s.DigestKey, digest, s.Ticket(), &boot) {
		return p, false
	}
	present := booting.Digest(s.DigestKey, &boot)
	if present == digest {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) {
		rec.Install.Digest = present
		if t := rec.Boot.Ticket; t != nil && t.Digest == digest {
			proposal.ChangeTicket(rec, func(t *model.Ticket) { t.Digest = present })
		}
		if problem := rec.Boot.Problem; problem != nil && problem.Digest == digest {
			rec.Boot.Problem = proposal.Changed(problem, func(p *model.BootProblem) { p.Digest = present })
		}
	}).Stay(proposal.Note), true
}
