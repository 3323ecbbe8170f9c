// Package boot makes the boot tickets of servers, and decides where they boot from. It owns that part of a record.
package boot

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

// Before are the actions that come before the request that powers a server on for a goal.
func Before(s *server, g *proposal.Goal) []proposal.Action {
	var do []proposal.Action
	switch g.From {
	case proposal.FromNetwork:
		do = append(do, proposal.BootOnce{Method: method(s)})
	case proposal.FromDisk:
		if g.Reset == "" && s.Record.Boot.OverrideVariant == proposal.VariantContinuous {
			do = append(do, proposal.ClearBoot{})
		}
		if no := s.Record.Boot.NoDiskBoot; no == nil || no.Firmware != s.BMC.Firmware { // else the BMC has no such boot
			do = append(do, proposal.DiskOnce{Firmware: s.BMC.Firmware})
		}
	case proposal.FromAnywhere:
	}
	return do
}

// Arm makes the ticket that a proposal asks for, or says what prevents the boot.
func Arm(p proposal.Proposal) (armed proposal.Proposal, why proposal.Why) {
	s, b := p.Of, *p.Arm
	complete(s, &b)
	if why = trouble(s, b); why.Reason != "" {
		return p, why
	}
	p.Do, p.Arm = []proposal.Action{proposal.Arm{Boot: b}}, nil
	if problem := s.Record.Boot.Problem; proposal.Concerns(problem, &b) {
		p.Why = proposal.ProblemWhy(s, problem) // until it is known to be corrected
	}
	return p, why
}

// Trouble says why the server cannot be armed for a claim's boot now.
func Trouble(s *server, b proposal.Boot) proposal.Why {
	b.Ticket.Purpose = model.PurposeClaim
	complete(s, &b)
	why := trouble(s, b)
	why.Until = time.Time{} // which the plan notes where it arms
	return why
}

// complete fills in the ticket and whatever the boot depends on.
func complete(s *server, b *proposal.Boot) {
	arch := proposal.ArchitectureOf(s)
	b.Architecture = arch.Name
	b.Needs = needs(s, b)
	b.SecureBoot = s.Facts.Inventory != nil && s.Facts.Inventory.SecureBoot
	t := &b.Ticket
	t.ID = fmt.Sprintf("%s.%d.%d", s.Name, s.Record.Boot.Serial+1, s.Now.UnixNano())
	t.Server, t.UUID, t.Claim = s.Name, s.Record.UUID, s.Record.Claim.Name
	t.Digest, t.Config = booting.Digest(s.DigestKey, b), b.Config()
	t.ArmedAt, t.ArchitectureBy, t.SSHKeys = s.Now, arch.By, model.SSHKeysSum(b.SSHKeys)
}

func trouble(s *server, b proposal.Boot) (why proposal.Why) {
	p := s.Record.Boot.Problem
	if why = s.Duplicate; why.Reason != "" || !proposal.Concerns(p, &b) {
		return why
	}
	until := s.PauseEnd(p.NotBefore, proposal.MaxBootPause)
	if p.Reason == model.ReasonImagePreparing {
		until = s.Reading.PreparedAfter
	}
	if s.Now.Before(until) {
		why = proposal.ProblemWhy(s, p)
		why.Until = until
	}
	return why
}

// Unarmed is why the server cannot be armed for its next boot, the zero Why if nothing prevents it.
func Unarmed(s *server) proposal.Why {
	if p := s.Record.Boot.Problem; p != nil && !proposal.FailedBoot(p) {
		return proposal.ProblemWhy(s, p)
	}
	return proposal.Why{}
}

// ForOnce has a ticket that boots always boot only once, as soon as its claim asks for that (law 1).
func ForOnce(s *server) (p proposal.Proposal, ok bool) {
	t := s.Ticket()
	if t == nil || !t.Always || t.Purpose != model.PurposeClaim || !servesClaimOf(s) || s.ClaimAnnotation(model.AnnotationBoot) == "always" {
		return p, false
	}
	return noteTicket(s, func(t *model.Ticket) { t.Always = false }).As(proposal.StepBoot), true
}

// FollowBootedBy has the open ticket say what the claim counts as Booted by. Once that was served the ticket boots nothing.
func FollowBootedBy(s *server) (p proposal.Proposal, ok bool) {
	by := s.ClaimAnnotation(model.AnnotationBooted)
	if !s.Opened(model.PurposeClaim) || !servesClaimOf(s) || s.Ticket().BootedBy == by {
		return p, false
	}
	return noteTicket(s, func(t *model.Ticket) { t.BootedBy = by }), true
}

func servesClaimOf(s *server) bool {
	return s.State() == model.StateReserved && s.Claim != nil && s.Ticket().Claim == s.Record.Claim.Name
}

func noteTicket(s *server, change func(*model.Ticket)) proposal.Proposal {
	return s.Change(func(rec *model.ServerRecord) { proposal.ChangeTicket(rec, change) }).Stay(proposal.Note)
}

// Disarm closes a ticket with which another machine of the same UUID could be booted.
func Disarm(s *server) (p proposal.Proposal, ok bool) {
	state := s.TicketState()
	if s.Duplicate.Reason == "" || !s.Ticket().Open() || s.Trace().Ended() || state != model.TicketArmed && state != model.TicketScriptServed {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) { proposal.EndTicket(rec, model.TicketSpent) }).Stay(proposal.Note), true
}

// method is how the server boots from the network: by PXE, unless UEFI HTTP boot is all that its BMC has.
func method(s *server) model.BootMethod {
	has := func(m model.BootMethod) bool { return slices.Contains(s.Facts.Inventory.BootTargets, string(m)) }
	if s.Facts.Inventory != nil && has(model.BootUEFIHTTP) && !has(model.BootPXE) {
		return model.BootUEFIHTTP
	}
	return model.BootPXE
}

// needs is what the image must have for the server to start it, as far as is known now.
func needs(s *server, b *proposal.Boot) (n proposal.Needs) {
	loaders := s.Policy.LoaderArchitectures
	if method(s) == model.BootUEFIHTTP && loaders != nil && !slices.Contains(loaders, b.Architecture) {
		n.UKI = fmt.Sprintf("the server boots from the network by UEFI HTTP boot alone, for which boot.loaderDirs has no iPXE of %s that could start a kernel", b.Architecture)
	}
	if f := proposal.Firmware(s); f != nil && !f.UEFI && !b.OwnScript() {
		n.Kernel = "the server's firmware is BIOS, by its DHCP request, and starts no UKI; switch it to UEFI, or add kernel and initramfs"
	}
	return n
}
