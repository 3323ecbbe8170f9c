package plan

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// arm makes a new boot ticket, unless something is known that speaks against what it
// is to boot.
func (s *server) arm(purpose model.TicketPurpose, b proposal.Boot) Step {
	s.complete(purpose, &b)
	if why, until := s.trouble(b); why.Reason != "" {
		return s.rest(why).wakeBy(until)
	}
	st := s.stay(proposal.Arm{Boot: b})
	if p := s.rec.Boot.Problem; proposal.Concerns(p, &b) {
		st.Why = s.problemWhy(p) // until it is known to be mended
	}
	return st
}

// complete fills in the ticket and whatever the boot depends on.
func (s *server) complete(purpose model.TicketPurpose, b *proposal.Boot) {
	arch := s.architecture()
	b.Architecture = arch.Name
	b.Needs = s.needs(b)
	b.SecureBoot = s.facts.Inventory != nil && s.facts.Inventory.SecureBoot
	t := &b.Ticket
	t.ID = fmt.Sprintf("%s.%d.%d", s.name, s.rec.Boot.Serial+1, s.now().UnixNano())
	t.Server, t.UUID, t.Purpose, t.Claim = s.name, s.rec.UUID, purpose, s.rec.Claim.Name
	t.Digest, t.Config = s.digest(b), b.Config()
	t.ArmedAt, t.ArchitectureBy = s.now(), arch.By
}

// untilOff is a boot whose ticket lets nothing boot before the server was seen to be
// off, unless it is known to be off already, and before the status branch shows what it is for:
// anybody may press the machine's button.
func (s *server) untilOff(b proposal.Boot) proposal.Boot {
	b.Ticket.AwaitingOff = s.power() != model.PowerOff || s.reading.Offs < s.fleet.in.Policy.OffReadings || s.unannounced().Reason != ""
	return b
}

// confirmOff lets what replaces the server's system be booted, once that is off and the status
// branch shows it. That stands on record before the server is powered on again.
func (s *server) confirmOff(st Step, off bool) Step {
	if !off {
		return st
	}
	if why := s.unannounced(); why.Reason != "" {
		return s.rest(why)
	}
	t := *s.rec.Boot.Ticket
	t.AwaitingOff = false
	s.edit().Boot.Ticket = &t
	return s.stay()
}

// opened reports whether an open ticket of this purpose is there.
func (s *server) opened(purpose model.TicketPurpose) bool {
	return s.rec.Boot.Ticket.Open() && s.rec.Boot.Ticket.Purpose == purpose
}

// awaitsOff reports whether an open ticket of this purpose waits for the server to be off.
func (s *server) awaitsOff(purpose model.TicketPurpose) bool {
	return s.opened(purpose) && s.rec.Boot.Ticket.AwaitingOff
}

// revoke closes the ticket for good.
func (s *server) revoke() {
	s.end(model.TicketSpent)
	if s.rec.Boot.Ticket != nil && s.rec.Boot.Ticket.Always {
		t := *s.rec.Boot.Ticket
		t.Always = false
		s.edit().Boot.Ticket = &t
	}
}

// forOnce has a ticket that boots always boot only once, as soon as its claim asks for that:
// what the server has on its disk is not to be overwritten by its next boot (law 1).
// That needs no BMC.
func (s *server) forOnce() (Step, bool) {
	t := s.rec.Boot.Ticket
	if t == nil || !t.Always || t.Purpose != model.PurposeClaim || s.rec.Life.State != model.StateReserved ||
		s.fleet.observeOnly.Reason != "" || s.claim == nil || t.Claim != s.rec.Claim.Name || s.claim.Annotations[model.AnnotationBoot] == "always" {
		return Step{}, false
	}
	once := *t
	once.Always = false
	s.edit().Boot.Ticket = &once
	return s.stay(), true
}

// followBootedBy has the open ticket say what the claim counts as Booted by. From then on
// what was served may keep the server from being booted from the network again.
func (s *server) followBootedBy() (Step, bool) {
	if !s.opened(model.PurposeClaim) || s.rec.Life.State != model.StateReserved || s.fleet.observeOnly.Reason != "" ||
		s.claim == nil || s.rec.Boot.Ticket.Claim != s.rec.Claim.Name || s.rec.Boot.Ticket.BootedBy == s.bootedBy() {
		return Step{}, false
	}
	t := *s.rec.Boot.Ticket
	t.BootedBy = s.bootedBy()
	s.edit().Boot.Ticket = &t
	return s.stay(), true
}

// end closes the ticket.
func (s *server) end(as model.TicketState) {
	if s.rec.Boot.Ticket.Open() {
		t := *s.rec.Boot.Ticket
		t.Ended = as
		s.edit().Boot.Ticket = &t
	}
}
