package model

import (
	"cmp"
	"time"
)

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

// Applied is the newest revision that was planned with, and where it came from: the
// same commit of another repository, branch or path is another one.
type Applied struct {
	URL    string `json:"url"`    // without scheme, user and .git, see CanonicalURL
	Branch string `json:"branch"` // "" where no branch is followed
	// Ref is what the revision is named after where that is no branch: a tag, or "commit".
	Ref    string `json:"ref,omitempty"`
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
	return Revision(cmp.Or(a.Ref, a.Branch) + "@sha1:" + a.Commit)
}

// SameSource reports whether both come from the same folder of the same branch, or of tags
// and commits of the same repository: how these follow on one another their history says.
func (a Applied) SameSource(b Applied) bool {
	return a.URL == b.URL && a.Branch == b.Branch && a.Path == b.Path
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

// MaxAbsent is how many absences are recorded one by one; the others are counted.
const MaxAbsent = 2000

// FleetRecord is what Ingot decided about the fleet as a whole.
type FleetRecord struct {
	// Applied is the newest revision that was planned with, Sequence how many there were.
	Applied  Applied   `json:"applied,omitzero"`
	Sequence int64     `json:"sequence,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Tips are the commits of other revisions that were applied and that Applied does not
	// descend from, oldest first. Their ancestors change nothing.
	Tips []string `json:"tips,omitempty"`
	// Absent is what is in force though Git lacks it, AbsentMore how many more than
	// MaxAbsent, AbsentToken what approves them all.
	Absent      []Absence `json:"absent,omitempty"`
	AbsentMore  int       `json:"absentMore,omitempty"`
	AbsentToken string    `json:"absentToken,omitempty"`
	// Holds are the lists that the guard holds back, oldest first, at most MaxHolds.
	Holds []GuardHold `json:"holds,omitempty"`
	// ApprovedSteps are steps that were approved and not begun yet.
	ApprovedSteps []Disruption `json:"approvedSteps,omitempty"`
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
	// GapToken approves that servers which were found running after a long gap are switched off.
	GapToken string `json:"gapToken,omitempty"`
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
	// is longer than the limit, or Gap is set: the list was asked for by the first revision
	// that was seen after a long gap.
	Until time.Time `json:"until,omitzero"`
	Gap   bool      `json:"gap,omitempty"`
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
}
