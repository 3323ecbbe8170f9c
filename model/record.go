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

// ServerRecord is what Ingot decided about one server and cannot observe again.
// reconcile alone writes it; the status branch mirrors it.
type ServerRecord struct {
	Name      ServerName  `json:"name"`
	BMC       BMCName     `json:"bmc"`
	SystemURI string      `json:"systemURI"`
	UUID      string      `json:"uuid"` // canonical
	State     ServerState `json:"state"`
	Since     time.Time   `json:"since"` // when State was entered
	// Back is where Maintenance and Error return to.
	Back ServerState `json:"back,omitempty"`

	// Claim is the claim that the server is bound to, or was when it was Released
	// with policy Retain; ClaimedAt when it was bound.
	Claim     ClaimName `json:"claim,omitempty"`
	ClaimedAt time.Time `json:"claimedAt,omitzero"`
	// Release is the decision, taken once the guard let it pass, to release.
	Release *Release `json:"release,omitempty"`
	// Ticket is the newest boot ticket, open or ended; Serial counts them.
	Ticket *Ticket `json:"ticket,omitempty"`
	Serial int     `json:"serial,omitempty"`
	// Installed is the digest of what the claim's boot ticket installed.
	Installed string `json:"installed,omitempty"`

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
	// Attempts counts the discoveries begun since the server was last Available, or the
	// boots for its claim that came to nothing.
	Attempts int `json:"attempts,omitempty"`
	// BootProblem says why what the server is to boot cannot be booted; nil = nothing
	// is known that speaks against it.
	BootProblem *BootProblem `json:"bootProblem,omitempty"`
	// Wiped is the outcome of the last wipe.
	Wiped []DiskWipe `json:"wiped,omitempty"`
	// Missing are disks that the server was discovered with and that the report of the
	// last wipe lacks.
	Missing []MissingDisk `json:"missing,omitempty"`

	// Handled values of annotations that ask for something once.
	HandledOperation   string `json:"handledOperation,omitempty"`
	HandledReprovision string `json:"handledReprovision,omitempty"`
	HandledDiscover    string `json:"handledDiscover,omitempty"`
	// HandledBefore are values that were handled before those, as "annotation=value",
	// newest last: going back to one asks for nothing (law 1).
	HandledBefore []string `json:"handledBefore,omitempty"`

	// Reason and Message say what is wrong in state Error.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Restored is set while the record is what the status branch said and the
	// server's BMC has not answered since (law 3).
	Restored bool `json:"restored,omitempty"`

	// Failures counts the failed attempts at the present step, NotBefore is when it
	// may be tried again, and LastError what went wrong.
	Failures  int       `json:"failures,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	LastError string    `json:"lastError,omitempty"`
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

// MissingDisk is a disk that is not where it was. Name, Serial and Model are as a
// probe once reported them, and bounded.
type MissingDisk struct {
	Name   string `json:"name"`
	Serial string `json:"serial,omitempty"`
	Model  string `json:"model,omitempty"`
	// Gone is set once a person, who was told of it, asked for the wipe all the same.
	Gone bool `json:"gone,omitempty"`
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
	// Reached is set once Want was read: after a restart nobody waits for it again.
	Reached bool `json:"reached,omitempty"`
}

// BMCRecord is what Ingot decided about one BMC.
type BMCRecord struct {
	Name BMCName `json:"name"`
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
	Name ClaimName `json:"name"`
	// Sequence is FleetRecord.Sequence of the revision that first held the claim:
	// who came first is served first.
	Sequence      int64     `json:"sequence"`
	FirstRevision Revision  `json:"firstRevision"`
	FirstSeen     time.Time `json:"firstSeen"`
}

// FleetRecord is what Ingot decided about the fleet as a whole.
type FleetRecord struct {
	// Applied is the newest revision that was planned with, Sequence how many there were.
	Applied  Revision  `json:"applied,omitempty"`
	Sequence int64     `json:"sequence,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Guard is what the guard holds back, nil when nothing.
	Guard *GuardHold `json:"guard,omitempty"`
	// Letting are steps that were approved and not begun yet.
	Letting []Disruption `json:"letting,omitempty"`
	// Approved are the newest hashes that commits approved.
	Approved []string `json:"approved,omitempty"`
	// Restored is when records were read back from the status branch; until every
	// Reserved server's BMC has answered nothing is acted upon. Zero otherwise.
	Restored time.Time `json:"restored,omitzero"`
}

// GuardHold is a list of disruptive steps that waits for approval.
type GuardHold struct {
	Revision Revision     `json:"revision"`
	Hash     string       `json:"hash"` // what Ingot-Approve must name
	Since    time.Time    `json:"since"`
	Limit    int          `json:"limit"`
	Steps    []Disruption `json:"steps"`
}

// Disruption is one step that takes something away from a server's user.
type Disruption struct {
	Action string     `json:"action"` // release, retain, reprovision
	Server ServerName `json:"server"`
	Claim  ClaimName  `json:"claim"`
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
