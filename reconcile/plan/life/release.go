package life

import (
	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
)

// retains reports whether Git says that the server's disks stay as they are when it is released.
func retains(s *server) bool {
	return s.Manifest != nil && s.Manifest.Spec.ReclaimPolicy == model.ReclaimRetain
}

// DecideRelease decides to take the server from its claim, which needs no BMC. What was served counts as installed.
func DecideRelease(s *server) (p proposal.Proposal, ok bool) {
	if s.State() != model.StateReserved || s.Record.Release != nil || s.Claim != nil || s.Renamed != nil {
		return p, false
	}
	next, t := s, s.Ticket()
	if !s.HasInstall() && !s.InstallUnknown() && s.Opened(model.PurposeClaim) && t.Claim == s.Record.Claim.Name && !t.AwaitingOff &&
		s.TicketState() == model.TicketIgnitionServed {
		next = event.After(s, event.Event{Kind: event.Installed})
	}
	retain := retains(s)
	p = event.After(next, event.Event{Kind: event.Released, Release: &model.Release{
		Revision: s.Desired.Revision, At: s.Now, Claim: s.Record.Claim.Name, Retain: retain,
	}}).Stay(proposal.Decide)
	p.Blind = true
	p.Takes = &model.Disruption{Action: proposal.StepRelease, Value: text.Time(s.Record.Claim.BoundAt)}
	if retain {
		p.Takes.Action = proposal.StepRetain
	}
	return p, true
}

// WithdrawRelease keeps a server for its claim that is back before anything was done.
func WithdrawRelease(s *server) (p proposal.Proposal, ok bool) {
	if s.State() != model.StateReserved || s.Record.Release == nil || s.Claim == nil || !s.HasInstall() && !s.InstallUnknown() {
		return p, false
	}
	always := s.ClaimAnnotation(model.AnnotationBoot) == "always"
	return s.Change(func(rec *model.ServerRecord) {
		rec.Release = nil
		event.ForgetOff(&rec.Power)
		if t := rec.Boot.Ticket; t != nil && t.Digest == rec.Install.Digest && !t.AwaitingOff && (always || s.Unconfirmed()) {
			proposal.ChangeTicket(rec, func(t *model.Ticket) {
				t.Always, t.Ended = always, model.TicketBooted
				if s.Unconfirmed() {
					t.Ended = "" // it may yet report
				}
			})
		}
	}).Stay(proposal.Note).As(proposal.StepKeep), true
}

// releasing powers the server off and hands it on, unless its claim is back in a way that cannot be used. Disks that
// it was decided to keep are not wiped because Git has changed since: the guard decides that.
func releasing(s *server) proposal.Proposal {
	if s.Claim == nil && ClaimQuarantined(s) {
		return s.Rest(QuarantinedWhy(s))
	}
	if !s.IsOff() {
		return s.ToOff(s.Policy.PowerOffGrace)
	}
	retain := s.Record.Release.Retain || retains(s)
	unreadable := s.Desired.MaybeUnreadable(model.KindServer, string(s.Name)) && !s.Removed(s.Name.Identity())
	if !retain && s.Manifest == nil && unreadable {
		return s.Rest(s.WhyBy(model.ReasonManifestUnreadable, "its manifest may say to retain its disks, but cannot be read; "+
			"see "+model.ReportFleet, proposal.RackOperator))
	}
	s = s.Change(func(rec *model.ServerRecord) { rec.Install.Reprovision, rec.Boot.Attempts = "", 0 })
	if retain {
		return s.Enter(proposal.Act, model.StateReleased)
	}
	return giveUp(s)
}

func giveUp(s *server) proposal.Proposal {
	return event.After(s, event.Event{Kind: event.GivenUp}).Stay(proposal.Act)
}

// DecideWipe decides to wipe a server that was kept as it was.
func DecideWipe(s *server) (p proposal.Proposal, ok bool) {
	if !wipeAsked(s) || s.Intends(model.IntentWipe, string(s.Record.Claim.Name)) {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) { event.Announce(s, rec, model.IntentWipe, string(rec.Claim.Name)) }).Stay(proposal.Decide).
		Taking(proposal.StepWipe, text.Time(s.Record.Claim.BoundAt))
}

// wipeAsked reports whether Git asks for a Released server to be wiped.
func wipeAsked(s *server) bool {
	return s.State() == model.StateReleased && s.Claim == nil && s.Manifest != nil && !retains(s) && !ClaimQuarantined(s)
}

// released keeps a server as it was until a person acts.
func released(s *server) proposal.Proposal {
	decided := s.Intends(model.IntentWipe, string(s.Record.Claim.Name))
	switch {
	case s.Claim != nil:
		return s.Change(func(rec *model.ServerRecord) {
			rec.Release = nil
			event.Announce(s, rec, model.IntentBind, string(rec.Claim.Name))
		}).Enter(proposal.Decide, model.StateReserved).As(proposal.StepKeep)
	case decided && wipeAsked(s):
		p := giveUp(s)
		p.Touches = true
		return p
	case decided:
		return s.Change(func(rec *model.ServerRecord) { rec.Intent = nil }).Stay(proposal.Note) // it is decided again if it is asked for again
	case ClaimQuarantined(s):
		return s.Rest(QuarantinedWhy(s))
	}
	return s.Rest(s.WhyBy(model.ReasonRetained, "kept as it is by reclaimPolicy Retain; set Recycle to have it wiped", proposal.RackOperator))
}

// ClaimQuarantined reports whether the server's claim may be in Git again, in a way that cannot be used.
func ClaimQuarantined(s *server) bool {
	return s.Record.Claim.Name != "" && s.Desired.IsQuarantinedOf(s.Record.Claim.Name.Identity(), s.Record.Claim.Tenant)
}

// QuarantinedWhy says that the server keeps what its claim left, because that may be in Git again.
func QuarantinedWhy(s *server) proposal.Why {
	return s.WhyBy(model.ReasonClaimQuarantined, "its claim is in Git but cannot be used; see "+model.ReportFleet, proposal.Tenant)
}
