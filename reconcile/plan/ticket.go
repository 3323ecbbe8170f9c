package plan

import (
	"fmt"
	"time"

	"ingot/model"
)

// wipeMost is how many times its timeout a wipe may take in all while word of it
// keeps coming: of a disk that hangs, the probe says for ever that it is being wiped.
const wipeMost = 10

// arm makes a new boot ticket, unless something is known that speaks against what it
// is to boot.
func (s *server) arm(purpose model.TicketPurpose, b Boot) Step {
	s.complete(purpose, &b)
	if why, until := s.trouble(b); why.Reason != "" {
		return s.rest(why).wakeBy(until)
	}
	st := s.stay(Arm{b})
	if p := s.rec.BootProblem; concerns(p, &b) {
		st.Why = s.problemWhy(p) // until it is known to be mended
	}
	return st
}

// complete fills in the ticket and whatever the boot depends on.
func (s *server) complete(purpose model.TicketPurpose, b *Boot) {
	arch := s.architecture()
	b.Architecture = arch.Name
	b.Needs = s.needs(b)
	t := &b.Ticket
	t.ID = fmt.Sprintf("%s.%d.%d", s.name, s.rec.Serial+1, s.now().UnixNano())
	t.Server, t.UUID, t.Purpose, t.Claim = s.name, s.rec.UUID, purpose, s.rec.Claim
	t.Digest, t.Config = s.digest(b), b.config()
	t.ArmedAt, t.ArchitectureBy = s.now(), arch.By
}

// config is what configures the machine where that is not Ignition.
func (b *Boot) config() model.TicketThing {
	switch {
	case !b.Secret["user-data"].IsZero():
		return model.ThingCloudInit
	case b.ownScript() && b.Secret["ignition"].IsZero():
		return model.ThingScript
	}
	return ""
}

// ownScript reports whether the claim brings an iPXE script in place of Ingot's.
func (b *Boot) ownScript() bool { return !b.Secret["ipxe-script"].IsZero() }

// held is a boot whose ticket lets nothing boot before the server was seen to be
// off, unless it is known to be off already.
func (s *server) held(b Boot) Boot {
	b.Ticket.AwaitingOff = s.power() != model.PowerOff || s.reading.Offs < s.fleet.in.Policy.OffReadings
	return b
}

// letBoot lets what replaces the server's system be booted, once that is off. That
// stands on record before the server is powered on again.
func (s *server) letBoot(st Step, off bool) Step {
	if !off {
		return st
	}
	t := *s.rec.Ticket
	t.AwaitingOff = false
	s.edit().Ticket = &t
	return s.stay()
}

// opened reports whether an open ticket of this purpose is there.
func (s *server) opened(purpose model.TicketPurpose) bool {
	return s.rec.Ticket.Open() && s.rec.Ticket.Purpose == purpose
}

// holds reports whether an open ticket of this purpose waits for the server to be off.
func (s *server) holds(purpose model.TicketPurpose) bool {
	return s.opened(purpose) && s.rec.Ticket.AwaitingOff
}

// revoke closes the ticket for good.
func (s *server) revoke() {
	s.end(model.TicketSpent)
	if s.rec.Ticket != nil && s.rec.Ticket.Always {
		t := *s.rec.Ticket
		t.Always = false
		s.edit().Ticket = &t
	}
}

// forOnce takes from the ticket that it boots always, once the claim says so no more:
// what the server has on its disk is not to be overwritten by its next boot (law 1).
// That needs no BMC.
func (s *server) forOnce() (Step, bool) {
	t := s.rec.Ticket
	if t == nil || !t.Always || t.Purpose != model.PurposeClaim || s.rec.State != model.StateReserved || s.doubted() ||
		s.fleet.observeOnly.Reason != "" || s.claim == nil || t.Claim != s.rec.Claim || s.claim.Annotations[model.AnnotationBoot] == "always" {
		return Step{}, false
	}
	once := *t
	once.Always = false
	s.edit().Ticket = &once
	return s.stay(), true
}

// followBootedBy has the open ticket say what the claim counts as Booted by. From then on
// what was served may keep the server from being booted from the network again.
func (s *server) followBootedBy() (Step, bool) {
	if !s.opened(model.PurposeClaim) || s.rec.State != model.StateReserved || s.doubted() || s.fleet.observeOnly.Reason != "" ||
		s.claim == nil || s.rec.Ticket.Claim != s.rec.Claim || s.rec.Ticket.BootedBy == s.bootedBy() {
		return Step{}, false
	}
	t := *s.rec.Ticket
	t.BootedBy = s.bootedBy()
	s.edit().Ticket = &t
	return s.stay(), true
}

// end closes the ticket.
func (s *server) end(as model.TicketState) {
	if s.rec.Ticket.Open() {
		t := *s.rec.Ticket
		t.Ended = as
		s.edit().Ticket = &t
	}
}

// begun reports whether the server was powered on with its newest ticket.
func (s *server) begun() bool {
	asked, t := s.rec.Asked, s.rec.Ticket
	return t != nil && asked != nil && asked.Want == model.PowerOn && !asked.At.Before(t.ArmedAt)
}

// window is how long the server may take with its open ticket, and when that is
// over. The time runs anew from the power-on, and from each word of a wipe. There is
// none once a claim's server may be installed, for then it is BootGrace that counts.
func (s *server) window() (length time.Duration, end time.Time) {
	p, t := s.fleet.in.Policy, s.rec.Ticket
	if !t.Open() {
		return 0, time.Time{}
	}
	from := t.ArmedAt
	if s.begun() {
		from = s.rec.Asked.At
	}
	switch t.Purpose {
	case model.PurposeDiscovery:
		length = p.DiscoveryTimeout
	case model.PurposeClaim:
		if t.State(s.progress()) == model.TicketIgnitionServed {
			return 0, time.Time{}
		}
		length = p.BootTimeout
	case model.PurposeCleanup:
		length = p.cleanupTimeout(t.CleanupMode)
		if w := s.trace().Wiping(); w != nil && w.ReceivedAt.After(from) {
			return length, earliest(w.ReceivedAt.Add(length), from.Add(wipeMost*length))
		}
	}
	end = from.Add(length)
	if start := s.fleet.in.Started.Add(s.fleet.in.Policy.StartGrace); from.Before(s.fleet.in.Started) && end.Before(start) {
		end = start // it was noted by a clock that may have been another
	}
	return length, end
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// expire closes a ticket that came to nothing in its time, whether or not the
// server can be reached: nothing is open for longer than it is of use.
func (s *server) expire() (Step, bool) {
	length, end := s.window()
	switch {
	case end.IsZero() || s.now().Before(end) || s.fleet.observeOnly.Reason != "" || s.doubted():
		return Step{}, false
	case s.trace().Ended():
		return Step{}, false // it is seen to next
	case s.opened(model.PurposeClaim) && !s.rec.Ticket.AwaitingOff && s.claim != nil && s.rec.WantPower != model.PowerOff:
		s.bootFailed(length)
	}
	s.end(model.TicketSpent)
	return s.stay(), true
}

// bootFailed notes that nothing came of a boot for the claim in its time.
func (s *server) bootFailed(length time.Duration) {
	t, rec := s.rec.Ticket, s.edit()
	p := model.BootProblem{
		Digest: t.Digest, Architecture: t.Image.Architecture, Image: t.Image.Ref, Reason: model.ReasonBootTimeout, Since: s.now(),
		Message: fmt.Sprintf("it was not powered on within %s", length),
	}
	if s.begun() {
		if !s.progress().LockedOut() {
			rec.Attempts++
		}
		p.Message = fmt.Sprintf("it did not boot within %s, %s; %s", length, s.lastStage(), s.hint())
	}
	if old := rec.BootProblem; FailedBoot(old) && old.Digest == p.Digest {
		p.Since, p.Failures = old.Since, old.Failures
		if !s.begun() && rec.Attempts > 0 {
			p.Message = old.Message // of when it was
		}
	}
	p.Failures++
	p.NotBefore = s.now().Add(s.bootPause(p.Failures))
	rec.BootProblem = &p
}

// bootPauseMost is the longest pause between the tickets of a server that does not boot.
const bootPauseMost = 6 * time.Hour

// bootPause is how long to wait with the next ticket after so many that came to
// nothing: short while the server is powered on for it, and then ever longer.
func (s *server) bootPause(failures int) time.Duration {
	if !s.givenUp() {
		return Backoff(s.name, failures, s.fleet.in.Policy)
	}
	d := s.fleet.in.Policy.BootTimeout
	for i := s.fleet.in.Policy.BootAttempts; i < failures && d < bootPauseMost; i++ {
		d *= 2
	}
	return min(d, bootPauseMost)
}

// givenUp reports whether the server was powered on for its claim as often as is
// tried. It is served when somebody else has it boot, and left as it is by Ingot.
func (s *server) givenUp() bool { return s.rec.Attempts >= s.fleet.in.Policy.BootAttempts }
