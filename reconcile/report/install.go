package report

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

// InstallStatus is what is known of the disk image of a server, as the status branch shows it:
// how far its writing is in steps of ten per cent, so that an install costs few commits.
type InstallStatus struct {
	Image  string `json:"image"`
	Digest string `json:"digest,omitempty"` // of the file as it is published
	Format string `json:"format,omitempty"`
	Size   string `json:"size,omitempty"` // of the disk that it is of
	// Note says what else is made of it than may be expected.
	Note string `json:"note,omitempty"`
	// Disk is the one that it goes to, or is on.
	Disk    string                 `json:"disk,omitempty"`
	Stage   model.DiskInstallStage `json:"stage,omitempty"`
	Percent *int                   `json:"percent,omitempty"` // of its data that is written
	Warning string                 `json:"warning,omitempty"`
}

// installOf is the disk image of the server's newest ticket, nil if there is none.
func (s serverView) installOf() *InstallStatus {
	t := s.Record.Boot.Ticket
	if t == nil || t.Disk == nil || t.Claim != s.Record.Claim.Name {
		return nil
	}
	st := &InstallStatus{
		Image: shownText(t.Disk.Ref), Digest: t.Disk.Digest, Format: formatOf(t.Disk),
		Size: text.Bytes(t.Disk.Bytes), Note: shownText(t.Disk.Note),
	}
	if d := s.Record.Install.RootDisk; d != nil {
		st.Disk = shownText(progress.Disk(&d.RootDisk))
	}
	in := installing(s.trace())
	if in == nil {
		return st
	}
	st.Stage, st.Warning = in.Stage, shownText(in.Warning)
	if in.Disk != nil {
		st.Disk = shownText(progress.Disk(in.Disk))
	}
	if in.Stage == model.DiskWriting {
		st.Percent = new(in.Tenths * 10)
	}
	return st
}

func foundDisk(d *model.DiskImage) string {
	return fmt.Sprintf("found a disk of %s with %s of data, as %s", text.Bytes(d.Bytes), text.Bytes(d.Data), formatOf(d))
}

// formatOf is in which format a disk image is published, such as qcow2+zstd.
func formatOf(d *model.DiskImage) string { return strings.TrimSuffix(d.Format+"+"+d.Compression, "+") }

// installedCondition says of a claim with a disk image whether its system is up on its disk.
func (s serverView) installedCondition() (c metav1.Condition, telling bool) {
	rec, why := s.Record, s.Why
	t := rec.Boot.Ticket
	hasDisk := t != nil && t.Disk != nil && t.Claim == rec.Claim.Name
	switch {
	case rec.Install.Digest != "" && !hasDisk && rec.Install.RootDisk == nil:
		return c, false
	case rec.Install.Digest != "" && s.Unconfirmed == nil:
		on := "on its disk"
		if rec.Install.RootDisk != nil {
			on = "on disk " + progress.Disk(&rec.Install.RootDisk.RootDisk)
		}
		return condition(typeInstalled, true, reasonBooted, "its system runs "+on, s.bootedAt()), true
	case rec.Install.Digest != "":
		why = *s.Unconfirmed
	case !hasDisk && !ofDiskImage(rec.Boot.Problem):
		return c, false
	}
	if why.Reason == "" {
		return c, false
	}
	return condition(typeInstalled, false, why.Reason, why.Text(), why.Since), true
}

// imageReasons are the reasons that disk images alone have.
var imageReasons = []model.Reason{
	model.ReasonDigestMissing, model.ReasonDigestMismatch, model.ReasonImageUnsafe, model.ReasonImageFormat,
	model.ReasonImageNoPartitions, model.ReasonImageCannotBoot, model.ReasonImageTooLarge, model.ReasonImagePreparing,
	model.ReasonSectorSizeMismatch, model.ReasonDiskTooSmall, model.ReasonRootDeviceAmbiguous, model.ReasonRootDeviceMissing,
	model.ReasonRootDeviceGone, model.ReasonMultipath,
}

func ofDiskImage(p *model.BootProblem) bool {
	return proposal.FailedDisk(p) || p != nil && slices.Contains(imageReasons, p.Reason)
}

// installFacts are those of a server's disk image.
func (f *facts) installFacts(st *InstallStatus, rec *model.ServerRecord) {
	if st != nil {
		f.add("disk image", fmt.Sprintf("%s (%s, %s, a disk of %s)", st.Image, st.Digest, st.Format, st.Size))
		f.add("note on its image", st.Note)
		f.add("warning of its install", st.Warning)
	}
	if rec == nil || rec.Install.RootDisk == nil {
		return
	}
	d := rec.Install.RootDisk
	says := progress.Disk(&d.RootDisk)
	if d.Model != "" {
		says += ", " + d.Model
	}
	if d.Bytes > 0 {
		says += ", " + text.Bytes(d.Bytes)
	}
	if d.VerifiedAt.IsZero() {
		says += ": the image may be there in part"
	} else {
		says += ": the image is there since " + text.Time(d.VerifiedAt)
	}
	f.add("root disk", says)
}
