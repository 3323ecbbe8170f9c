package model

import "time"

// ServerState is where a server is in its life.
type ServerState string

// The states of a server.
const (
	StateInitial     ServerState = "Initial"
	StateDiscovery   ServerState = "Discovery"
	StateAvailable   ServerState = "Available"
	StateReserved    ServerState = "Reserved"
	StateCleanup     ServerState = "Cleanup"
	StateReleased    ServerState = "Released"
	StateMaintenance ServerState = "Maintenance"
	StateError       ServerState = "Error"
)

// ServerStates are all states, in the order of a server's life.
var ServerStates = []ServerState{
	StateInitial, StateDiscovery, StateAvailable, StateReserved,
	StateCleanup, StateReleased, StateMaintenance, StateError,
}

// ServerRecord is what Ingot decided about one server and cannot observe again. Each part belongs
// to one package of the plan. reconcile alone writes it. It is section decided of a document on the
// status branch, without observations and scratch, which may be lost: only the store keeps them.
type ServerRecord struct {
	RecordIdentity `json:"identity"`

	Life  RecordLife  `json:"life"`
	Claim RecordClaim `json:"claim,omitzero"`
	// Release is the decision, taken once the guard let it pass, to release.
	Release     *Release          `json:"release,omitempty"`
	Power       RecordPower       `json:"power,omitzero" decided:"-"`
	Boot        RecordBoot        `json:"boot,omitzero"`
	Install     RecordInstall     `json:"install,omitzero"`
	Disks       RecordDisks       `json:"disks,omitzero"`
	Maintenance RecordMaintenance `json:"maintenance,omitzero"`
	Requests    RecordRequests    `json:"requests,omitzero"`
	Settings    RecordSettings    `json:"settings,omitzero"`
	// Intent is the newest decision that the status branch has to show before it is
	// acted upon; nil = there was none.
	Intent *Intent `json:"intent,omitempty"`
	// Doubt says why the record may not be what was decided last; nil = it is.
	Doubt *Doubt `json:"doubt,omitempty"`
}

// RecordIdentity says which machine a record is of.
type RecordIdentity struct {
	Name      ServerName `json:"name"`
	BMC       BMCName    `json:"bmc"`
	SystemURI string     `json:"systemURI"`
	UUID      string     `json:"uuid"` // canonical
	// Board identifies the machine if its BMC shows no UUID and UUID is what Git says; nil = its
	// BMC shows UUID.
	Board *Board `json:"board,omitempty"`
	// MACs are the MAC addresses that count as the server's, by address.
	MACs []ServerMAC `json:"macAddresses,omitempty"`
	// Orphaned is since when a commit has taken the server's BMC away; zero = none has, or it
	// is back.
	Orphaned time.Time `json:"orphaned,omitzero"`
}

// RecordLife is where a server is in its life.
type RecordLife struct {
	State ServerState `json:"state"`
	Since time.Time   `json:"since"` // when State was entered
	// Back is where Maintenance and Error return to.
	Back ServerState `json:"back,omitempty"`
	// Reason and Message say what is wrong in state Error.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// FoundRunning is when the server was found to run what Ingot did not start; zero = it was
	// not, or that is not known.
	FoundRunning time.Time `json:"foundRunning,omitzero"`
	// BootstrapCompleted are the ServerReadinessRules with enforcementMode BootstrapOnly whose
	// conditions have held once, sorted: they no longer taint the server.
	BootstrapCompleted []string `json:"bootstrapCompleted,omitempty"`

	LifeScratch `json:"scratch,omitzero" decided:"-"`
}

// LifeScratch counts the attempts at the present step.
type LifeScratch struct {
	// Failures counts the failed attempts at the present step, NotBefore is when it
	// may be tried again, and LastError what went wrong.
	Failures  int       `json:"failures,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	LastError string    `json:"lastError,omitempty"`
	// LastReason is the reason of LastError; "" = it has none.
	LastReason Reason `json:"lastReason,omitempty"`
}

// RecordClaim is the claim that a server serves.
type RecordClaim struct {
	// Name is the claim that the server is bound to, or was when it was Released
	// with policy Retain; BoundAt when it was bound.
	Name    ClaimName `json:"name,omitempty"`
	BoundAt time.Time `json:"boundAt,omitzero"`
	// Renamed is the last renaming that Name follows, see Desired.Renamed; "" = none.
	Renamed Revision `json:"renamed,omitempty"`
	// Tenant is whose claim it is, see Tenants; "" is not known, or there were none.
	Tenant string `json:"tenant,omitempty"`
	// Power is the power state that the claim was last seen to ask for.
	Power Power `json:"power,omitempty"`
	// Image is the image that the claim's name meant when the server was bound, or last reprovisioned; nil = the claim
	// has a reference.
	Image *CatalogImage `json:"image,omitempty"`
	// Cleanup is how the claim was last seen to ask for its disks to be wiped
	// (AnnotationCleanup), until they are: the claim is gone by then.
	Cleanup string `json:"cleanup,omitempty"`
}

// RecordPower is what was asked of a server's power. None of it is a decision.
type RecordPower struct {
	PowerObserved
	PowerScratch
}

// PowerObserved is what was requested of a server's power.
type PowerObserved struct {
	// Asked is a power request that was made and whose effect is awaited.
	Asked *PowerAsked `json:"asked,omitempty"`
}

// PowerScratch is how a server reacts to power requests.
type PowerScratch struct {
	// NoShutdown is when the machine was found to know no graceful shutdown, so that it is
	// forced off next; zero = it was not, or was asked for something else since.
	NoShutdown time.Time `json:"noShutdown,omitzero"`
}

// RecordBoot is how a server boots from the network.
type RecordBoot struct {
	// Ticket is the newest boot ticket, open or ended; Serial counts them.
	Ticket *Ticket `json:"ticket,omitempty"`
	Serial int     `json:"serial,omitempty"`
	// Problem says why the server's image or configuration cannot be booted; nil = no reason
	// is known.
	Problem *BootProblem `json:"problem,omitempty"`
	// Theft is how a ticket of the server was last used up by another machine; nil = none was.
	Theft *Theft `json:"theft,omitempty"`

	BootObserved `json:"observed,omitzero" decided:"-"`
	BootScratch  `json:"scratch,omitzero" decided:"-"`
}

// BootObserved is what is known of a server's BMC about boots.
type BootObserved struct {
	// OverrideVariant is how the BMC was last brought to keep the one-time boot override
	// ("default" if as the standard says).
	OverrideVariant string `json:"overrideVariant,omitempty"`
	// NoDiskBoot says why the BMC is no longer asked to have the server boot from its
	// disk once; nil = it is.
	NoDiskBoot *NoDiskBoot `json:"noDiskBoot,omitempty"`
}

// BootScratch counts and times a server's boots.
type BootScratch struct {
	// Attempts counts the discoveries begun since the server was last Available, or the
	// boots for its claim that failed.
	Attempts int `json:"attempts,omitempty"`
	// BootsAfter is how long the server took, when it was last seen to, from its
	// power-on to its first request to the network.
	BootsAfter time.Duration `json:"bootsAfter,omitempty"`
}

// RecordInstall is what was installed for a claim.
type RecordInstall struct {
	// Digest identifies the image and configuration that the claim's boot ticket installed.
	// Unconfirmed is since when that is assumed without a report of it; zero = it was reported.
	Digest      string    `json:"digest,omitempty"`
	Unconfirmed time.Time `json:"unconfirmed,omitzero"`
	// RootDisk is the disk that a disk image of the claim was written to, or began to be; nil =
	// none was.
	RootDisk *InstalledDisk `json:"rootDisk,omitempty"`
	// Reprovision is the value of AnnotationReprovision that was decided upon and
	// is not yet installed. Replaces is the Digest before one that has begun, until the
	// server is booted from the network; "" = it was, or that is not known.
	Reprovision string `json:"reprovision,omitempty"`
	Replaces    string `json:"replaces,omitempty"`
	// ReplacesImage is RecordClaim.Image before that reprovision; nil = it did not change.
	ReplacesImage *CatalogImage `json:"replacesImage,omitempty"`
}

// RecordDisks is what a wipe has to account for, and what the last one did.
type RecordDisks struct {
	// Known are all that the server has, or has had. KnownAt is when a probe reported them
	// first, or a person accepted what a wipe reported; zero = never.
	Known   []Disk    `json:"known,omitempty"`
	KnownAt time.Time `json:"knownAt,omitzero"`
	// Wiped is the outcome of the last wipe.
	Wiped []DiskWipe `json:"wiped,omitempty"`
	// Missing are those of them that the report of the last wipe does not account for.
	Missing []MissingDisk `json:"missing,omitempty"`
}

// RecordMaintenance is why a server is in Maintenance.
type RecordMaintenance struct {
	// By is the ServerMaintenance that the server is in Maintenance for, or OperationPark.
	By string `json:"by,omitempty"`
	// Power is the power state that the maintenance asks for; nil = Off, and the
	// server was off when it began.
	Power *MaintenancePower `json:"power,omitempty"`
	// Awaits is the ServerMaintenance that waits for the claim's owner; nil = none does.
	Awaits *AwaitedApproval `json:"awaits,omitempty"`
	// ShownOn are the ServerMaintenances that the claim's owner was shown, or approved by name, as
	// ones that leave the server on: their names alone approve no more than that.
	ShownOn []string `json:"shownOn,omitempty"`
	// ServicedAt is when a ServerMaintenance ended, until its changes were looked for.
	ServicedAt time.Time `json:"servicedAt,omitzero"`
}

// RecordRequests is what annotations have asked for once.
type RecordRequests struct {
	// Operation is the power operation that was asked for last, with its outcome.
	Operation *Operation `json:"operation,omitempty"`
	// Handled values of the annotations.
	HandledOperation   string `json:"handledOperation,omitempty"`
	HandledReprovision string `json:"handledReprovision,omitempty"`
	HandledDiscover    string `json:"handledDiscover,omitempty"`
	HandledDisks       string `json:"handledDisks,omitempty"`
	HandledOverwrite   string `json:"handledOverwrite,omitempty"`
	// HandledBefore are values that were handled before those, as "annotation=value",
	// newest last: going back to one asks for nothing (law 1).
	HandledBefore []string `json:"handledBefore,omitempty"`
}

// RecordSettings is how the BMC's settings differ from the Server's manifest.
type RecordSettings struct {
	// BootOrderSet is the key of the newest boot order that was found or set as its manifest says.
	BootOrderSet string `json:"bootOrderSet,omitempty"`

	SettingsObserved `json:"observed,omitzero" decided:"-"`
}

// SettingsObserved is how the BMC answered when its settings were changed.
type SettingsObserved struct {
	// IndicatorProblem says why its indicator is not as its manifest says; nil = no reason is
	// known.
	IndicatorProblem *SettingProblem `json:"indicatorProblem,omitempty"`
	// BootOrderProblem is the same for its boot order. Its Want is a BootOrderKey.
	BootOrderProblem *SettingProblem `json:"bootOrderProblem,omitempty"`
	// BootOrderPending is the order that waits for the machine's next start; nil = none does.
	BootOrderPending *PendingBootOrder `json:"bootOrderPending,omitempty"`
}

// SoughtFrom returns when the server was powered on to be discovered with its newest ticket,
// zero if it was not: from then on its firmware asks under its UUID.
func (r *ServerRecord) SoughtFrom() time.Time {
	t, a := r.Boot.Ticket, r.Power.Asked
	switch {
	case t == nil || t.Purpose != PurposeDiscovery:
		return time.Time{}
	case a != nil && a.Want == PowerOn && !a.At.Before(t.ArmedAt):
		return a.At
	case r.Life.State == StateDiscovery && !r.Life.Since.Before(t.ArmedAt):
		return r.Life.Since // it was asked to go off since
	}
	return time.Time{}
}

// BootProblem says why a boot cannot be had: its image or the source of its
// configuration cannot be used, or its ticket came to nothing.
type BootProblem struct {
	// Digest and Architecture are of what was to be booted: another boot is tried at
	// once.
	Digest       string `json:"digest"`
	Architecture string `json:"architecture,omitempty"`

	Image   string    `json:"image"`  // as the person wrote it
	Reason  string    `json:"reason"` // one word in CamelCase
	Message string    `json:"message"`
	Since   time.Time `json:"since"` // when it was first found for that reason
	// Stage is how far the writing of the disk image had come that ended so; "" = no probe
	// has told of any.
	Stage DiskInstallStage `json:"stage,omitempty"`

	ProblemScratch `json:"scratch,omitzero" decided:"-"`
}

// ProblemScratch counts the attempts at a boot that has a problem.
type ProblemScratch struct {
	// Failures counts the failed attempts, NotBefore is when the next may be made.
	Failures  int       `json:"failures,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// NoDiskBoot says why a server's BMC sets no one-time boot from disk.
type NoDiskBoot struct {
	Reason  string    `json:"reason"` // one word in CamelCase
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
	// Firmware is the BMC's version that would not: another is asked again.
	Firmware string `json:"firmware,omitempty"`
}

// Theft is how a ticket was used up by somebody else than its server.
type Theft struct {
	Purpose TicketPurpose `json:"purpose"`
	Claim   ClaimName     `json:"claim,omitempty"`
	// Secret is the digest of the claim's Secret that was served.
	Secret string    `json:"secret,omitempty"`
	Client string    `json:"client,omitempty"` // IP address
	MAC    string    `json:"mac"`
	At     time.Time `json:"at"`
	// Count is how often in a row it came to that.
	Count int `json:"count"`
}

// AwaitedApproval is a ServerMaintenance that waits for the owner of a claim.
type AwaitedApproval struct {
	Maintenance string    `json:"maintenance"`
	Since       time.Time `json:"since"`
}

// MaintenancePower is a power state that a server is to be brought to once while it is in
// Maintenance.
type MaintenancePower struct {
	Want Power `json:"want"`
	// Due is set until that was done: then hands off.
	Due bool `json:"due,omitempty"`
	// WasOff is set if the maintenance had the server Off before, so that its user was asked for that.
	WasOff bool `json:"wasOff,omitempty"`
}

// MissingDisk is a disk that no wipe accounts for. Name, Serial and Model are as it was
// once told of, and bounded.
type MissingDisk struct {
	Name   string `json:"name"`
	Serial string `json:"serial,omitempty"`
	Model  string `json:"model,omitempty"`
	// FromBMC is set for a drive that only the BMC shows, and NotWiped for a disk that
	// the wipe saw and left alone.
	FromBMC  bool `json:"fromBMC,omitempty"`
	NotWiped bool `json:"notWiped,omitempty"`
	// Gone is set once a person accepted that, see AnnotationDisksAccepted, or if a
	// ServerMaintenance left another drive in its place: ReplacedBy is its serial number.
	Gone       bool   `json:"gone,omitempty"`
	ReplacedBy string `json:"replacedBy,omitempty"`
}

// Settled is where the server is in its life, also while it is out of service: the state that counts when
// copies of its record are compared.
func (r *ServerRecord) Settled() ServerState {
	if (r.Life.State == StateMaintenance || r.Life.State == StateError) && r.Life.Back != "" {
		return r.Life.Back
	}
	return r.Life.State
}

// ReleaseDecided reports whether it is decided that the server is taken from the claim of its
// record. A claim of that name may be another server's by now.
func (r *ServerRecord) ReleaseDecided() bool { return r.Release != nil || r.Settled() == StateReleased }

// Release is a decided release.
type Release struct {
	Revision Revision  `json:"revision"` // the one that no longer holds the claim
	At       time.Time `json:"at"`
	Claim    ClaimName `json:"claim"`
	// Retain is set if the disks were to stay as they are when it was decided.
	Retain bool `json:"retain,omitempty"`
}

// PowerAsked is a power request that was made.
type PowerAsked struct {
	Reset ResetKind `json:"reset"`
	Want  Power     `json:"want"` // the state that will show that it took effect
	At    time.Time `json:"at"`
	// Before is the power state that was read right before the request was sent; "" =
	// that is not known.
	Before Power `json:"before,omitempty"`
	// Reached is set once Want was read, Off for sure: after a restart nobody waits for it again.
	Reached bool `json:"reached,omitempty"`
	// Unsure is set before the request is sent, and until its answer has come: whether
	// it was carried out is not known. Tries counts such requests in a row.
	Unsure bool `json:"unsure,omitempty"`
	Tries  int  `json:"tries,omitempty"`
	// Again counts how often in a row the server was asked to go back to that state, which it
	// had left, or did not reach.
	Again int `json:"again,omitempty"`
	// Problem says how a power-on failed that the BMC had accepted; "" = it did not, or that is unknown.
	Problem string `json:"problem,omitempty"`
}

// IntentKind is what kind of decision an Intent is.
type IntentKind string

// Intent is a decision that the status branch has to show before it is acted upon.
type Intent struct {
	Kind     IntentKind `json:"kind"`
	Value    string     `json:"value,omitempty"` // a claim's name, an annotation's value, a power state
	Revision Revision   `json:"revision,omitempty"`
}

// OperationOutcome is what became of a power operation.
type OperationOutcome string

// Operation is a power operation that an annotation asked for. It is asked for at
// most once.
type Operation struct {
	Value   string           `json:"value"` // of the annotation
	Reset   ResetKind        `json:"reset"`
	NotedAt time.Time        `json:"notedAt"`           // when it was decided upon
	AskedAt time.Time        `json:"askedAt,omitzero"`  // saved before the request is sent
	Outcome OperationOutcome `json:"outcome,omitempty"` // saved after it
	Message string           `json:"message,omitempty"` // of the BMC, when it was not Done
}

// DoubtReason is why a record may not be what was decided last.
type DoubtReason string

// Doubt is why a record may not be what was decided last. It binds its own server
// only.
type Doubt struct {
	Reason  DoubtReason `json:"reason"`
	Message string      `json:"message,omitempty"`
	Since   time.Time   `json:"since"`
	// SeenOn is set once the server was On since: it runs what is on its disk.
	SeenOn bool `json:"seenOn,omitempty"`
}
