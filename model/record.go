package model

import "time"

// UnreadableRecord is a server's record that is known by its name alone.
type UnreadableRecord struct {
	Server ServerName `json:"server"`
	Claim  ClaimName  `json:"claim,omitempty"` // whose own file names the server
	Since  time.Time  `json:"since"`
	Token  string     `json:"token"` // what Ingot-Approve names to have it given up
}

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
	IntentForget      IntentKind = "Forget"   // of one whose BMC is gone from Git
)

// The outcomes of a power operation; it is empty while there is none.
const (
	OutcomeDone    OperationOutcome = "Done"    // the BMC accepted the request
	OutcomeRefused OperationOutcome = "Refused" // the BMC did not carry it out, or it may not be done as things are
	OutcomeUnknown OperationOutcome = "Unknown" // its answer was lost: it is not repeated
	OutcomeExpired OperationOutcome = "Expired" // it waited too long, and was not begun

	OutcomeWithdrawn OperationOutcome = "Withdrawn" // Git took it back before it was begun
)

// The reasons for doubt.
const (
	// DoubtInstallUnknown is a bound server that nothing shows to have been installed,
	// and nothing shows not to have been.
	DoubtInstallUnknown = DoubtReason(ReasonInstallUnknown)
	// DoubtUnreadable is a record that no copy of can be read.
	DoubtUnreadable = DoubtReason(ReasonRecordUnreadable)
)

// BMCRecord is what Ingot decided about one BMC.
type BMCRecord struct {
	Name BMCName `json:"name"`
	// Fingerprint is the certificate that was pinned on first contact.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Address is where Fingerprint was pinned; a new address is pinned anew only
	// after the BMC's identity was checked.
	Address string `json:"address,omitempty"`

	HandledOperation string `json:"handledOperation,omitempty"`

	BMCScratch `json:"scratch,omitzero" decided:"-"`
}

// BMCScratch is how the last attempts at a BMC ended.
type BMCScratch struct {
	Failures  int       `json:"failures,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Reason and LastError say why the BMC is not Ready, Since since when.
	Reason    string    `json:"reason,omitempty"`
	LastError string    `json:"lastError,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// Accepted is DigestKey.Credentials of those that it accepted last, which it has Refused since.
	Accepted string   `json:"accepted,omitempty"`
	Refused  Refusals `json:"refused,omitzero"`
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

// The causes of an absence without a commit.
const (
	AbsentHistoryRewritten AbsenceCause = "HistoryRewritten" // the revision does not descend from the one applied
	AbsentSourceChanged    AbsenceCause = "SourceChanged"    // another URL, branch or path is configured
	AbsentAppliedUnknown   AbsenceCause = "AppliedUnknown"   // the revision applied is no longer available
	AbsentNameUnclear      AbsenceCause = "NameUnclear"      // it may have another name or tenant now
)

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
	// Marks are what is known of the status branch. Sequence is the number of the store's newest
	// commit that changed a record.
	Marks    Marks
	Sequence uint64
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
