package plan

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// InstallStage is how far the install of what a claim asks for has come on its server,
// by what is on record and what was seen of the boot. It says what Ingot does next;
// model.BootStage says what was seen last.
type InstallStage string

// The stages of an install. What is "served" is what configures the machine: its
// Ignition, its cloud-init data, its own script, or its kernel where its claim counts that;
// with a disk image it is "served" once that is on its disk.
const (
	InstallNone          InstallStage = ""              // nothing is to be installed
	InstallSecretMissing InstallStage = "SecretMissing" // what is to be booted is not known
	InstallToArm         InstallStage = "ToArm"         // it has no ticket for what its claim asks for
	InstallUsedEarly     InstallStage = "UsedEarly"     // the ticket was used before the server was off
	InstallAwaitingOff   InstallStage = "AwaitingOff"   // it may still run what the ticket is to replace
	InstallReady         InstallStage = "Ready"         // it is off, and boots from the network next
	InstallBooting       InstallStage = "Booting"       // it is on, and was not served yet
	InstallWritingDisk   InstallStage = "WritingDisk"   // its probe writes its disk image
	InstallDiskFailed    InstallStage = "DiskFailed"    // its probe could not write it
	InstallStranded      InstallStage = "Stranded"      // it asked while no Ingot answered
	InstallServed        InstallStage = "Served"        // it was served, and the time is not on record
	InstallInstalling    InstallStage = "Installing"    // it was served, and its report is waited for
	InstallPoweredOff    InstallStage = "PoweredOff"    // it was served, and what it installs powered it off
	InstallUnreported    InstallStage = "Unreported"    // it was served, and did not report in time
	InstallBooted        InstallStage = "Booted"        // it is known to run what it was served
)

// installs reports whether the server has a claim and is yet to be brought what that
// asks for.
func (s *server) installs() bool {
	return s.rec.Life.State == model.StateReserved && s.claim != nil && s.rec.Release == nil &&
		s.rec.Claim.Power == model.PowerOn && s.rec.Install.Digest == "" && !proposal.InstallUnknown(s.rec)
}

// installStage is the stage of the server's install, InstallNone if there is none.
func (s *server) installStage() InstallStage {
	if !s.installs() {
		return InstallNone
	}
	boot, missing := s.claimBoot()
	return s.stage(&boot, missing)
}

// stage is the stage of the install of a boot, of which something may be missing.
func (s *server) stage(boot *proposal.Boot, missing proposal.Why) InstallStage {
	t := s.rec.Boot.Ticket
	ours := s.opened(model.PurposeClaim) && t.Claim == s.rec.Claim.Name
	if ours {
		if stage := s.ticketStage(); stage != InstallNone {
			return stage
		}
	}
	switch {
	case missing.Reason != "":
		return InstallSecretMissing
	case !ours || t.State(s.progress()) == model.TicketArmed && (t.Digest != s.digest(boot) || s.otherTarget(t)):
		return InstallToArm
	case t.AwaitingOff:
		return InstallAwaitingOff
	case s.power() == model.PowerOff:
		return InstallReady
	}
	return InstallBooting
}

// ticketStage is the stage of an install whose ticket was used already, or will not be:
// InstallNone if neither is so. From then on it is no matter what the claim asks for.
func (s *server) ticketStage() InstallStage {
	t, state := s.rec.Boot.Ticket, s.rec.Boot.Ticket.State(s.progress())
	switch {
	case t.AwaitingOff && state != model.TicketArmed:
		return InstallUsedEarly
	case state == model.TicketIgnitionServed:
		return s.servedStage()
	case s.confirmed():
		return InstallBooted
	case s.diskFailed():
		return InstallDiskFailed
	case s.writingDisk():
		return InstallWritingDisk
	case s.stranded():
		return InstallStranded
	}
	return InstallNone
}

// servedStage is the stage of the install of a server that was served.
func (s *server) servedStage() InstallStage {
	served := s.notedAt(s.rec.Boot.Ticket.IgnitionAt)
	switch {
	case served.IsZero():
		return InstallServed
	case s.confirmed():
		return InstallBooted
	case !s.now().Before(served.Add(s.fleet.in.Policy.BootGrace)):
		return InstallUnreported
	case s.power() == model.PowerOff:
		return InstallPoweredOff
	}
	return InstallInstalling
}

// install brings what the claim asks for onto the server, once.
func (s *server) install() Step {
	boot, missing := s.claimBoot()
	switch s.stage(&boot, missing) {
	case InstallSecretMissing:
		return s.rest(missing)
	case InstallToArm:
		return s.armForClaim(boot)
	case InstallAwaitingOff:
		return s.awaitOff()
	case InstallReady:
		return s.bootForClaim()
	case InstallBooting:
		return s.awaitBoot()
	case InstallWritingDisk:
		return s.awaitDisk()
	case InstallDiskFailed:
		return s.failDisk()
	case InstallUsedEarly, InstallStranded:
		return s.startOver()
	case InstallServed:
		return s.noteServed()
	case InstallInstalling:
		return s.awaitReport()
	case InstallPoweredOff:
		return s.diskBoot()
	case InstallUnreported:
		return s.takeForInstalled()
	case InstallBooted:
		return s.installed()
	case InstallNone:
	}
	return s.rest(proposal.Why{})
}

// armForClaim makes a ticket for what the claim asks for. Attempts at something else do
// not count. The ticket of a server that Ingot gave up on waits for nothing: somebody else
// has to boot it.
func (s *server) armForClaim(boot proposal.Boot) Step {
	p := s.rec.Boot.Problem
	switch {
	case s.rec.Boot.Attempts > 0 && p != nil && (p.Digest != s.digest(&boot) || s.otherTarget(s.rec.Boot.Ticket)):
		rec := s.edit()
		rec.Boot.Attempts, rec.Boot.Problem = 0, nil
		return s.stay()
	case s.givenUp() && proposal.FailedDisk(p):
		return s.leaveOff(p)
	case s.givenUp():
		return s.arm(model.PurposeClaim, boot)
	}
	return s.arm(model.PurposeClaim, s.untilOff(boot))
}

// awaitOff powers the server off, by force if it runs nothing that was served to it, and
// then has its ticket boot it.
func (s *server) awaitOff() Step {
	if s.rec.Boot.Attempts > 0 || s.robbed() {
		return s.confirmOff(s.off(0))
	}
	return s.confirmOff(s.off(s.fleet.in.Policy.PowerOffGrace))
}

// bootForClaim boots the server from the network. A reprovision that is asked for by now
// is part of this install.
func (s *server) bootForClaim() Step {
	if !s.takeInstallPlace() {
		return s.rest(s.installsLimited())
	}
	return s.netBoot(func(rec *model.ServerRecord) {
		proposal.MarkHandled(rec, proposal.AskedReprovision, s.claim.Annotations[model.AnnotationReprovision])
	})
}

// awaitBoot waits for a server to ask for what its ticket offers.
func (s *server) awaitBoot() Step {
	p := s.rec.Boot.Problem
	switch {
	case proposal.FailedBoot(p) && s.givenUp():
		return s.rest(s.problemWhy(p))
	case proposal.FailedBoot(p):
		return s.rest(s.why(model.ReasonWaitingForBoot, fmt.Sprintf("waiting for the server to boot, %s; attempt %d of %d, before it %s",
			s.lastStage(), s.rec.Boot.Attempts+1, s.fleet.in.Policy.BootAttempts, p.Message)))
	}
	return s.rest(s.why(model.ReasonWaitingForBoot, "waiting for the server to boot, "+s.lastStage()))
}

// startOver ends a ticket that came to nothing, and counts no attempt: what used it ran
// already and must not look booted, or nobody was there to answer.
func (s *server) startOver() Step {
	s.end(model.TicketSpent)
	return s.stay()
}

// noteServed records when the server was served.
func (s *server) noteServed() Step {
	t := *s.rec.Boot.Ticket
	t.IgnitionAt = t.ServedAt(s.progress())
	s.edit().Boot.Ticket = &t
	s.noteDisk()
	return s.stay()
}

// awaitReport waits for a server that was served to report that it has booted.
func (s *server) awaitReport() Step {
	st := s.rest(s.why(model.ReasonWaitingForBoot, "waiting for the server to report that it has booted, "+s.lastStage()))
	if due := s.probeGoesOff(); !due.IsZero() {
		st = s.look(due, s.why(model.ReasonWaitingForBoot, s.diskName()+" holds its image: waiting for the probe to power it off, to start it from there"))
	}
	return st.wakeBy(s.notedAt(s.rec.Boot.Ticket.IgnitionAt).Add(s.fleet.in.Policy.BootGrace))
}

// installed ends the ticket as Booted.
func (s *server) installed() Step {
	rec := s.edit()
	st := s.stay()
	if !s.unconfirmed() {
		st = s.takeForInstalled()
	}
	rec.Install.Unconfirmed = time.Time{}
	s.forgetThefts()
	s.end(model.TicketBooted)
	return st
}

// takeForInstalled notes that the server holds what its ticket is for, as far as is known.
// The ticket stays open, for the server may yet report.
func (s *server) takeForInstalled() Step {
	rec := s.edit()
	s.noteInstalled()
	if rec.Boot.OverrideVariant == proposal.VariantContinuous && !rec.Boot.Ticket.Always {
		return s.stay(proposal.ClearBoot{})
	}
	return s.stay()
}

// noteInstalled notes that the server's disk may hold what its ticket served.
func (s *server) noteInstalled() {
	rec := s.edit()
	s.noteDisk()
	rec.Install.Digest, rec.Install.Reprovision, rec.Boot.Attempts, rec.Boot.Problem = rec.Boot.Ticket.Digest, "", 0, nil
	rec.Install.Unconfirmed = s.now()
	s.noteBootsAfter()
}

// servedUnreported reports whether the server was served what its claim asks for, and has not reported since.
func (s *server) servedUnreported() bool {
	t := s.rec.Boot.Ticket
	return s.rec.Install.Digest == "" && s.opened(model.PurposeClaim) && t.Claim == s.rec.Claim.Name && !t.AwaitingOff &&
		t.State(s.progress()) == model.TicketIgnitionServed
}
