// Package install installs a claim's image on its server, once, and then keeps that running from its disk.
package install

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

// Stage is how far the install for a claim has come, and so what is next; model.BootStage is what was seen last.
type Stage string

// The stages of an install. It is "served" once it has what configures the machine (Ignition, cloud-init data, its own
// script, or its kernel where its claim counts that), or its disk has its disk image.
const (
	None          Stage = ""              // there is nothing to install
	SecretMissing Stage = "SecretMissing" // the Secret that configures the boot is not known
	ToArm         Stage = "ToArm"         // it has no ticket for the boot of its claim
	UsedEarly     Stage = "UsedEarly"     // the ticket was used before the server was off
	AwaitingOff   Stage = "AwaitingOff"   // it may still run the install that the ticket replaces
	Ready         Stage = "Ready"         // it is off, and boots from the network next
	Booting       Stage = "Booting"       // it is on, and was not served yet
	WritingDisk   Stage = "WritingDisk"   // its probe writes its disk image
	DiskFailed    Stage = "DiskFailed"    // its probe could not write it
	Stranded      Stage = "Stranded"      // it asked while no Ingot answered
	Served        Stage = "Served"        // it was served, and the time is not on record
	Installing    Stage = "Installing"    // it was served, and its report is waited for
	PoweredOff    Stage = "PoweredOff"    // it was served, and what it installs powered it off
	Unreported    Stage = "Unreported"    // it was served, and did not report in time
	Booted        Stage = "Booted"        // it is known to run what it was served
)

// StageOf is the stage of the server's install, None if there is none.
func StageOf(s *server) Stage {
	if !proposal.Installs(s) {
		return None
	}
	boot, missing := booting.ClaimBoot(s)
	return stage(s, &boot, missing)
}

// stage is the stage of the install of a boot, of which something may be missing.
func stage(s *server, boot *proposal.Boot, missing proposal.Why) Stage {
	t, used := s.Ticket(), None
	ours := s.Opened(model.PurposeClaim) && t.Claim == s.Record.Claim.Name
	if ours {
		used = ticketStage(s)
	}
	switch {
	case used != None:
		return used
	case missing.Reason != "":
		return SecretMissing
	case !ours || s.TicketState() == model.TicketArmed && (t.Digest != booting.Digest(s.DigestKey, boot) || booting.OtherTarget(s, t)):
		return ToArm
	case t.SSHKeys != model.SSHKeysSum(boot.SSHKeys) && s.TicketState() == model.TicketArmed && s.IsOff() && !s.Begun():
		return ToArm // a server that is on already is not restarted for that
	case t.AwaitingOff:
		return AwaitingOff
	case s.Power() == model.PowerOff:
		return Ready
	}
	return Booting
}

// ticketStage is the stage of an install whose ticket was used, whatever the claim asks for by now; else None.
func ticketStage(s *server) Stage {
	t, state := s.Ticket(), s.TicketState()
	switch {
	case t.AwaitingOff && state != model.TicketArmed:
		return UsedEarly
	case state == model.TicketIgnitionServed:
		return servedStage(s)
	case confirmed(s):
		return Booted
	case diskFailed(s):
		return DiskFailed
	case writingDisk(s):
		return WritingDisk
	case proposal.Stranded(s):
		return Stranded
	}
	return None
}

func servedStage(s *server) Stage {
	served := s.NotedAt(s.Ticket().IgnitionAt)
	switch {
	case served.IsZero():
		return Served
	case confirmed(s):
		return Booted
	case !s.Now.Before(served.Add(s.Policy.BootGrace)):
		return Unreported
	case s.Power() == model.PowerOff:
		return PoweredOff
	}
	return Installing
}

// confirmed reports whether the server said that it booted, or is quiet where its claim lets that count.
func confirmed(s *server) bool {
	if !s.Opened(model.PurposeClaim) || s.Ticket().AwaitingOff {
		return false
	}
	end := quietEnd(s)
	return bootState(s) != nil || !end.IsZero() && s.Power() == model.PowerOn && !s.Now.Before(end)
}

// bootState is the report of the server about its boot with its newest ticket, nil if none came.
func bootState(s *server) *model.BootState {
	booted, t := s.Observed.BootStates[s.Name], s.Ticket()
	if booted != nil && t != nil && t.Purpose == model.PurposeClaim && booted.Ticket == t.ID {
		return booted
	}
	return nil
}

// quietEnd is when the server counts as booted if it asks for no network boot until then; zero = it does not.
func quietEnd(s *server) time.Time {
	t, p := s.Ticket(), s.Progress()
	if s.ClaimAnnotation(model.AnnotationBooted) == "" || !s.Opened(model.PurposeClaim) || t.AwaitingOff || t.ServedAt(p).IsZero() {
		return time.Time{}
	}
	since := []time.Time{t.ServedAt(p), p.AskedToBoot()}
	if a := s.Record.Power.Asked; a != nil {
		since = append(since, a.At)
	}
	if p == nil {
		since = append(since, s.Started) // its earlier requests are lost
	}
	return s.NotedAt(slices.MaxFunc(since, time.Time.Compare)).Add(s.Policy.BootGrace)
}

// CloudInitFailed says that cloud-init failed. The server keeps running: it may be corrected on the machine.
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
