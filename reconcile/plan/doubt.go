package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// doubted reports whether the server's record may not be what was decided last, so
// that nothing may be decided by it.
func (s *server) doubted() bool {
	d := s.rec.Doubt
	return d != nil && d.Reason != model.DoubtInstallUnknown
}

// Disputed reports whether copies of a record disagree on what is to be done.
func Disputed(r *model.ServerRecord) bool {
	return r.Doubt != nil && r.Doubt.Reason == model.DoubtDisputed
}

// installUnknown reports whether it is not known if a bound server was installed.
func installUnknown(rec *model.ServerRecord) bool {
	return rec.Doubt != nil && rec.Doubt.Reason == model.DoubtInstallUnknown
}

// doubt is the step of a server whose record may not be what was decided last: the
// status branch may lag behind what the lost store knew, so a server that runs though
// it should be off may run a tenant's system, and is left alone.
func (s *server) doubt() (Step, bool) {
	d := s.rec.Doubt
	switch {
	case !s.doubted():
		return Step{}, false
	case d.Reason == model.DoubtDisputed:
		return s.disputed(), true
	case d.Reason != model.DoubtFromStatusBranch:
		return s.rest(s.whySince(string(d.Reason), d.Message, RackOperator)), true
	case s.fleet.in.BMCRead[s.rec.BMC].IsZero():
		return s.rest(Why{string(d.Reason), "its record was read back from the status branch; waiting for its BMC to " +
			"show it", d.Since, RackOperator}), true
	case s.mayBeInstalled():
		return s.doubtInstall(), true // also of one that is to come back to that
	}
	if st, ok := s.doubtOff(); ok {
		return st, true
	}
	return s.trust(), true
}

// mayBeInstalled reports whether a server whose record was read back may have been installed
// meanwhile for the claim that it is bound to, or was before it was kept as it is.
func (s *server) mayBeInstalled() bool {
	settled := s.rec.Settled()
	return (settled == model.StateReserved || settled == model.StateReleased) && (s.rec.Installed == "" || s.rec.Reprovision != "")
}

// doubtOff is the step of a server that should be off by its record, until it certainly
// is, or runs what is Ingot's own.
func (s *server) doubtOff() (Step, bool) {
	switch s.rec.State {
	case model.StateInitial, model.StateDiscovery, model.StateAvailable, model.StateCleanup:
	default:
		return Step{}, false
	}
	p, r, off := s.fleet.in.Policy, s.reading, s.power() == model.PowerOff
	switch {
	case !off && !s.reports() && !s.discoverAsked():
		return s.rest(s.foundRunning()), true
	case off && (r.OffSince.IsZero() || s.now().Before(r.OffSince.Add(p.TrustedOff))):
		due := r.At.Add(p.ConfirmEvery)
		if r.Offs >= p.OffReadings {
			due = r.At.Add(p.TrustedOff / 10)
		}
		d := s.rec.Doubt
		return s.look(due, Why{string(d.Reason), "its record was read back from the status branch; making sure that it is " +
			"off", d.Since, ActorNone}), true
	}
	return Step{}, false
}

// reports reports whether what the server runs has reported with its open ticket, so
// that it is Ingot's own.
func (s *server) reports() bool { return s.probeReport() != nil || s.wipeReport() != nil }

// trust has the record count again.
func (s *server) trust() Step {
	rec := s.edit()
	if rec.Doubt.Unannounced {
		s.handleAll()
	}
	rec.Doubt = nil
	handle(rec, AskedDiscover, s.annotation(model.AnnotationDiscover))
	return s.stay()
}

// handleAll notes what stands in Git as handled: where it may have been done before the
// status branch said so, it is not done again.
func (s *server) handleAll() {
	if name, value := s.requested(); resets[name] != "" {
		handle(s.edit(), AskedOperation, value)
	}
	s.handleInstall()
}

// handleInstall is handleAll for what asks for an install.
func (s *server) handleInstall() {
	if s.claim == nil {
		return
	}
	rec := s.edit()
	if v := s.claim.Annotations[model.AnnotationReprovision]; v != "" {
		handle(rec, AskedReprovision, v)
	}
	if v := s.claim.Annotations[model.AnnotationOverwrite]; v != "" {
		handle(rec, AskedOverwrite, v)
	}
}

// doubtInstall is the step of a server whose binding was shown, and of which nothing
// shows that it was installed: it may have been meanwhile.
func (s *server) doubtInstall() Step {
	rec := s.edit()
	if rec.Doubt.Unannounced {
		s.handleAll()
	} else {
		s.handleInstall() // it may be what was installed: only another value asks for more
	}
	rec.Reprovision = "" // likewise
	rec.Doubt = &model.Doubt{
		Reason: model.DoubtInstallUnknown, Since: s.now(),
		Message: "it was bound before the store was lost, and nothing shows whether it was installed since",
	}
	return s.stay()
}

// awaitInstall leaves a server alone that may be installed or not: it is neither served
// its boot again nor powered off, and starts from its disk when it is off.
func (s *server) awaitInstall() Step {
	switch {
	case s.reportedBooted():
		rec := s.edit()
		s.noteDisk()
		rec.Doubt, rec.Installed, rec.Unconfirmed, rec.Attempts, rec.BootProblem = nil, rec.Ticket.Digest, time.Time{}, 0, nil
		s.end(model.TicketBooted)
		return s.stay()
	case s.rec.Ticket.Open() && s.rec.Ticket.AwaitingOff:
		s.end(model.TicketSpent)
		return s.stay()
	case s.writingDisk() && s.diskInstall().ReportedAt.After(s.rec.Doubt.Since):
		// Its probe says so now that it is not installed. What a store that is older than the
		// install has of an earlier report says nothing.
		t := *s.rec.Ticket
		t.IgnitionAt = time.Time{}
		rec := s.edit()
		rec.Ticket, rec.Doubt = &t, nil
		return s.stay()
	case s.rec.Ticket.Open() && s.rec.Ticket.IgnitionAt.IsZero():
		// Nothing more is served with it, but what took it may still report.
		t := *s.rec.Ticket
		t.IgnitionAt = s.now()
		s.edit().Ticket = &t
		return s.stay()
	case s.power() == model.PowerOff:
		return s.heals(s.diskBoot)
	}
	return s.rest(s.installUnknownWhy())
}

// installUnknownWhy says that it is not known whether the server was installed.
func (s *server) installUnknownWhy() Why {
	d := s.rec.Doubt
	return Why{string(model.DoubtInstallUnknown), fmt.Sprintf("%s: it is left to what is on its disk. If that is not what claim %s "+
		"asks for, give the claim a new value of annotation %s, or Server %s annotation %s: %s",
		d.Message, s.rec.Claim, model.AnnotationReprovision, s.name, model.AnnotationOperation, s.newRetry()), d.Since, RackOperator}
}

// disputed waits until a commit chooses between the copies of the record.
func (s *server) disputed() Step {
	d := s.rec.Doubt
	for _, a := range d.Alternatives {
		if slices.Contains(s.fleet.in.Desired.Approvals, a.Token) {
			return s.choose(a)
		}
	}
	lines := make([]string, len(d.Alternatives))
	for i, a := range d.Alternatives {
		what := string(a.State)
		if a.Claim != "" {
			what += " for " + string(a.Claim)
		}
		lines[i] = fmt.Sprintf("%s (%s): Ingot-Approve: %s", what, a.From, a.Token)
	}
	return s.rest(Why{string(d.Reason), d.Message + "; choose by a commit whose message ends with one of " + strings.Join(lines,
		", "), d.Since, RackOperator})
}

// choose follows one copy. What the machine runs is not known, so it is treated as
// one that was read back from the status branch.
func (s *server) choose(a model.Alternative) Step {
	rec := s.edit()
	if rec.Claim != a.Claim {
		rec.RootDisk = nil
		rec.Installed, rec.Unconfirmed, rec.Reprovision, rec.WantPower, rec.Release = "", time.Time{}, "", "", nil
	}
	if a.Claim != "" && rec.Claim != a.Claim {
		rec.ClaimCleanup = "" // as its claim says; without one, as was last asked for
	}
	rec.Tenant = "" // as its claim says
	rec.Claim, rec.Doubt = a.Claim, &model.Doubt{Reason: model.DoubtFromStatusBranch, Since: s.now()}
	s.end(model.TicketSpent)
	return s.enter(a.State)
}
