package install

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
)

// JustRecovered reports whether the install is unknown, and the requests in Git do not count as handled yet.
func JustRecovered(s *server) bool { return s.InstallUnknown() && s.Record.Doubt.Since.IsZero() }

// NoteUnknown treats the requests in Git as handled: the install that may have been lost may have been theirs.
func NoteUnknown(s *server) (p proposal.Proposal, ok bool) {
	if !JustRecovered(s) {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) {
		for asked, key := range map[string]string{proposal.AskedReprovision: model.AnnotationReprovision, proposal.AskedOverwrite: model.AnnotationOverwrite} {
			if v := s.ClaimAnnotation(key); v != "" {
				proposal.MarkHandled(rec, asked, v)
			}
		}
		rec.Doubt = &model.Doubt{
			Reason: model.DoubtInstallUnknown, Since: s.Now, SeenOn: rec.Doubt.SeenOn,
			Message: "it was bound before the store was lost, and nothing shows whether it was installed since",
		}
	}).Stay(proposal.Note), true
}

// Unknown leaves a server alone that may be installed: it is not served again, and is started from its disk if off.
func Unknown(s *server) (p proposal.Proposal, ok bool) {
	if !servesOn(s) || !s.InstallUnknown() {
		return p, false
	}
	t := s.Ticket()
	switch {
	case bootState(s) != nil:
		return s.Change(func(rec *model.ServerRecord) {
			event.NoteDisk(s, rec)
			rec.Doubt, rec.Install.Digest, rec.Install.Unconfirmed, rec.Boot.Attempts, rec.Boot.Problem = nil, t.Digest, time.Time{}, 0, nil
			proposal.EndTicket(rec, model.TicketBooted)
		}).Stay(proposal.Look), true
	case writingDisk(s) && proposal.DiskInstall(s).ReportedAt.After(s.Record.Doubt.Since):
		// Its probe reports now that it is not installed. A report that is older than the install does not count.
		return s.Change(func(rec *model.ServerRecord) {
			proposal.ChangeTicket(rec, func(t *model.Ticket) { t.IgnitionAt = time.Time{} })
			rec.Doubt = nil
		}).Stay(proposal.Look), true
	case s.Power() == model.PowerOff && !s.IsOff():
		return s.Watch(s.Reading.At.Add(s.Policy.ConfirmEvery), UnknownWhy(s)), true
	case s.Power() == model.PowerOff && neverOn(s) && t.Open() && t.Disk != nil && t.IgnitionAt.IsZero() && !t.AwaitingOff:
		// The probe refuses a disk with content, so it may be booted for its install after all.
		return s.Change(func(rec *model.ServerRecord) { rec.Doubt = nil }).Stay(proposal.Look), true
	}
	return leave(s), true
}

// leave has nothing more served with an open ticket, unless that is armed for a reprovision and waits for
// its turn. The server that used it may still report, and runs what is on its disk if it was on before.
func leave(s *server) proposal.Proposal {
	t := s.Ticket()
	served := t.Open() && (s.Record.Install.Reprovision == "" || !s.AwaitsOff(model.PurposeClaim))
	switch {
	case served && t.AwaitingOff:
		return startOver(s)
	case served && t.IgnitionAt.IsZero():
		return s.Change(func(rec *model.ServerRecord) {
			proposal.ChangeTicket(rec, func(t *model.Ticket) { t.IgnitionAt = s.Now })
		}).Stay(proposal.Look)
	case s.Power() == model.PowerOff && !neverOn(s):
		return s.ToOn(proposal.Keep, proposal.FromDisk, nil)
	case s.Power() == model.PowerOn && neverOn(s):
		return s.Change(func(rec *model.ServerRecord) {
			rec.Doubt = proposal.Changed(rec.Doubt, func(d *model.Doubt) { d.SeenOn = true })
		}).Stay(proposal.Look)
	}
	return s.Rest(UnknownWhy(s))
}

// neverOn reports whether a server whose install is unknown was never seen on: its disk may be empty.
func neverOn(s *server) bool { return !s.HasInstall() && !s.Record.Doubt.SeenOn }

// UnknownWhy says that it is not known whether the server was installed.
func UnknownWhy(s *server) proposal.Why {
	d := s.Record.Doubt
	return proposal.Why{Reason: string(model.DoubtInstallUnknown), Message: fmt.Sprintf("%s: it is left to what is on its disk. If that is not what claim %s "+
		"asks for, give the claim a new value of annotation %s, or Server %s annotation %s: %s",
		d.Message, s.Record.Claim.Name, model.AnnotationReprovision, s.Name, model.AnnotationOperation,
		proposal.NewOperation(s, model.OperationRetry)), Since: d.Since, Actor: proposal.RackOperator}
}
