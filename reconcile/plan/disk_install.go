package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

const (
	// installSilence is how long the probe that writes a disk image may report nothing, which it
	// does every few seconds, before it is taken to have stopped.
	installSilence = 5 * time.Minute

	// A probe that has written its image powers its machine off. Power is read for that after
	// probeOffFirst, and then each probeOffEvery until probeOffLimit.
	probeOffLimit = 2 * time.Minute
	probeOffFirst = 2 * time.Second
	probeOffEvery = 5 * time.Second

	// preparedEvery is how often it is looked whether a disk image is prepared.
	preparedEvery = 10 * time.Second
)

// imageReasons are the reasons that disk images alone have.
var imageReasons = []model.Reason{
	model.ReasonDigestMissing, model.ReasonDigestMismatch, model.ReasonImageUnsafe, model.ReasonImageFormat,
	model.ReasonImageNoPartitions, model.ReasonImageCannotBoot, model.ReasonImageTooLarge, model.ReasonImagePreparing,
	model.ReasonSectorSizeMismatch, model.ReasonDiskTooSmall, model.ReasonRootDeviceAmbiguous, model.ReasonRootDeviceMissing,
	model.ReasonRootDeviceGone, model.ReasonMultipath,
}

// OfDiskImage reports whether the problem is one of a disk image, or of the disk that it is to
// go to.
func OfDiskImage(p *model.BootProblem) bool {
	return proposal.FailedDisk(p) || p != nil && slices.Contains(imageReasons, p.Reason)
}

// diskInstall is what was reported of the writing of the disk image that the server's open
// ticket is for, nil if nothing was.
func (s *server) diskInstall() *model.DiskInstall {
	p := s.progress()
	if p == nil || !s.opened(model.PurposeClaim) || s.rec.Boot.Ticket.Disk == nil {
		return nil
	}
	return p.Install
}

// writingDisk reports whether the server's probe is about to write its disk image, as far as is
// known: it reported since the server was powered on, and neither that it is done nor that it
// failed.
func (s *server) writingDisk() bool {
	in := s.diskInstall()
	if in == nil || in.Verified() || in.Reason != "" || s.rec.Boot.Ticket.AwaitingOff || s.power() != model.PowerOn {
		return false
	}
	return s.toldSinceOn(in)
}

// hasInstallPlace reports whether the server takes one of the places of
// guard.maxConcurrentInstalls: it was taken from what it ran to have a disk image written, or was
// powered on for that, and neither is that known to have ended nor that it did not come on.
func (s *server) hasInstallPlace() bool {
	switch {
	case !s.opened(model.PurposeClaim) || s.rec.Boot.Ticket.Disk == nil:
		return false
	case s.rec.Install.Reprovision != "" && s.rec.Install.Digest == "" && !proposal.InstallUnknown(s.rec) && !s.begun():
		return true
	case s.rec.Boot.Ticket.AwaitingOff || !s.begun() || s.rec.Boot.Ticket.State(s.progress()) == model.TicketIgnitionServed:
		return false
	}
	in := s.diskInstall()
	if in != nil && in.Reason != "" {
		return false
	}
	// One whose power failed while it was written to goes on before others begin.
	return s.power() == model.PowerOn || s.comesOn() || s.toldSinceOn(in)
}

// mayInstall reports whether what the server's open ticket is for may be begun, or go on, beside
// the disk images that are being written.
func (s *server) mayInstall() bool {
	return s.rec.Boot.Ticket.Disk == nil || s.fleet.installs > 0 || s.hasInstallPlace()
}

// takeInstallPlace is mayInstall for a server that goes on, and takes its place if it may.
func (s *server) takeInstallPlace() bool {
	may := s.mayInstall()
	if may && s.rec.Boot.Ticket.Disk != nil && !s.hasInstallPlace() {
		s.fleet.installs--
	}
	return may
}

// installsLimited says that the server waits for its turn.
func (s *server) installsLimited() proposal.Why {
	return s.why(model.ReasonInstallsLimited, "waiting for the disk images of other servers to be written (guard.maxConcurrentInstalls)")
}

// toldSinceOn reports whether something was reported of an install since the server was asked to
// power on for it.
func (s *server) toldSinceOn(in *model.DiskInstall) bool {
	return in != nil && !(s.begun() && in.ReportedAt.Before(s.notedAt(s.rec.Power.Asked.At)))
}

// diskFailed reports whether the probe could not write the disk image: it said so, or the
// server started again, or went off, as often as is tried.
func (s *server) diskFailed() bool {
	in := s.diskInstall()
	if in == nil || in.Verified() || s.rec.Boot.Ticket.AwaitingOff {
		return false
	}
	return in.Reason != "" || s.restartsTooOften()
}

// restartsTooOften reports whether the server was cut off from its install as often as is tried.
func (s *server) restartsTooOften() bool {
	boots := s.progress().Boots
	if in := s.diskInstall(); in != nil {
		boots = max(boots, in.Begun)
	}
	if s.power() == model.PowerOff && !s.settling() {
		boots++
	}
	return boots >= s.fleet.in.Policy.BootAttempts
}

// failDisk ends a ticket whose image the probe could not write.
func (s *server) failDisk() Step {
	in := s.diskInstall()
	reason, message := in.Reason, in.Message
	switch {
	case reason == "":
		reason = model.ReasonInstallFailed
		message = fmt.Sprintf("the server went off, or started again, %d times before its image was on the disk", s.fleet.in.Policy.BootAttempts)
	case !slices.Contains(model.Reasons, reason):
		reason, message = model.ReasonInstallFailed, reason+": "+message
	}
	s.noteFailedBoot(reason, message, in.Stage)
	lost := []model.Reason{model.ReasonRootDeviceGone, model.ReasonDiskWriteFailed, model.ReasonDiskLies}
	if d := s.rec.Install.RootDisk; d != nil && d.VerifiedAt.IsZero() && slices.Contains(lost, reason) {
		s.edit().Install.RootDisk = nil // nothing of use is on it: another may be taken
	}
	s.end(model.TicketSpent)
	return s.stay()
}

// leaveOff powers a server off whose image could not be written, however often it was tried,
// and leaves it so until a person acts: what runs on it is its probe.
func (s *server) leaveOff(p *model.BootProblem) Step {
	st, done := s.off(0)
	if !done {
		return st
	}
	return s.restOrSave(s.problemWhy(p))
}

// otherTarget reports whether the Server or the claim says something else of the disk than when
// a ticket with a disk image was armed: which one it is, or whether it may be overwritten.
func (s *server) otherTarget(t *model.Ticket) bool {
	if t == nil || t.Target == nil || t.Claim != s.rec.Claim.Name || s.claim == nil {
		return false
	}
	return t.Target.Overwrite != s.overwriteAsked() || !slices.Equal(t.Target.Hints, hints(s.spec, s.claim.Annotations[model.AnnotationRootDevice]))
}

// awaitDisk waits for the probe to write the disk image. The disk stands on record as soon as
// anything may be on it.
func (s *server) awaitDisk() Step {
	in, t := s.diskInstall(), s.rec.Boot.Ticket
	if d := s.rec.Install.RootDisk; in.Writes() && in.Disk != nil && (d == nil || d.RootDisk != *in.Disk) {
		s.edit().Install.RootDisk = &model.InstalledDisk{RootDisk: *in.Disk, RootDevice: t.RootDevice()}
		return s.stay()
	}
	says := "installing " + t.Disk.Ref + ": " + InstallText(t.Disk, in)
	if p := s.rec.Boot.Problem; proposal.FailedBoot(p) {
		says += fmt.Sprintf("; attempt %d of %d, before it %s", s.rec.Boot.Attempts+1, s.fleet.in.Policy.BootAttempts, p.Message)
	}
	return s.rest(proposal.Why{Reason: model.ReasonInstalling, Message: says, Since: cmp.Or(in.StartedAt, in.BootedAt, s.rec.Life.Since)})
}

// noteDisk notes that the disk image of the server's ticket is on its disk, and what was made
// use of for that. With any other ticket it notes that the disks hold something.
func (s *server) noteDisk() {
	rec := s.edit()
	t := rec.Boot.Ticket
	if t == nil || t.Disk == nil {
		rec.Install.RootDisk = nil // what was installed may be anywhere
		return
	}
	if to := t.Target; to != nil && to.Overwrite != "" {
		proposal.MarkHandled(rec, proposal.AskedOverwrite, to.Overwrite)
	}
	d := model.InstalledDisk{RootDevice: t.RootDevice()}
	if rec.Install.RootDisk != nil {
		d.RootDisk = rec.Install.RootDisk.RootDisk
	}
	if p := s.progress(); p != nil && p.Install != nil && p.Install.Disk != nil {
		d.RootDisk = *p.Install.Disk
	}
	if d.RootDisk == (model.RootDisk{}) {
		return // it was lost with the store
	}
	d.VerifiedAt = cmp.Or(t.IgnitionAt, s.now())
	rec.Install.RootDisk = &d
}

// probeGoesOff is when to look next whether the probe that has written the disk image has
// powered the server off; zero = that is not awaited.
func (s *server) probeGoesOff() time.Time {
	in := s.diskInstall()
	if in == nil || in.RebootingAt.IsZero() || !s.now().Before(in.RebootingAt.Add(probeOffLimit)) {
		return time.Time{}
	}
	if a := s.rec.Power.Asked; a != nil && a.At.After(in.RebootingAt) {
		return time.Time{} // it went off, and was started from its disk
	}
	if first := in.RebootingAt.Add(probeOffFirst); s.reading.At.Before(first) {
		return first
	}
	return s.reading.At.Add(probeOffEvery)
}

// diskName is the disk that the server's image is on, for people.
func (s *server) diskName() string {
	if s.rec.Install.RootDisk == nil {
		return "its disk"
	}
	return "disk " + RootDiskText(&s.rec.Install.RootDisk.RootDisk)
}

// stalledText says that nothing was reported of an install for a while.
func (s *server) stalledText(silence time.Duration) string {
	in := s.diskInstall()
	return fmt.Sprintf("its probe has reported nothing for %s, last at %s: %s; look at its console and at its link", silence,
		text.Time(in.ReportedAt), InstallText(s.rec.Boot.Ticket.Disk, in))
}

// failedDiskWhy says why the probe did not bring the disk image onto the disk.
func (s *server) failedDiskWhy(p *model.BootProblem) proposal.Why {
	why := proposal.Why{Reason: p.Reason, Since: p.Since, Actor: s.actorOn(p.Reason)}
	if !s.givenUp() {
		why.Message = fmt.Sprintf("installing %s failed at stage %s: %s; it is tried again, attempt %d of %d", p.Image, p.Stage, p.Message,
			s.rec.Boot.Attempts+1, s.fleet.in.Policy.BootAttempts)
		return why
	}
	if p.Reason == model.ReasonInstallStalled {
		why.Reason = model.ReasonInstallFailed
	}
	why.Message = fmt.Sprintf("given up on installing %s, which failed at stage %s: %s; it is powered off: correct that in Git, or set "+
		"annotation %s: %s on Server %s once it is fixed", p.Image, p.Stage, p.Message, model.AnnotationOperation, s.newRetry(), s.name)
	return why
}

// notSeen says that the disk image is on the disk, and that nothing said since that it is up.
func (s *server) notSeen() proposal.Why {
	t := s.rec.Boot.Ticket
	return proposal.Why{Reason: model.ReasonInstalledNotSeen, Message: fmt.Sprintf("image %s is on %s, and its system has not reported since that it is up (%s): the server "+
		"boots from its disk and is not installed again. Check its console: the image may lack a driver for this machine, or not be signed for "+
		"its Secure Boot. If it runs, make it report by cloud-init or Ignition, or set annotation %[5]s: %[6]s on ServerClaim %[4]s; to "+
		"install it again, set a new value of annotation %[7]s",
		t.Disk.Ref, s.diskName(), s.lastStage(), s.rec.Claim.Name, model.AnnotationBooted, model.BootedServed, model.AnnotationReprovision),
		Since: s.rec.Install.Unconfirmed, Actor: proposal.Tenant}
}

// preparingWhy says that the disk image is being prepared: nobody has to act.
func preparingWhy(p *model.BootProblem) proposal.Why {
	return proposal.Why{Reason: p.Reason, Message: fmt.Sprintf("preparing image %s: %s; it is not powered on before", p.Image, p.Message), Since: p.Since}
}

// prepares notes how far what the server is to boot has been prepared: that is no failure, and
// is looked for again after a few seconds.
func (o *outcome) prepares(s *proposal.Settled, do proposal.Arm, f *proposal.Failure, now time.Time) {
	o.reading.PreparedAfter = now.Add(preparedEvery - time.Duration(float64(preparedEvery)/2*proposal.Jitter(o.rec.Name)))
	rec, b := o.before(), &do.Boot
	p := model.BootProblem{
		Digest: b.Ticket.Digest, Architecture: b.Architecture, Image: b.Image, Reason: f.Reason, Message: f.Text, Since: now,
	}
	if old := rec.Boot.Problem; proposal.Concerns(old, b) && old.Reason == f.Reason {
		p.Since = old.Since
	}
	if rec.Boot.Problem == nil || *rec.Boot.Problem != p {
		rec.Boot.Problem = &p
		s.Servers = append(s.Servers, rec)
	}
}

// InstallText says how far the writing of a disk image is, by the tenths of its data.
func InstallText(disk *model.DiskImage, in *model.DiskInstall) string {
	to := ""
	if in.Disk != nil {
		to = " to " + RootDiskText(in.Disk)
	}
	switch in.Stage {
	case model.DiskProbeBooted:
		return "its probe runs"
	case model.DiskChosen:
		return "disk " + RootDiskText(in.Disk) + " is chosen"
	case model.DiskVerified, model.DiskBootEntry, model.DiskRebooting:
		return "it is on disk " + RootDiskText(in.Disk)
	case model.DiskWriting:
	}
	says := fmt.Sprintf("%d %% of %s written%s", in.Tenths*10, text.Bytes(disk.Data), to)
	took := in.TenthAt.Sub(in.StartedAt)
	if in.Tenths == 0 || in.StartedAt.IsZero() || took < time.Second {
		return says
	}
	rate := float64(disk.Data) / 10 * float64(in.Tenths) / took.Seconds()
	left := took / time.Duration(in.Tenths) * time.Duration(10-in.Tenths)
	return fmt.Sprintf("%s, %s/s, done at about %s", says, text.Bytes(uint64(rate)), text.Time(in.TenthAt.Add(left)))
}

// RootDiskText is a disk as it is shown to people.
func RootDiskText(d *model.RootDisk) string {
	switch {
	case d == nil:
		return "that is not known"
	case d.Serial != "":
		return fmt.Sprintf("%s (serial %s)", d.Name, d.Serial)
	case d.WWID != "":
		return fmt.Sprintf("%s (wwid %s)", d.Name, d.WWID)
	}
	return d.Name
}
