package model

import (
	"cmp"
	"slices"
	"time"
)

// InstallVersion is the version of InstallDocument that probes know.
const InstallVersion = 1

// InstallDocument tells a probe what to write to which disk. It is served to the bearer of the
// ticket's token, and holds secrets in Seed.
type InstallDocument struct {
	Version int `json:"version"` // InstallVersion
	// Install names this install and no other: the ticket. The seed's instance-id is the same.
	Install string    `json:"install"`
	Image   DiskImage `json:"image"`
	// Table and Chunks are where the chunk table and the stored chunks are, relative to the
	// document's own URL; TableDigest is of the table: sha256:….
	Table       string `json:"table"`
	TableDigest string `json:"tableDigest"`
	Chunks      string `json:"chunks"`
	// Identities are those that the image brings.
	Identities DiskIdentities `json:"identities"`
	// Hints are the values of AnnotationRootDevice of the Server and of its claim: the disk has
	// to fit all of them.
	Hints []string `json:"hints,omitempty"`
	// Previous is the disk that the same claim's last install is on: the same is taken again,
	// with what is on it; nil = there was none.
	Previous *RootDisk `json:"previous,omitempty"`
	// MayOverwrite lets what is on the disk be overwritten. Without it a disk that holds
	// anything is refused, unless it is Previous.
	MayOverwrite bool         `json:"mayOverwrite,omitempty"`
	Seed         *InstallSeed `json:"seed,omitempty"` // nil = none is written
	// BootEntry is the label of the firmware's boot entry (UEFI), "" = none is made.
	BootEntry string `json:"bootEntry,omitempty"`
}

// SeedKind is how the configuration of an installed system reaches it (AnnotationSeed).
type SeedKind string

// The kinds of seed. Those of NoCloud and OpenStack are a FAT filesystem of their own, of label
// cidata or config-2; the others are files in a filesystem of the image.
const (
	SeedAuto      SeedKind = "auto"
	SeedNoCloud   SeedKind = "nocloud"
	SeedOpenStack SeedKind = "openstack"
	SeedFCOS      SeedKind = "fcos"    // filesystem "boot" of Fedora CoreOS
	SeedFlatcar   SeedKind = "flatcar" // filesystem "OEM" of Flatcar
	SeedNone      SeedKind = "none"
)

// InstallSeed is the configuration that goes onto the disk.
type InstallSeed struct {
	Kind SeedKind `json:"kind"`
	// Label is that of the FAT filesystem, or of the image's filesystem that the files go into.
	Label string            `json:"label"`
	Files map[string]string `json:"files"` // by path, without a leading slash
	// KernelArguments of SeedFCOS are added to its first boot's alone.
	KernelArguments string `json:"kernelArguments,omitempty"`
}

// DiskInstallStage is how far the probe has come that writes a disk image.
type DiskInstallStage string

// The stages of the writing of a disk image, in order. From DiskVerified on the server boots
// from its disk.
const (
	DiskProbeBooted DiskInstallStage = "Booted"     // the probe runs and has the document
	DiskChosen      DiskInstallStage = "DiskChosen" // nothing was written yet
	DiskWriting     DiskInstallStage = "Writing"
	DiskVerified    DiskInstallStage = "Verified" // all is written and was read back in samples
	DiskBootEntry   DiskInstallStage = "BootEntry"
	DiskRebooting   DiskInstallStage = "Rebooting"
)

// DiskInstallStages are all stages in order.
var DiskInstallStages = []DiskInstallStage{DiskProbeBooted, DiskChosen, DiskWriting, DiskVerified, DiskBootEntry, DiskRebooting}

// ProbeInstall is what a probe reports of an install: POST /r/{token}/install, at most once in 5 s
// but for changes of stage.
type ProbeInstall struct {
	SystemUUID string           `json:"systemUUID"`
	Install    string           `json:"install"` // InstallDocument.Install
	Stage      DiskInstallStage `json:"stage"`
	// Done is how many bytes of DiskImage.Data are written.
	Done uint64    `json:"done,omitempty"`
	Disk *RootDisk `json:"disk,omitempty"` // from DiskChosen on
	// Reason and Message say why the install failed, for people: nothing more is done then.
	// Those of a warning are with Warning instead.
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Warning string `json:"warning,omitempty"`
}

// DiskInstall is how far the writing of a ticket's disk image is known to have come: what was
// reported last, and when.
type DiskInstall struct {
	Stage   DiskInstallStage `json:"stage"`
	Done    uint64           `json:"done,omitempty"` // bytes of DiskImage.Data
	Disk    *RootDisk        `json:"disk,omitempty"`
	Reason  Reason           `json:"reason,omitempty"` // why it failed; "" = it did not
	Message string           `json:"message,omitempty"`
	Warning string           `json:"warning,omitempty"`
	// Boot is Progress.Boots as it was then: in another boot the probe begins anew.
	Boot int `json:"boot,omitempty"`
	// Begun counts the boots of the probe with this ticket before the present one. Not all of
	// them are in Progress.Boots: firmware that boots a UKI asks for no script.
	Begun int `json:"begun,omitempty"`
	// When each stage was reported first in this boot, zero = not yet, and when something was
	// reported last. StartedAt is that of DiskWriting.
	BootedAt    time.Time `json:"bootedAt,omitzero"`
	ChosenAt    time.Time `json:"chosenAt,omitzero"`
	StartedAt   time.Time `json:"startedAt,omitzero"`
	VerifiedAt  time.Time `json:"verifiedAt,omitzero"`
	BootEntryAt time.Time `json:"bootEntryAt,omitzero"`
	RebootingAt time.Time `json:"rebootingAt,omitzero"`
	ReportedAt  time.Time `json:"reportedAt"`
	// Tenths is how many tenths of DiskImage.Data were written at TenthAt, when the last of
	// them was: it is by these that people are told, so that what is said changes ten times.
	Tenths  int       `json:"tenths,omitempty"`
	TenthAt time.Time `json:"tenthAt,omitzero"`
}

// at is when a stage was reported first; nil for a stage that is not known.
func (d *DiskInstall) at(stage DiskInstallStage) *time.Time {
	switch stage {
	case DiskProbeBooted:
		return &d.BootedAt
	case DiskChosen:
		return &d.ChosenAt
	case DiskWriting:
		return &d.StartedAt
	case DiskVerified:
		return &d.VerifiedAt
	case DiskBootEntry:
		return &d.BootEntryAt
	case DiskRebooting:
		return &d.RebootingAt
	}
	return nil
}

// Known reports whether a stage is one of DiskInstallStages.
func (s DiskInstallStage) Known() bool { return slices.Contains(DiskInstallStages, s) }

// Before reports whether a stage comes before another.
func (s DiskInstallStage) Before(other DiskInstallStage) bool {
	return slices.Index(DiskInstallStages, s) < slices.Index(DiskInstallStages, other)
}

// Verified reports whether the disk is known to hold the image. From then on nothing is
// written to it again with the same ticket.
func (d *DiskInstall) Verified() bool { return d != nil && !d.VerifiedAt.IsZero() }

// Writes reports whether anything may have been written to the disk.
func (d *DiskInstall) Writes() bool { return d != nil && !d.StartedAt.IsZero() }

// Told is the install after a report at now, of boot, with data bytes to be written in all;
// nil = nothing was reported before. Within one boot it only goes forward, and after
// DiskVerified in no other boot either. A probe that has just booted begins anew.
func (d *DiskInstall) Told(r *ProbeInstall, boot int, data uint64, now time.Time) DiskInstall {
	next := DiskInstall{Boot: boot}
	anew := d == nil || !d.Verified() && (boot != d.Boot || r.Stage == DiskProbeBooted)
	switch {
	case anew && d != nil:
		next.Begun = d.Begun
		if d.Stage != DiskProbeBooted || boot != d.Boot {
			next.Begun++
		}
	case anew:
	case d.Reason != "" && !d.Verified(): // it was over
		return *d
	default:
		next = *d
	}
	next.ReportedAt = now
	next.Warning = cmp.Or(r.Warning, next.Warning)
	if r.Reason != "" {
		next.failed(r, now)
		return next
	}
	if !anew && r.Stage.Before(next.Stage) {
		return next
	}
	next.reach(r, data, now)
	return next
}

// failed notes that the probe gave up. At DiskVerified it is the verifying that failed, and
// after it nothing that the install hangs on.
func (d *DiskInstall) failed(r *ProbeInstall, now time.Time) {
	if d.Verified() {
		d.Warning = r.Reason + ": " + r.Message
		return
	}
	d.Reason, d.Message = r.Reason, r.Message
	stage := r.Stage
	if !stage.Before(DiskVerified) {
		stage = DiskWriting
	}
	if !stage.Before(d.Stage) {
		d.reach(&ProbeInstall{Stage: stage, Disk: r.Disk}, 0, now)
	}
}

// reach notes the stage of a report and what comes with it.
func (d *DiskInstall) reach(r *ProbeInstall, data uint64, now time.Time) {
	if r.Disk != nil && !d.Verified() {
		d.Disk = r.Disk
	}
	d.Stage = r.Stage
	if at := d.at(r.Stage); at.IsZero() {
		*at = now
	}
	if !r.Stage.Before(DiskVerified) && d.VerifiedAt.IsZero() {
		d.VerifiedAt = now // that was told to a store that was lost since
	}
	if data == 0 {
		return
	}
	d.Done = max(d.Done, min(r.Done, data))
	if tenths := int(d.Done / max(data/10, 1)); min(tenths, 10) > d.Tenths {
		d.Tenths, d.TenthAt = min(tenths, 10), now
	}
}

// InstallTarget is what a ticket's disk image may be written to, as it was when the ticket was
// armed.
type InstallTarget struct {
	// RootDevice is AnnotationRootDevice of the claim, Hints those of the Server and of it.
	RootDevice string   `json:"rootDevice,omitempty"`
	Hints      []string `json:"hints,omitempty"`
	// Previous is that of InstallDocument. Overwrite is the value of AnnotationOverwrite that
	// lets the disk be overwritten, "" if none does.
	Previous  *RootDisk `json:"previous,omitempty"`
	Overwrite string    `json:"overwrite,omitempty"`
}

// InstalledDisk is the disk of a server that the image of its claim is on, or is being
// written to.
type InstalledDisk struct {
	RootDisk
	// RootDevice is AnnotationRootDevice of the claim as it was when the disk was chosen.
	RootDevice string `json:"rootDevice,omitempty"`
	// VerifiedAt is when the image was there, zero = it may be there in part.
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
}
