package plan

import (
	"fmt"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// unconfirmed reports whether the server is taken to be installed though nothing has said so.
func (s *server) unconfirmed() bool {
	return s.rec.Install.Digest != "" && !s.rec.Install.Unconfirmed.IsZero()
}

// bootedBy is what the claim counts as Booted by where nothing reports.
func (s *server) bootedBy() string {
	if s.claim == nil {
		return ""
	}
	return s.claim.Annotations[model.AnnotationBooted]
}

// confirmed reports whether the server is known to have booted what its open ticket is
// for: it said so, or it is quiet where the claim lets that count.
func (s *server) confirmed() bool {
	if !s.opened(model.PurposeClaim) || s.rec.Boot.Ticket.AwaitingOff {
		return false
	}
	end := s.quietEnd()
	return s.reportedBooted() || !end.IsZero() && s.power() == model.PowerOn && !s.now().Before(end)
}

// reportedBooted reports whether the server said that it booted with its newest ticket.
func (s *server) reportedBooted() bool { return s.bootState() != nil }

// bootState is what the server said of its boot with its newest ticket, nil if nothing.
func (s *server) bootState() *model.BootState {
	booted, t := s.fleet.in.Observed.BootStates[s.name], s.rec.Boot.Ticket
	if booted == nil || t == nil || t.Purpose != model.PurposeClaim || booted.Ticket != t.ID {
		return nil
	}
	return booted
}

// cloudInitFailed says that what the server runs was not configured as its claim's Secret has
// it. It goes on to run: what there is to correct may be done on the machine as well.
func (s *server) cloudInitFailed() proposal.Why {
	b := s.bootState()
	if b == nil || b.CloudInit == nil || len(b.CloudInit.Errors) == 0 || s.rec.Boot.Ticket.Claim != s.rec.Claim.Name {
		return proposal.Why{}
	}
	errors := strings.Join(b.CloudInit.Errors, "; ")
	if more := b.CloudInit.ErrorsMore; more > 0 {
		errors += fmt.Sprintf("; and %d more", more)
	}
	return proposal.Why{Reason: model.ReasonCloudInitFailed, Message: fmt.Sprintf("cloud-init ended in error (%s): its server runs, and is not installed again. Log in "+
		"and see /var/log/cloud-init.log and /var/log/cloud-init-output.log; to have it installed anew, correct the Secret and give ServerClaim "+
		"%s a new value of annotation %s", errors, s.rec.Claim.Name, model.AnnotationReprovision), Since: b.CloudInit.ReceivedAt, Actor: proposal.Tenant}
}

// quietEnd is when the server counts as booted if it stays On and asks for no network boot
// until then; zero = it does not by that.
func (s *server) quietEnd() time.Time {
	in, t := s.fleet.in, s.rec.Boot.Ticket
	if s.bootedBy() == "" || !s.opened(model.PurposeClaim) || t.AwaitingOff || t.ServedAt(s.progress()).IsZero() {
		return time.Time{}
	}
	from := proposal.Later(t.ServedAt(s.progress()), proposal.AskedToBoot(s.progress()))
	if a := s.rec.Power.Asked; a != nil {
		from = proposal.Later(from, a.At)
	}
	if s.progress() == nil {
		from = proposal.Later(from, in.Started) // what it asked for before is lost
	}
	return s.notedAt(from).Add(in.Policy.BootGrace)
}

// unconfirmedWhy says that nothing has said that the server booted, and what can.
func (s *server) unconfirmedWhy() proposal.Why {
	why := proposal.Why{Reason: model.ReasonUnconfirmed, Since: s.rec.Install.Unconfirmed, Actor: proposal.Tenant}
	if t := s.rec.Boot.Ticket; t != nil && t.Disk != nil {
		return s.notSeen()
	}
	served := "Ignition"
	switch t := s.rec.Boot.Ticket; {
	case t == nil:
	case t.Config == model.ThingScript:
		served = "iPXE script"
	case t.Config == model.ThingCloudInit:
		served = "cloud-init data"
	case t.BootedBy == model.BootedKernel:
		served = "kernel"
	}
	left := fmt.Sprintf("its %s was served and it has not reported since that it booted: it counts as installed, and boots from "+
		"its disk", served)
	if !s.quietEnd().IsZero() {
		why.Message = fmt.Sprintf("%s. It counts as Booted once it has been On for %s without asking for a network boot (annotation %s: %s)",
			left, s.fleet.in.Policy.BootGrace, model.AnnotationBooted, s.bootedBy())
		return why
	}
	why.Message = fmt.Sprintf("%s. If it runs, have what it boots report (unit ingot-bootstate.service of its Ignition, which needs "+
		"curl), or give ServerClaim %s annotation %s: %s, or %s if it fetches no more than its kernel; if it does not run, give it a new "+
		"value of annotation %s",
		left, s.rec.Claim.Name, model.AnnotationBooted, model.BootedServed, model.BootedKernel, model.AnnotationReprovision)
	return why
}
