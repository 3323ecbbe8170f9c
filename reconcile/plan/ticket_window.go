package plan

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// begun reports whether the server was powered on with its newest ticket. A power-on of the future,
// which a clock that was ahead noted, is older than a ticket of now.
func (s *server) begun() bool {
	asked, t := s.rec.Power.Asked, s.rec.Boot.Ticket
	if t == nil || asked == nil || asked.Want != model.PowerOn || asked.At.Before(t.ArmedAt) {
		return false
	}
	return !asked.At.After(s.now()) || t.ArmedAt.After(s.now())
}

// maxWipeTimes is how many times its timeout a wipe may take in all while it reports
// progress: the probe reports for ever that a disk that hangs is being wiped.
const maxWipeTimes = 10

// window is how long the server may take with its open ticket, and when that is
// over. The time runs anew from the power-on, and from each progress report of a wipe. There is
// none once a claim's server may be installed, for then it is BootGrace that counts.
func (s *server) window() (length time.Duration, end time.Time) {
	p, t := s.fleet.in.Policy, s.rec.Boot.Ticket
	if !t.Open() {
		return 0, time.Time{}
	}
	from := s.notedAt(t.ArmedAt)
	if s.begun() {
		from = s.notedAt(s.rec.Power.Asked.At)
	}
	switch t.Purpose {
	case model.PurposeDiscovery:
		length = p.DiscoveryTimeout
	case model.PurposeClaim:
		if t.State(s.progress()) == model.TicketIgnitionServed {
			return 0, time.Time{}
		}
		length = p.BootTimeout
		if told := s.diskInstall(); s.toldSinceOn(told) {
			from, length = s.notedAt(told.ReportedAt), installSilence
		}
	case model.PurposeCleanup:
		length = p.WipeTimeout(t.CleanupMode)
		if w := s.trace().Wiping(); w != nil && w.ReceivedAt.After(from) {
			return length, proposal.Earliest(s.notedAt(w.ReceivedAt).Add(length), from.Add(maxWipeTimes*length))
		}
	}
	end = from.Add(length)
	if start := s.fleet.in.Started.Add(s.fleet.in.Policy.StartGrace); from.Before(s.fleet.in.Started) && end.Before(start) {
		end = start // it was noted by a clock that may have been another
	}
	return length, end
}

// expire closes a ticket that came to nothing in its time, whether or not the
// server can be reached: nothing is open for longer than it is of use.
func (s *server) expire() (Step, bool) {
	length, end := s.window()
	switch {
	case end.IsZero() || s.now().Before(end) || s.fleet.observeOnly.Reason != "":
		return Step{}, false
	case s.trace().Ended():
		return Step{}, false // what it reported is judged next
	case s.opened(model.PurposeClaim) && !s.rec.Boot.Ticket.AwaitingOff && s.claim != nil && s.rec.Claim.Power != model.PowerOff:
		s.bootFailed(length)
	}
	s.end(model.TicketSpent)
	return s.stay(), true
}

// bootFailed notes that nothing came of a boot for the claim in its time.
func (s *server) bootFailed(length time.Duration) {
	switch in := s.diskInstall(); {
	case s.toldSinceOn(in):
		s.noteFailedBoot(model.ReasonInstallStalled, s.stalledText(length), in.Stage)
	case s.begun():
		s.noteFailedBoot(model.ReasonBootTimeout, fmt.Sprintf("it did not boot within %s, %s; %s", length, s.lastStage(), s.hint()), "")
	case !s.mayInstall(): // it waits for its turn, and nothing failed
	default:
		s.noteFailedBoot(model.ReasonBootTimeout, fmt.Sprintf("it was not powered on within %s", length), "")
	}
}

// noteFailedBoot notes why a boot for the claim came to nothing, and how far the writing of
// its disk image had come, "" if it had not begun.
func (s *server) noteFailedBoot(reason model.Reason, message string, stage model.DiskInstallStage) {
	t, rec := s.rec.Boot.Ticket, s.edit()
	p := model.BootProblem{
		Digest: t.Digest, Architecture: t.Image.Architecture, Image: t.ImageName(), Reason: reason, Message: message, Since: s.now(),
		Stage: stage,
	}
	if s.begun() && !s.progress().LockedOut() {
		rec.Boot.Attempts++
	}
	if old := rec.Boot.Problem; proposal.FailedBoot(old) && old.Digest == p.Digest {
		p.Failures = old.Failures
		if old.Reason == reason {
			p.Since = old.Since
		}
		if !s.begun() && rec.Boot.Attempts > 0 {
			p.Message = old.Message // of when it was
		}
	}
	p.Failures++
	p.NotBefore = s.now().Add(s.bootPause(p.Failures))
	rec.Boot.Problem = &p
}

// bootPause is how long to wait with the next ticket after so many that came to
// nothing: short while the server is powered on for it, and then ever longer.
func (s *server) bootPause(failures int) time.Duration {
	if !s.givenUp() {
		return proposal.Backoff(s.name, failures, s.fleet.in.Policy)
	}
	d := s.fleet.in.Policy.BootTimeout
	for i := s.fleet.in.Policy.BootAttempts; i < failures && d < proposal.MaxBootPause; i++ {
		d *= 2
	}
	return min(d, proposal.MaxBootPause)
}

// givenUp reports whether the server was powered on for its claim as often as is
// tried. It is served when somebody else has it boot, and left as it is by Ingot.
func (s *server) givenUp() bool { return s.rec.Boot.Attempts >= s.fleet.in.Policy.BootAttempts }
