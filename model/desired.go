package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Revision is one commit of what is followed, written "main@sha1:<hex>" with the name of the
// branch or tag, or "commit@sha1:<hex>".
type Revision string

// Short is a revision with its hash cut to seven digits.
func (r Revision) Short() string {
	branch, hash, ok := strings.Cut(string(r), "@sha1:")
	if !ok || len(hash) < 7 {
		return string(r)
	}
	return branch + "@" + hash[:7]
}

// Name is the branch or tag that a revision is named after.
func (r Revision) Name() string {
	name, _, _ := strings.Cut(string(r), "@sha1:")
	return name
}

// Commit is the hash of a revision's commit.
func (r Revision) Commit() string {
	_, hash, _ := strings.Cut(string(r), "@sha1:")
	return hash
}

// Desired is what Git asks for: the objects decoded from one revision. It is
// never changed once made, nor are its maps, which revisions share; an object that did
// not change from one revision to the next is the same pointer in both, but for what
// stands for another in Claims.
type Desired struct {
	Revision Revision
	// URL and Path are where Revision comes from: the repository as CanonicalURL has
	// it, and the folder in it.
	URL, Path string
	// Tips are the commits of other revisions that were in force, see FleetRecord.
	Tips []string
	// NoBranch is set when Revision is named after a tag, or is a commit by itself.
	NoBranch bool
	// VerifiedBy is who signed Revision, "" where no signature is asked for.
	VerifiedBy string
	// Time is when this revision was taken over, from Ingot's own clock.
	Time time.Time

	Endpoints      map[string]*Endpoint
	BMCs           map[BMCName]*BMC
	BMCSecrets     map[string]*BMCSecret
	Servers        map[ServerName]*Server
	Claims         map[ClaimName]*ServerClaim // with what ServerBootConfigurations ask for
	Maintenances   map[string]*ServerMaintenance
	ReadinessRules map[string]*ServerReadinessRule
	Secrets        map[ObjectName]*Secret
	Images         *ImageCatalog // nil = there is none

	// SecretFiles is the folder of the secrets outside Git; "" = all are in Git.
	SecretFiles string
	// Problems are the files and objects that could not be used, in the order of
	// path and line.
	Problems []Problem
	// Quarantined are objects that stand in Git but cannot be used, and of which
	// no last good version is known, with the tenants who define them, "" where there are
	// none. Their absence is no deletion.
	Quarantined map[Identity][]string
	// KeptOverRestart is set while the revision is one that was kept over a restart and the
	// branch has not been looked at since: a newer one may have been acted upon.
	KeptOverRestart bool
	// Approvals are what the Ingot-Approve trailers name of all commits that came with
	// this revision or, since this process began, before it; at most MaxApprovals.
	Approvals []string
	// Removed are the objects that a commit took away, with the revision that did, since
	// the revision applied when this process began. An object that Desired lacks and
	// that is not among them is merely absent. One that comes back is taken out. Of
	// several of one name, each another tenant's, the newest is the last.
	Removed map[Identity][]Removal
	// Renamed are the commits that gave claims other names since the revision applied when this
	// process began, oldest first: same content, same namespace.
	Renamed []Renaming
	// Absent are objects that are in force though Git lacks them, or has them
	// otherwise, sorted by identity; AbsentToken approves them all.
	Absent      []Absence
	AbsentToken string
	// LastGood are objects in force that are not what Revision says, sorted by identity: their files
	// cannot be used, or files that cannot may have them.
	LastGood []LastGood
	// Source is what is wrong with the source as a whole ("" = nothing): the last
	// fetch failed, the path is missing, the tree is empty, history was rewritten.
	Source SourceState
}

// Renaming is a commit that gave claims other names. They change at once, so a name may be an old
// and a new one.
type Renaming struct {
	Revision Revision
	Names    map[ClaimName]ClaimName // new names by old ones
}

// NameNow is the current name of a claim that had a name when a renaming was followed; "" = none was.
func (d *Desired) NameNow(name ClaimName, followed Revision) ClaimName {
	last := func(r Renaming) bool { return r.Revision == followed }
	for _, r := range d.Renamed[slices.IndexFunc(d.Renamed, last)+1:] {
		name = cmp.Or(r.Names[name], name)
	}
	return name
}

// OldNames are the names that claims had in an earlier revision, by those that they have now, if they differ.
func (d *Desired) OldNames(before *Desired) map[ClaimName]ClaimName {
	names := make(map[ClaimName]ClaimName)
	for _, r := range d.Renamed[min(len(before.Renamed), len(d.Renamed)):] {
		was := maps.Clone(names)
		for old := range r.Names {
			delete(names, old)
		}
		for old, now := range r.Names {
			names[now] = cmp.Or(was[old], old)
		}
	}
	return names
}

// HasFile reports whether objects of a file are in force.
func (d *Desired) HasFile(file string) bool {
	return slices.ContainsFunc(d.objects(), func(o Object) bool {
		of, _ := o.Metadata().Position()
		return of == file
	})
}

// LastRenaming is the newest commit that gave claims other names, "" if there is none.
func (d *Desired) LastRenaming() Revision {
	if len(d.Renamed) == 0 {
		return ""
	}
	return d.Renamed[len(d.Renamed)-1].Revision
}

// LastGood is where an object stood that is in force as it was, since a revision. Behind are the files
// that may have it now and cannot be used, or "*" for any; none is Path alone.
type LastGood struct {
	Identity Identity `json:"identity"`
	Path     string   `json:"path"`
	Blob     string   `json:"blob"`
	Since    Revision `json:"since"`
	Behind   []string `json:"behind,omitempty"`
}

// RemovalOf is the newest commit that took a tenant's object away, if one did; "" is
// whoever's.
func (d *Desired) RemovalOf(id Identity, tenant string) (Removal, bool) {
	for _, r := range slices.Backward(d.Removed[id]) {
		if r.IsOf(tenant) {
			return r, true
		}
	}
	return Removal{}, false
}

// IsQuarantined reports whether an object stands in Git but cannot be used.
func (d *Desired) IsQuarantined(id Identity) bool { return len(d.Quarantined[id]) > 0 }

// IsQuarantinedOf reports whether what stands in Git and cannot be used may be a tenant's; "" is
// whoever's.
func (d *Desired) IsQuarantinedOf(id Identity, tenant string) bool {
	return slices.ContainsFunc(d.Quarantined[id], Removal{Tenant: tenant}.IsOf)
}

// MaybeUnreadable reports whether an object of that kind and name is quarantined; "" is any name.
func (d *Desired) MaybeUnreadable(kind Kind, name string) bool {
	for id := range d.Quarantined {
		if id.Kind == kind && (name == "" || id.Name == name) {
			return true
		}
	}
	return false
}

// SourceState is the state of the watched branch as a whole.
type SourceState struct {
	// Observed is the newest commit that was seen, Desired.Revision the one in force.
	Observed Revision `json:"observed,omitempty"`
	// Reason is empty when all is well, or one of the Source… reasons.
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Reasons for which the source is not as it should be.
const (
	SourceFetchFailed      = "FetchFailed"
	SourceEmpty            = "EmptySource"
	SourcePathMissing      = "PathMissing"
	SourceHistoryRewritten = "HistoryRewritten"
	SourceRejected         = "RevisionRejected"
	SourceNotVerified      = "NotVerified"
	SourceOlder            = "OlderRevision"
)

// Severity is how bad a Problem is.
type Severity string

// The severities: an error keeps the object from being used, a warning does not.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is something wrong in a manifest, for a person to correct.
type Problem struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`   // from 1; 0 = the file as a whole
	Column   int      `json:"column,omitempty"` // from 1
	Object   string   `json:"object,omitempty"` // "Kind namespace/name", if known
	Field    string   `json:"field,omitempty"`  // path of the field, spec.protocol.port
	Message  string   `json:"message"`          // what was found, what is allowed, the nearest known name
	Rule     Rule     `json:"-"`                // what kind of problem it is, if known
}

// NewDesired returns a Desired without objects, its maps made.
func NewDesired() *Desired {
	return &Desired{
		Endpoints:      make(map[string]*Endpoint),
		BMCs:           make(map[BMCName]*BMC),
		BMCSecrets:     make(map[string]*BMCSecret),
		Servers:        make(map[ServerName]*Server),
		Claims:         make(map[ClaimName]*ServerClaim),
		Maintenances:   make(map[string]*ServerMaintenance),
		ReadinessRules: make(map[string]*ServerReadinessRule),
		Secrets:        make(map[ObjectName]*Secret),
		Quarantined:    make(map[Identity][]string),
	}
}

// Applied is the revision with where it comes from, as it is recorded.
func (d *Desired) Applied() Applied {
	a := Applied{URL: d.URL, Branch: d.Revision.Name(), Path: d.Path, Commit: d.Revision.Commit()}
	if d.NoBranch {
		a.Branch, a.Ref = "", a.Branch
	}
	return a
}

// Add puts an object into its map, replacing one of the same identity.
func (d *Desired) Add(o Object) {
	switch o := o.(type) {
	case *Endpoint:
		d.Endpoints[o.Name] = o
	case *BMC:
		d.BMCs[BMCName(o.Name)] = o
	case *BMCSecret:
		d.BMCSecrets[o.Name] = o
	case *Server:
		d.addServer(o)
	case *ServerClaim:
		d.Claims[o.ClaimName()] = o
	case *ServerBootConfiguration:
		if c := o.Claim(); !o.ofDiscovery() {
			d.Claims[c.ClaimName()] = c
		}
	case *ServerMaintenance:
		d.Maintenances[o.Name] = o
	case *ServerReadinessRule:
		d.ReadinessRules[o.Name] = o
	case *ImageCatalog:
		d.Images = o
	case *Secret:
		d.Secrets[Named[ObjectName](o.Namespace, o.Name)] = o
	}
}

// Absence is how an object is listed that Git lacks without a commit, if it is.
func (d *Desired) Absence(id Identity) (Absence, bool) {
	if len(d.Absent) == 0 {
		return Absence{}, false // as good as always
	}
	i, found := slices.BinarySearchFunc(d.Absent, id.String(), func(a Absence, id string) int {
		return cmp.Compare(a.Identity.String(), id)
	})
	if !found {
		return Absence{}, false
	}
	return d.Absent[i], true
}

// Clone returns a copy with maps of its own that shares the objects.
func (d *Desired) Clone() *Desired {
	c := *d
	c.Endpoints = maps.Clone(d.Endpoints)
	c.BMCs = maps.Clone(d.BMCs)
	c.BMCSecrets = maps.Clone(d.BMCSecrets)
	c.Servers = maps.Clone(d.Servers)
	c.Claims = maps.Clone(d.Claims)
	c.Maintenances = maps.Clone(d.Maintenances)
	c.ReadinessRules = maps.Clone(d.ReadinessRules)
	c.Secrets = maps.Clone(d.Secrets)
	c.Quarantined = maps.Clone(d.Quarantined)
	return &c
}
