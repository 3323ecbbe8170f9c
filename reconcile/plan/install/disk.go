package install

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

// A probe that has written its image powers its machine off. Its power is read at these times.
const (
	probeOffLimit = 2 * time.Minute
	probeOffFirst = 2 * time.Second
	probeOffEvery = 5 * time.Second
)

// PreparedEvery is the pause between the checks whether a disk image is prepared.
const PreparedEvery = 10 * time.Second

// writingDisk reports whether the server's probe runs, and has reported neither success nor failure since.
func writingDisk(s *server) bool {
	in := proposal.DiskInstall(s)
	return proposal.ReportedSinceOn(s, in) && !in.Verified() && in.Reason == "" && !s.Ticket().AwaitingOff && s.Power() == model.PowerOn
}

// diskFailed reports whether the probe failed, or the server started again or went off as often as is tried.
func diskFailed(s *server) bool {
	in := proposal.DiskInstall(s)
	if in == nil || in.Verified() || s.Ticket().AwaitingOff {
		return false
	}
	boots := max(s.Progress().Boots, in.Begun)
	if s.Power() == model.PowerOff && !s.Settling() {
		boots++
	}
	return in.Reason != "" || boots >= s.Policy.BootAttempts
}

func failDisk(s *server) proposal.Proposal {
	in := proposal.DiskInstall(s)
	reason, message := in.Reason, in.Message
	switch {
	case reason == "":
		reason = model.ReasonInstallFailed
		message = fmt.Sprintf("the server went off, or started again, %d times before its image was on the disk", s.Policy.BootAttempts)
	case !slices.Contains(model.Reasons, reason):
		reason, message = model.ReasonInstallFailed, reason+": "+message
	}
	lost := []model.Reason{model.ReasonRootDeviceGone, model.ReasonDiskWriteFailed, model.ReasonDiskLies}
	return s.Change(func(rec *model.ServerRecord) {
		noteFailedBoot(s, rec, reason, message, in.Stage)
		if d := rec.Install.RootDisk; d != nil && d.VerifiedAt.IsZero() && slices.Contains(lost, reason) {
			rec.Install.RootDisk = nil // nothing of use is on it: another may be taken
		}
		proposal.EndTicket(rec, model.TicketSpent)
	}).Stay(proposal.Look)
}

// awaitDisk waits for the probe to write the disk image. The disk is recorded once anything may be on it.
func awaitDisk(s *server) proposal.Proposal {
	in, t := proposal.DiskInstall(s), s.Ticket()
	if d := s.Record.Install.RootDisk; in.Writes() && in.Disk != nil && (d == nil || d.RootDisk != *in.Disk) {
		return s.Change(func(rec *model.ServerRecord) {
			rec.Install.RootDisk = &model.InstalledDisk{RootDisk: *in.Disk, RootDevice: t.RootDevice()}
		}).Stay(proposal.Look)
	}
	return s.Rest(proposal.Why{
		Reason: model.ReasonInstalling, Message: "installing " + t.Disk.Ref + ": " + progress.Install(t.Disk, in) + attempt(s),
		Since: cmp.Or(in.StartedAt, in.BootedAt, s.Record.Life.Since),
	})
}

// attempt says which attempt this is, and how the one before it failed; "" if none has.
func attempt(s *server) string {
	p := s.Record.Boot.Problem
	if !proposal.FailedBoot(p) {
		return ""
	}
	return fmt.Sprintf("; attempt %d of %d; in the last one %s", s.Record.Boot.Attempts+1, s.Policy.BootAttempts, p.Message)
}

// probeGoesOff is when to look next whether the probe has powered the server off; zero = that is not awaited.
func probeGoesOff(s *server) time.Time {
	in := proposal.DiskInstall(s)
	if in == nil || in.RebootingAt.IsZero() || !s.Now.Before(in.RebootingAt.Add(probeOffLimit)) {
		return time.Time{}
	}
	if a := s.Record.Power.Asked; a != nil && a.At.After(in.RebootingAt) {
		return time.Time{} // it went off, and was started from its disk
	}
	if first := in.RebootingAt.Add(probeOffFirst); s.Reading.At.Before(first) {
		return first
	}
	return s.Reading.At.Add(probeOffEvery)
}

func diskName(s *server) string {
	if s.Record.Install.RootDisk == nil {
		return "its disk"
	}
	return "disk " + progress.Disk(&s.Record.Install.RootDisk.RootDisk)
}

// notSeen says that the disk image is on the disk, and that nothing said since that it is up.
func notSeen(s *server) proposal.Why {
	t := s.Ticket()
	return proposal.Why{Reason: model.ReasonInstalledNotSeen, Message: fmt.Sprintf("image %s is on %s, and its system has not reported since that it is up (%s): the server "+
		"boots from its disk and is not installed again. Check its console: the image may lack a driver for this machine, or not be signed for "+
		"its Secure Boot. If it runs, make it report by cloud-init or Ignition, or set annotation %[5]s: %[6]s on ServerClaim %[4]s; to "+
		"install it again, set a new value of annotation %[7]s",
		t.Disk.Ref, diskName(s), progress.Boot(s.Trace()), s.Record.Claim.Name, model.AnnotationBooted, model.BootedServed, model.AnnotationReprovision),
		Since: s.Record.Install.Unconfirmed, Actor: proposal.Tenant}
}
