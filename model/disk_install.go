package model

import "time"

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
	// StartedAt is when writing began, ReportedAt when something was reported last,
	// VerifiedAt when DiskVerified was: zero = not yet.
	StartedAt  time.Time `json:"startedAt,omitzero"`
	ReportedAt time.Time `json:"reportedAt"`
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
}
