package install

import (
	"fmt"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// CloudInitFailed says that the server was not configured as its claim's Secret says. It keeps
// running: the correction may be made on the machine as well.
func CloudInitFailed(s *server) proposal.Why {
	b := bootState(s)
	if b == nil || b.CloudInit == nil || len(b.CloudInit.Errors) == 0 || s.Ticket().Claim != s.Record.Claim.Name {
		return proposal.Why{}
	}
	errors := strings.Join(b.CloudInit.Errors, "; ")
	if more := b.CloudInit.ErrorsMore; more > 0 {
		errors += fmt.Sprintf("; and %d more", more)
	}
	return proposal.Why{Reason: model.ReasonCloudInitFailed, Message: fmt.Sprintf("cloud-init ended in error (%s): its server runs, and is not installed again. Log in "+
		"and see /var/log/cloud-init.log and /var/log/cloud-init-output.log; to have it installed anew, correct the Secret and give ServerClaim "+
		"%s a new value of annotation %s", errors, s.Record.Claim.Name, model.AnnotationReprovision), Since: b.CloudInit.ReceivedAt, Actor: proposal.Tenant}
}

// UnconfirmedWhy says that nothing has said that the server booted, and what can.
func UnconfirmedWhy(s *server) proposal.Why {
	why := proposal.Why{Reason: model.ReasonUnconfirmed, Since: s.Record.Install.Unconfirmed, Actor: proposal.Tenant}
	if t := s.Ticket(); t != nil && t.Disk != nil {
		return notSeen(s)
	}
	served := "Ignition"
	switch t := s.Ticket(); {
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
	if !quietEnd(s).IsZero() {
		why.Message = fmt.Sprintf("%s. It counts as Booted once it has been On for %s without asking for a network boot (annotation %s: %s)",
			left, s.Policy.BootGrace, model.AnnotationBooted, s.ClaimAnnotation(model.AnnotationBooted))
		return why
	}
	why.Message = fmt.Sprintf("%s. If it runs, have what it boots report (unit ingot-bootstate.service of its Ignition, which needs "+
		"curl), or give ServerClaim %s annotation %s: %s, or %s if it fetches no more than its kernel; if it does not run, give it a new "+
		"value of annotation %s",
		left, s.Record.Claim.Name, model.AnnotationBooted, model.BootedServed, model.BootedKernel, model.AnnotationReprovision)
	return why
}
