package model

import (
	"encoding/json"
	"strings"
	"time"
)

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

// ServerRecord is what Ingot decided about one server and cannot observe again.
// reconcile alone writes it; the status branch mirrors it.
type ServerRecord struct {
	// Version is set by the store when the record changes.
	Version   Version    `json:"version,omitzero"`
	Name      ServerName `json:"name"`
	BMC       BMCName    `json:"bmc"`
	SystemURI string     `json:"systemURI"`
	UUID      string     `json:"uuid"` // canonical
	// Board tells the machine if its BMC shows no UUID and UUID is what Git says; nil = its
	// BMC shows UUID.
	Board *Board      `json:"board,omitempty"`
	State ServerState `json:"state"`
	Since time.Time   `json:"since"` // when State was entered
	// Back is where Maintenance and Error return to.
	Back ServerState `json:"back,omitempty"`
	// MaintainedBy is the ServerMaintenance that the server is in Maintenance for, or
	// OperationPark.
	MaintainedBy string `json:"maintainedBy,omitempty"`
	// ServicedAt is when a ServerMaintenance ended, until it was looked what it changed.
	ServicedAt time.Time `json:"servicedAt,omitzero"`

	// Claim is the claim that the server is bound to, or was when it was Released
	// with policy Retain; ClaimedAt when it was bound.
	Claim     ClaimName `json:"claim,omitempty"`
	ClaimedAt time.Time `json:"claimedAt,omitzero"`
	// Tenant is whose claim it is, see Tenants; "" is not known, or there were none.
	Tenant string `json:"tenant,omitempty"`
	// Intent is the newest decision that the status branch has to show before it is
	// acted upon; nil = there was none.
	Intent *Intent `json:"intent,omitempty"`
	// WantPower is the power state that the claim was last seen to ask for.
	WantPower Power `json:"wantPower,omitempty"`
	// Operation is the power operation that was asked for last, and what became of it.
	Operation *Operation `json:"operation,omitempty"`
	// Release is the decision, taken once the guard let it pass, to release.
	Release *Release `json:"release,omitempty"`
	// Ticket is the newest boot ticket, open or ended; Serial counts them.
	Ticket *Ticket `json:"ticket,omitempty"`
	Serial int     `json:"serial,omitempty"`
	// Installed is the digest of what the claim's boot ticket installed. Unconfirmed is
	// since when that is taken to be installed though nothing has said so; zero = it has.
	Installed   string    `json:"installed,omitempty"`
	Unconfirmed time.Time `json:"unconfirmed,omitzero"`

	// Theft is how a ticket of the server was last used up by somebody else; nil = none was.
	Theft *Theft `json:"theft,omitempty"`

	// Reprovision is the value of AnnotationReprovision that was decided upon and
	// is not yet installed.
	Reprovision string `json:"reprovision,omitempty"`

	// BootRung is how the BMC was last brought to keep the one-time boot override
	// ("default" if as the standard says).
	BootRung string `json:"bootRung,omitempty"`
	// NoDiskBoot says why the BMC is no longer asked to have the server boot from its
	// disk once; nil = it is.
	NoDiskBoot *NoDiskBoot `json:"noDiskBoot,omitempty"`
	// Asked is a power request that was made and whose effect is awaited.
	Asked *PowerAsked `json:"asked,omitempty"`
	// BootsAfter is how long the server took, when it was last seen to, from its
	// power-on to its first request to the network.
	BootsAfter time.Duration `json:"bootsAfter,omitempty"`
	// FoundRunning is when the server, in Initial, was found to run what Ingot did not
	// start; zero = it was not, or that is not known.
	FoundRunning time.Time `json:"foundRunning,omitzero"`
	// Attempts counts the discoveries begun since the server was last Available, or the
	// boots for its claim that came to nothing.
	Attempts int `json:"attempts,omitempty"`
	// BootProblem says why what the server is to boot cannot be booted; nil = nothing
	// is known that speaks against it.
	BootProblem *BootProblem `json:"bootProblem,omitempty"`
	// Wiped is the outcome of the last wipe.
	Wiped []DiskWipe `json:"wiped,omitempty"`
	// MACs are the MAC addresses that count as the server's, by address. Identified is not
	// set in records from the time in which the probe's report counted, until one is noted
	// or the server enters another state.
	MACs       []ServerMAC `json:"macAddresses,omitempty"`
	Identified bool        `json:"identified,omitempty"`
	// Disks are all that the server is known to have, or to have had: a wipe has to
	// account for each. DisksAt is when a probe told of them first, or a person accepted
	// what a wipe reported; zero = never.
	Disks   []Disk    `json:"disks,omitempty"`
	DisksAt time.Time `json:"disksAt,omitzero"`
	// Missing are those of them that the report of the last wipe does not account for.
	Missing []MissingDisk `json:"missing,omitempty"`

	// Handled values of annotations that ask for something once.
	HandledOperation   string `json:"handledOperation,omitempty"`
	HandledReprovision string `json:"handledReprovision,omitempty"`
	HandledDiscover    string `json:"handledDiscover,omitempty"`
	HandledDisks       string `json:"handledDisks,omitempty"`
	// HandledBefore are values that were handled before those, as "annotation=value",
	// newest last: going back to one asks for nothing (law 1).
	HandledBefore []string `json:"handledBefore,omitempty"`

	// Reason and Message say what is wrong in state Error.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Restored is what versions that knew no Doubt said instead. It is only read.
	Restored bool `json:"restored,omitempty"`
	// Doubt says why the record may not be what was decided last; nil = it is.
	Doubt *Doubt `json:"doubt,omitempty"`

	// Failures counts the failed attempts at the present step, NotBefore is when it
	// may be tried again, and LastError what went wrong.
	Failures  int       `json:"failures,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	LastError string    `json:"lastError,omitempty"`
}

// SoughtFrom returns when the server was powered on to be discovered with its newest ticket,
// zero if it was not: from then on its firmware asks under its UUID.
func (r *ServerRecord) SoughtFrom() time.Time {
	t, a := r.Ticket, r.Asked
	switch {
	case t == nil || t.Purpose != PurposeDiscovery:
		return time.Time{}
	case a != nil && a.Want == PowerOn && !a.At.Before(t.ArmedAt):
		return a.At
	case r.State == StateDiscovery && !r.Since.Before(t.ArmedAt):
		return r.Since // it was asked to go off since
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

	// Failures counts the attempts in vain, NotBefore is when the next may be made.
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

// Release is a decided release.
type Release struct {
	Revision Revision  `json:"revision"` // the one that no longer holds the claim
	At       time.Time `json:"at"`
	Claim    ClaimName `json:"claim"`
}

// PowerAsked is a power request that was made.
type PowerAsked struct {
	Reset ResetKind `json:"reset"`
	Want  Power     `json:"want"` // the state that will show that it took effect
	At    time.Time `json:"at"`
	// Before is the power state that was read right before the request was sent; "" =
	// that is not known.
	Before Power `json:"before,omitempty"`
	// Reached is set once Want was read: after a restart nobody waits for it again.
	Reached bool `json:"reached,omitempty"`
	// Unsure is set before the request is sent, and until its answer has come: whether
	// it was carried out is not known. Tries counts such requests in a row.
	Unsure bool `json:"unsure,omitempty"`
	Tries  int  `json:"tries,omitempty"`
}

// Removal is a commit that took an object away.
type Removal struct {
	Revision Revision  `json:"revision"`
	At       time.Time `json:"at"`
	// Approved is set when no commit that descends from the revision in force took it
	// away, but a person approved that it is gone.
	Approved bool `json:"approved,omitempty"`
	// Tenant is the path of whose it was, see Tenants. One of the same name that is
	// somebody else's is another object.
	Tenant string `json:"tenant,omitempty"`
}

// IsOf reports whether what was taken away was a tenant's, as far as is known: nobody
// takes away what is called the same and is somebody else's.
func (r Removal) IsOf(tenant string) bool {
	return r.Tenant == "" || tenant == "" || r.Tenant == tenant
}

// RemovedObject is an object that a commit took away.
type RemovedObject struct {
	Identity Identity `json:"identity"`
	Removal
}

// UnreadableRecord is a server's record that is known by its name alone.
type UnreadableRecord struct {
	Server ServerName `json:"server"`
	Claim  ClaimName  `json:"claim,omitempty"` // whose own file names the server
	Since  time.Time  `json:"since"`
	Token  string     `json:"token"` // what Ingot-Approve names to have it given up
}

// IntentKind is what kind of decision an Intent is.
type IntentKind string

// The decisions that stand on the status branch before they are acted upon.
const (
	IntentBind        IntentKind = "Bind"
	IntentAdopt       IntentKind = "Adopt"
	IntentRelease     IntentKind = "Release" // and Retain
	IntentWipe        IntentKind = "Wipe"    // of a Released server
	IntentReprovision IntentKind = "Reprovision"
	IntentMaintenance IntentKind = "Maintenance"
	IntentPower       IntentKind = "Power" // spec.power of the claim changed
	IntentOperation   IntentKind = "Operation"
	IntentDiscover    IntentKind = "Discover" // of a server that was found running
)

// Intent is a decision that the status branch has to show before it is acted upon.
type Intent struct {
	Kind     IntentKind `json:"kind"`
	Value    string     `json:"value,omitempty"` // a claim's name, an annotation's value, a power state
	Revision Revision   `json:"revision,omitempty"`
	// At is the version of the record that showed it first; the store fills it in.
	At Version `json:"at,omitzero"`
}

// OperationOutcome is what became of a power operation.
type OperationOutcome string

// The outcomes of a power operation; it is empty while there is none.
const (
	OutcomeDone    OperationOutcome = "Done"    // the BMC accepted the request
	OutcomeRefused OperationOutcome = "Refused" // the BMC did not carry it out
	OutcomeUnknown OperationOutcome = "Unknown" // its answer was lost: it is not repeated
	OutcomeExpired OperationOutcome = "Expired" // it waited too long, and was not begun
)

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

// The reasons for doubt.
const (
	// DoubtFromStatusBranch is a record that the store lacked, or had an older one of.
	DoubtFromStatusBranch DoubtReason = "FromStatusBranch"
	// DoubtDisputed is a server of which two copies say different things, neither of
	// which is known to be the newer.
	DoubtDisputed DoubtReason = "Disputed"
	// DoubtInstallUnknown is a bound server that nothing shows to have been installed,
	// and nothing shows not to have been.
	DoubtInstallUnknown DoubtReason = "InstallUnknown"
	// DoubtUnreadable is a record that no copy of can be read.
	DoubtUnreadable DoubtReason = "RecordUnreadable"
)

// Doubt is why a record may not be what was decided last. It binds its own server
// only.
type Doubt struct {
	Reason  DoubtReason `json:"reason"`
	Message string      `json:"message,omitempty"`
	Since   time.Time   `json:"since"`
	// Unannounced is set when the copy comes from a status branch that is not written
	// before each act: what is merely asked for may have been done already.
	Unannounced bool `json:"unannounced,omitempty"`
	// Alternatives are what the copies of a Disputed server say.
	Alternatives []Alternative `json:"alternatives,omitempty"`
}

// Alternative is what one copy of a record says.
type Alternative struct {
	Token string      `json:"token"` // what Ingot-Approve names to have it chosen
	From  string      `json:"from"`  // store or status branch
	State ServerState `json:"state"`
	Claim ClaimName   `json:"claim,omitempty"`
}

// BMCRecord is what Ingot decided about one BMC.
type BMCRecord struct {
	Version Version `json:"version,omitzero"`
	Name    BMCName `json:"name"`
	// Fingerprint is the certificate that was pinned on first contact.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Address is where Fingerprint was pinned; a new address is pinned anew only
	// after the BMC's identity was checked.
	Address string `json:"address,omitempty"`

	HandledOperation string    `json:"handledOperation,omitempty"`
	Failures         int       `json:"failures,omitempty"`
	NotBefore        time.Time `json:"notBefore,omitzero"`
	// Reason and LastError say why the BMC is not Ready, Since since when.
	Reason    string    `json:"reason,omitempty"`
	LastError string    `json:"lastError,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// ClaimRecord is what Ingot decided about one claim. The binding itself is in
// the server's record.
type ClaimRecord struct {
	Version Version   `json:"version,omitzero"`
	Name    ClaimName `json:"name"`
	// Sequence is FleetRecord.Sequence of the revision that first held the claim:
	// who came first is served first.
	Sequence      int64     `json:"sequence"`
	FirstRevision Revision  `json:"firstRevision"`
	FirstSeen     time.Time `json:"firstSeen"`
}

// Applied is the newest revision that was planned with, and where it came from: the
// same commit of another repository, branch or path is another one.
type Applied struct {
	URL    string `json:"url"` // without scheme, user and .git, see CanonicalURL
	Branch string `json:"branch"`
	Path   string `json:"path"`
	Commit string `json:"commit"` // in hexadecimal
}

// IsZero reports whether nothing was applied yet.
func (a Applied) IsZero() bool { return a == Applied{} }

// Revision is the commit as revisions are written.
func (a Applied) Revision() Revision {
	if a.Commit == "" {
		return ""
	}
	return Revision(a.Branch + "@sha1:" + a.Commit)
}

// SameSource reports whether both come from the same folder of the same branch.
func (a Applied) SameSource(b Applied) bool {
	return a.URL == b.URL && a.Branch == b.Branch && a.Path == b.Path
}

// UnmarshalJSON also reads what was written before there was more than the revision:
// "main@sha1:<hex>", of which the URL and the path are not known.
func (a *Applied) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		branch, commit, _ := strings.Cut(text, "@sha1:")
		*a = Applied{Branch: branch, Commit: commit}
		return nil
	}
	type plain Applied
	return json.Unmarshal(raw, (*plain)(a))
}

// Absence is an object that is in force though Git lacks it, or has it otherwise, and
// no commit that descends from the revision applied says so.
type Absence struct {
	Identity Identity `json:"identity"`
	// Blob is the content that Git has now in its place, "" when it has none.
	Blob  string       `json:"blob,omitempty"`
	Since time.Time    `json:"since"`
	Cause AbsenceCause `json:"cause"`
	Token string       `json:"token"` // what Ingot-Approve names to have Git's word taken
}

// AbsenceCause is why an object is absent without a commit.
type AbsenceCause string

// The causes of an absence without a commit.
const (
	AbsentHistoryRewritten AbsenceCause = "HistoryRewritten" // the revision does not descend from the one applied
	AbsentSourceChanged    AbsenceCause = "SourceChanged"    // another URL, branch or path is configured
	AbsentAppliedUnknown   AbsenceCause = "AppliedUnknown"   // the revision applied cannot be had any more
)

// MaxAbsent is how many absences are recorded one by one; the others are counted.
const MaxAbsent = 2000

// FleetRecord is what Ingot decided about the fleet as a whole.
type FleetRecord struct {
	Version Version `json:"version,omitzero"`
	// Applied is the newest revision that was planned with, Sequence how many there were.
	Applied  Applied   `json:"applied,omitzero"`
	Sequence int64     `json:"sequence,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Absent is what is in force though Git lacks it, AbsentMore how many more than
	// MaxAbsent, AbsentToken what approves them all.
	Absent      []Absence `json:"absent,omitempty"`
	AbsentMore  int       `json:"absentMore,omitempty"`
	AbsentToken string    `json:"absentToken,omitempty"`
	// Holds are the lists that the guard holds back, oldest first, at most MaxHolds.
	Holds []GuardHold `json:"holds,omitempty"`
	// Letting are steps that were approved and not begun yet.
	Letting []Disruption `json:"letting,omitempty"`
	// Done are the disruptions that were decided upon within the guard's window without
	// an approval, oldest first.
	Done []Disruption `json:"done,omitempty"`
	// Removed are the objects that a commit took away and that a server still depends
	// on: its claim, its maintenance, its own manifest. It is saved with Applied.
	Removed []RemovedObject `json:"removed,omitempty"`
	// Unreadable are the servers of which no copy of the record can be read.
	Unreadable []UnreadableRecord `json:"unreadable,omitempty"`
	// Unknown is when nothing was known of the fleet, though it had servers that ran:
	// the claims of the first revision wait for approval. Zero otherwise.
	Unknown time.Time `json:"unknown,omitzero"`
	// UnknownToken is what approves them.
	UnknownToken string `json:"unknownToken,omitempty"`
}

// MaxHolds is how many lists the guard keeps.
const MaxHolds = 8

// GuardHold is a list of disruptive steps that waits for approval, or for room.
type GuardHold struct {
	Token    string       `json:"token"` // what Ingot-Approve must name
	Revision Revision     `json:"revision"`
	Since    time.Time    `json:"since"`
	Limit    int          `json:"limit"`
	Scope    string       `json:"scope,omitempty"` // the namespace whose limit it is, "" = the fleet's
	Steps    []Disruption `json:"steps"`
	// Until is when there is room for the list without approval; zero = never, for it
	// is longer than the limit.
	Until time.Time `json:"until,omitzero"`
}

// Disruption is one step that takes something away from a server's user.
type Disruption struct {
	Action string     `json:"action"` // release, retain, wipe, reprovision, maintenance, power-off, operation, discover
	Server ServerName `json:"server"`
	Claim  ClaimName  `json:"claim,omitempty"`
	// Value is what was asked for: an annotation's value, a ServerMaintenance's name.
	Value string `json:"value,omitempty"`
	// At is when it was decided upon, zero in lists that wait; Revision what asked.
	At       time.Time `json:"at,omitzero"`
	Revision Revision  `json:"revision,omitempty"`
}

// Same reports whether both are the same step, whenever it was decided upon.
func (d Disruption) Same(e Disruption) bool {
	return d.Action == e.Action && d.Server == e.Server && d.Claim == e.Claim && d.Value == e.Value
}

// Holder is the Ingot that writes the status branch.
type Holder struct {
	ID   string `json:"id"` // random for each process
	Host string `json:"host,omitempty"`
	// Machine and Boot tell the machine and its present boot from others, Namespace
	// the network namespace. They are digests, for machine IDs are not to be shown.
	Machine   string `json:"machine,omitempty"`
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Interval is how often it looks at the repository; TakeOverAfter how long it must
	// have been silent before another may take over unasked, 0 = never.
	Interval      time.Duration `json:"interval,omitempty"`
	TakeOverAfter time.Duration `json:"takeOverAfter,omitempty"`
}

// Published is what of the store the status branch is known to show. It is kept in
// the store alone.
type Published struct {
	Commit  string  `json:"commit"` // head of the status branch
	Version Version `json:"version,omitzero"`
	Fence   uint64  `json:"fence"`
	Holder  Holder  `json:"holder"`
	// Seen is the newest version that the status branch had when the records of both were
	// merged last, after which nothing was published. Leader after leader may be killed
	// before it publishes.
	Seen Version `json:"seen,omitzero"`
}

// Records are all records: what the store keeps durably and the status branch mirrors.
type Records struct {
	Fleet   FleetRecord
	BMCs    map[BMCName]*BMCRecord
	Servers map[ServerName]*ServerRecord
	Claims  map[ClaimName]*ClaimRecord
	// Endpoints are by name.
	Endpoints map[string]*EndpointRecord
}

// Observed is everything known but desired: records, and what was read from the
// world. It is a snapshot: nobody changes what its pointers point to.
type Observed struct {
	Records
	BMCFacts    map[BMCName]*BMCFacts
	ServerFacts map[ServerName]*ServerFacts
	Probes      map[ServerName]*ProbeReport
	BootStates  map[ServerName]*BootState
	Wipes       map[ServerName]*WipeReport
	// WipeProgress is kept no longer than the wipe goes on.
	WipeProgress map[ServerName]*WipeProgress
	Progress     map[ServerName]*Progress
	// EndpointFacts are by MAC address.
	EndpointFacts map[string]*EndpointFacts
	// Published is what of it the status branch shows.
	Published Published
}

// NewObserved returns an Observed with its maps made.
func NewObserved() *Observed {
	return &Observed{
		Records: Records{
			BMCs:    make(map[BMCName]*BMCRecord),
			Servers: make(map[ServerName]*ServerRecord),
			Claims:  make(map[ClaimName]*ClaimRecord),

			Endpoints: make(map[string]*EndpointRecord),
		},
		BMCFacts:     make(map[BMCName]*BMCFacts),
		ServerFacts:  make(map[ServerName]*ServerFacts),
		Probes:       make(map[ServerName]*ProbeReport),
		BootStates:   make(map[ServerName]*BootState),
		Wipes:        make(map[ServerName]*WipeReport),
		WipeProgress: make(map[ServerName]*WipeProgress),
		Progress:     make(map[ServerName]*Progress),

		EndpointFacts: make(map[string]*EndpointFacts),
	}
}
