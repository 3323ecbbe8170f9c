package install

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

// maxWipeTimes is how many times its timeout a wipe may take in all: a disk that hangs is reported for ever.
const maxWipeTimes = 10

// Window is how long the server may take with its open ticket, and when that is over. It begins again at the
// power-on and at each progress report. A claim's server that was served has BootGrace instead.
func Window(s *server) (length time.Duration, end time.Time) {
	p, t := s.Policy, s.Ticket()
	if !t.Open() {
		return 0, time.Time{}
	}
	from := s.NotedAt(t.ArmedAt)
	if s.Begun() {
		from = s.NotedAt(s.Record.Power.Asked.At)
	}
	switch t.Purpose {
	case model.PurposeDiscovery:
		length = p.DiscoveryTimeout
	case model.PurposeClaim:
		if s.TicketState() == model.TicketIgnitionServed {
			return 0, time.Time{}
		}
		length = p.BootTimeout
		if told := proposal.DiskInstall(s); proposal.ReportedSinceOn(s, told) {
			from, length = s.NotedAt(told.ReportedAt), proposal.InstallSilence
		}
	case model.PurposeCleanup:
		length = p.WipeTimeout(t.CleanupMode)
		if w := s.Trace().Wiping(); w != nil && w.ReceivedAt.After(from) {
			return length, proposal.Earlier(s.NotedAt(w.ReceivedAt).Add(length), from.Add(maxWipeTimes*length))
		}
		if s.Begun() && s.TicketState() != model.TicketIgnitionServed {
			length = min(length, p.BootTimeout) // until its probe runs it may run what it ran before
		}
	}
	if at := proposal.ScriptLost(s); !at.IsZero() {
		from, length = s.NotedAt(at), p.ScriptPatience
	}
	return length, s.OverAt(from, length)
}

// Expire closes a ticket that had no effect in its time, whether or not the server can be reached.
func Expire(s *server) (p proposal.Proposal, ok bool) {
	length, end := Window(s)
	if end.IsZero() || s.Now.Before(end) || s.Trace().Ended() { // what it reported is handled next
		return p, false
	}
	failed := s.Opened(model.PurposeClaim) && !s.Ticket().AwaitingOff && s.Claim != nil && s.Record.Claim.Power != model.PowerOff
	notWiping := s.Opened(model.PurposeCleanup) && s.Begun() && s.TicketState() != model.TicketIgnitionServed && !s.Progress().LockedOut()
	return s.Change(func(rec *model.ServerRecord) {
		if failed {
			bootFailed(s, rec, length)
		}
		if notWiping {
			rec.Boot.Attempts++
		}
		proposal.EndTicket(rec, model.TicketSpent)
	}).Stay(proposal.Note), true
}

func bootFailed(s *server, rec *model.ServerRecord, length time.Duration) {
	switch in := proposal.DiskInstall(s); {
	case proposal.ReportedSinceOn(s, in):
		noteFailedBoot(s, rec, model.ReasonInstallStalled, fmt.Sprintf("its probe has reported nothing for %s, last at %s: %s; look at its "+
			"console and at its link", length, text.Time(in.ReportedAt), progress.Install(s.Ticket().Disk, in)), in.Stage)
	case s.Begun():
		noteFailedBoot(s, rec, model.ReasonBootTimeout, fmt.Sprintf("it did not boot within %s, %s", length, s.BootText()), "")
	case s.InstallsLeft <= 0 && proposal.NeedsInstallPlace(s): // it waits for its turn, and nothing failed
	default:
		noteFailedBoot(s, rec, model.ReasonBootTimeout, fmt.Sprintf("it was not powered on within %s", length), "")
	}
}

// noteFailedBoot notes why a boot for the claim failed, and how far its disk image was written; "" = not at all.
func noteFailedBoot(s *server, rec *model.ServerRecord, reason model.Reason, message string, stage model.DiskInstallStage) {
	t := s.Ticket()
	p := model.BootProblem{
		Digest: t.Digest, Architecture: t.Image.Architecture, Image: t.ImageName(), Reason: reason, Message: message, Since: s.Now,
		Stage: stage,
	}
	if s.Begun() && !s.Progress().LockedOut() {
		rec.Boot.Attempts++
	}
	if old := rec.Boot.Problem; proposal.FailedBoot(old) && old.Digest == p.Digest {
		p.Failures = old.Failures
		if old.Reason == reason {
			p.Since = old.Since
		}
		if !s.Begun() && rec.Boot.Attempts > 0 {
			p.Message = old.Message // of when it was
		}
	}
	p.Failures++
	p.NotBefore = s.Now.Add(bootPause(s, rec.Boot.Attempts, p.Failures))
	rec.Boot.Problem = &p
}

// bootPause is the pause before the next ticket: short while the server is powered on for it, and then growing.
func bootPause(s *server, attempts, failures int) time.Duration {
	if attempts < s.Policy.BootAttempts {
		return policy.Backoff(s.Name, failures, *s.Policy)
	}
	return min(s.Policy.BootTimeout<<min(max(failures-s.Policy.BootAttempts, 0), 16), proposal.MaxBootPause)
}
