package model

import "time"

// TicketPurpose is what a boot ticket boots a server for.
type TicketPurpose string

// The purposes of a boot ticket.
const (
	PurposeDiscovery TicketPurpose = "Discovery"
	PurposeClaim     TicketPurpose = "Claim"
	PurposeCleanup   TicketPurpose = "Cleanup"
)

// TicketState is how far a boot ticket has come.
type TicketState string

// The states of a boot ticket, in order.
const (
	TicketArmed          TicketState = "Armed"
	TicketScriptServed   TicketState = "ScriptServed"
	TicketIgnitionServed TicketState = "IgnitionServed"
	TicketBooted         TicketState = "Booted" // it served its purpose
	TicketSpent          TicketState = "Spent"  // revoked or expired
)

// Ticket is the permission of one server to boot one thing from the network once.
// reconcile alone writes it; how far the server has come since is in Progress.
type Ticket struct {
	ID      string        `json:"id"` // unique for ever: server, serial and time of arming
	Server  ServerName    `json:"server"`
	UUID    string        `json:"uuid"` // canonical system UUID
	Purpose TicketPurpose `json:"purpose"`
	Claim   ClaimName     `json:"claim,omitempty"`
	Image   PinnedImage   `json:"image"`
	// Disk is the disk image that the probe in Image writes; nil = Image is what runs.
	Disk *DiskImage `json:"disk,omitempty"`
	// Target is what it may be written to, nil without Disk.
	Target *InstallTarget `json:"target,omitempty"`
	// Digest identifies all that is booted: image, Ignition, kernel arguments.
	Digest  string    `json:"digest"`
	ArmedAt time.Time `json:"armedAt"`
	// IgnitionAt is when its Ignition was served, or its kernel where BootedBy says so,
	// once that was seen: kept here it outlives a lost store, which loses Progress.
	IgnitionAt time.Time `json:"ignitionAt,omitzero"`
	// Ended is empty while the ticket is open, else TicketBooted or TicketSpent.
	Ended TicketState `json:"ended,omitempty"`
	// Always lets the pinned image be booted from the network on every boot, also
	// after the ticket is Booted (annotation ingot/boot: always).
	Always bool `json:"always,omitempty"`
	// BootedBy is AnnotationBooted of its claim. With BootedKernel the server may hold an
	// installed disk from when its kernel was fetched.
	BootedBy string `json:"bootedBy,omitempty"`
	// CleanupMode is the wipe that a Cleanup ticket asks for.
	CleanupMode string `json:"cleanupMode,omitempty"`
	// AwaitingOff is set while the server may still run what the ticket is to replace: it is
	// ready, and nothing boots with it before the server was seen to be off.
	AwaitingOff bool `json:"held,omitempty"`
	// Config is what configures the machine where that is not Ignition: ThingCloudInit,
	// or ThingScript for a claim whose own iPXE script is all that is served.
	Config TicketThing `json:"config,omitempty"`
	// SSHKeys is the SSHKeysSum of the claim's keys that are handed out; empty = it has none.
	SSHKeys string `json:"sshKeys,omitempty"`
	// ArchitectureBy is what says that the server has the image's architecture; empty
	// when nothing does and it is assumed.
	ArchitectureBy string `json:"architectureBy,omitempty"`
}

// PinnedImage is an OCI image whose tag was resolved once, by digest.
type PinnedImage struct {
	Ref          string `json:"ref"`          // as the person wrote it
	Repository   string `json:"repository"`   // registry/repository, without tag or digest
	Digest       string `json:"digest"`       // of the manifest of this architecture
	Architecture string `json:"architecture"` // amd64, arm64
	Kernel       *Layer `json:"kernel,omitempty"`
	Initrd       *Layer `json:"initrd,omitempty"`
	Squashfs     *Layer `json:"squashfs,omitempty"`
	UKI          *Layer `json:"uki,omitempty"`
	// Disk is a disk image. An image that has one is installed, whatever layers it has beside
	// it, unless its claim is booted from the network each time.
	Disk *Layer `json:"disk,omitempty"`
}

// Layer is one blob of an image.
type Layer struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"` // bytes
	MediaType string `json:"mediaType,omitempty"`
}

// ImageName is the image that the ticket is for, as the person wrote it.
func (t *Ticket) ImageName() string {
	if t.Disk != nil {
		return t.Disk.Ref
	}
	return t.Image.Ref
}

// RootDevice is what the claim said of the disk when the ticket was armed.
func (t *Ticket) RootDevice() string {
	if t.Target == nil {
		return ""
	}
	return t.Target.RootDevice
}

// State is the ticket's state, given the progress seen.
func (t *Ticket) State(p *Progress) TicketState {
	switch {
	case t == nil:
		return TicketSpent
	case t.Ended != "":
		return t.Ended
	case !t.ServedAt(p).IsZero():
		return TicketIgnitionServed
	case p == nil || p.Ticket != t.ID:
		return TicketArmed
	case !p.ScriptAt.IsZero():
		return TicketScriptServed
	}
	return TicketArmed
}

// ServedAt is when the server was served the last thing that it needs to install what the
// ticket is for: its Ignition, or its kernel where that is all. With a disk image it is when
// the probe had written and verified it, so that a machine which lost power before that is
// installed again. Zero is not yet.
func (t *Ticket) ServedAt(p *Progress) time.Time {
	switch {
	case !t.IgnitionAt.IsZero():
		return t.IgnitionAt
	case p == nil || p.Ticket != t.ID:
		return time.Time{}
	case t.Disk != nil && p.Install == nil:
		return time.Time{}
	case t.Disk != nil:
		return p.Install.VerifiedAt
	case p.IgnitionAt.IsZero() && t.BootedBy == BootedKernel:
		return p.KernelAt
	}
	return p.IgnitionAt
}

// Open reports whether the server may still use the ticket.
func (t *Ticket) Open() bool { return t != nil && t.Ended == "" }

// MayBoot reports whether the server may be served an iPXE script for a network
// boot. Once Ignition was served the machine may hold an installed disk, so from
// then on it boots from disk (law 1), unless the ticket is for always.
func (t *Ticket) MayBoot(p *Progress) bool {
	if t != nil && t.AwaitingOff {
		return false
	}
	switch t.State(p) {
	case TicketArmed, TicketScriptServed:
		return true
	case TicketIgnitionServed, TicketBooted:
		return t.Always
	case TicketSpent:
	}
	return false
}

// TicketHolder is a server's boot ticket and how far the server has come with it.
type TicketHolder struct {
	Server   ServerName
	Ticket   *Ticket   // nil when the server never had one
	Progress *Progress // nil before the first request
}
