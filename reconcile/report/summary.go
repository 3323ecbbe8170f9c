package report

import (
	"cmp"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
)

// Summary is the fleet at a glance: what GET /api/v1/status answers and
// `ingot status` shows. Lists are sorted by name, in which digits are numbers.
type Summary struct {
	// Revision is the one that was acted upon last, empty before the first.
	Revision model.Revision `json:"revision,omitempty"`
	// SignedBy is who signed the revision in force, empty where no signature is asked for.
	SignedBy string `json:"signedBy,omitempty"`
	// Source says what is wrong with the watched branch as a whole; nil when all is well.
	Source *model.SourceState `json:"source,omitempty"`
	// CommitStatus says why the Git host shows no newer commit status; nil when all is well.
	// A daemon alone knows: the status branch does not say.
	CommitStatus *Trouble `json:"commitStatus,omitempty"`
	// Guard are the lists that wait for an approval, or for room in the guard's window.
	Guard []model.GuardHold `json:"guard,omitempty"`
	// Absent is what is in force though Git lacks it, nil when there is nothing.
	Absent   *AbsentSummary  `json:"absent,omitempty"`
	Servers  []ServerSummary `json:"servers"`
	Claims   []ClaimSummary  `json:"claims"`
	BMCs     []BMCSummary    `json:"bmcs"`
	Problems []model.Problem `json:"problems"`
}

// Trouble is something that does not work.
type Trouble struct {
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// AbsentSummary is what is in force though Git lacks it, or has it otherwise, and no
// commit that follows on the revision applied says so.
type AbsentSummary struct {
	Objects []model.Absence `json:"objects"`
	More    int             `json:"more,omitempty"` // than are listed
	Token   string          `json:"token"`          // approves all of them
}

// ServerSummary is one server at a glance.
type ServerSummary struct {
	Name  model.ServerName  `json:"name"`
	State model.ServerState `json:"state"`
	Power model.Power       `json:"power,omitempty"`
	BMC   model.BMCName     `json:"bmc,omitempty"`
	Claim model.ClaimName   `json:"claim,omitempty"`
	Since time.Time         `json:"since,omitzero"` // when State was entered
	Why   string            `json:"why,omitempty"`  // what it waits for, and who has to act
	// Decommissioned is set for one that nothing is awaited of: Why says when it is forgotten.
	Decommissioned bool `json:"decommissioned,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
}

// ClaimState is what has become of a claim.
type ClaimState string

// The states of a claim. Bound says that it has a server, Booted that the server
// reported that what was claimed runs, Unconfirmed that it should run by now and did not.
const (
	ClaimUnbound     ClaimState = "Unbound"
	ClaimBound       ClaimState = "Bound"
	ClaimUnconfirmed ClaimState = "Unconfirmed"
	ClaimBooted      ClaimState = "Booted"
)

// ClaimSummary is one claim at a glance.
type ClaimSummary struct {
	Name   model.ClaimName  `json:"name"`
	State  ClaimState       `json:"state"`
	Server model.ServerName `json:"server,omitempty"`
	Since  time.Time        `json:"since,omitzero"` // when State was entered
	Why    string           `json:"why,omitempty"`  // what it waits for, and who has to act
	Image  string           `json:"image,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
}

// BMCSummary is one BMC at a glance.
type BMCSummary struct {
	Name    model.BMCName `json:"name"`
	State   string        `json:"state"` // Enabled, Pending or Error
	Address string        `json:"address,omitempty"`
	Since   time.Time     `json:"since,omitzero"`
	Why     string        `json:"why,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
}

// ReadSummary sums up the files of the status branch. With an error it returns
// what could be read.
func ReadSummary(files map[string][]byte) (Summary, error) { return filesOf(files).summarise() }

// SummaryOf sums up a report: the same as ReadSummary once it is published.
func SummaryOf(r *model.Report) Summary {
	s, _ := reportedBy(r).summarise() // there is nothing to be read that could fail
	return s
}

// summarise sums up all documents.
func (d documents) summarise() (Summary, error) {
	var s Summary
	var errs []error
	for _, path := range d.paths {
		doc, err := d.at(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.Add(doc)
	}
	slices.SortFunc(s.Servers, func(a, b ServerSummary) int { return text.CompareNatural(string(a.Name), string(b.Name)) })
	slices.SortFunc(s.Claims, func(a, b ClaimSummary) int { return text.CompareNatural(string(a.Name), string(b.Name)) })
	slices.SortFunc(s.BMCs, func(a, b BMCSummary) int { return text.CompareNatural(string(a.Name), string(b.Name)) })
	return s, errors.Join(errs...)
}

// Add takes one document into the summary.
func (s *Summary) Add(doc any) {
	switch d := doc.(type) {
	case *Revision:
		s.Revision, s.Guard = d.Applied, d.Decided.Holds
		if d.Verified != nil {
			s.SignedBy = d.Verified.SignedBy
		}
		if d.Source != nil {
			s.Source = &model.SourceState{Reason: d.Source.Reason, Message: d.Source.Message, Since: d.Source.Since}
		}
		if len(d.Decided.Absent) > 0 {
			s.Absent = &AbsentSummary{d.Decided.Absent, d.Decided.AbsentMore, d.Decided.AbsentToken}
		}
	case *Problems:
		s.Problems = d.Problems
	case *Document:
		switch status := d.Status.(type) {
		case ServerStatus:
			s.Servers = append(s.Servers, serverSummary(d, status))
		case ClaimStatus:
			s.Claims = append(s.Claims, claimSummary(d, status))
		case BootConfigurationStatus:
			if of, inGit := requested(d, status); inGit {
				s.Claims = append(s.Claims, claimSummary(d, of))
			}
		case BMCStatus:
			s.BMCs = append(s.BMCs, bmcSummary(d, status))
		}
	}
}

func serverSummary(d *Document, status ServerStatus) ServerSummary {
	s := ServerSummary{
		Name: model.ServerName(d.Metadata.Name), State: status.State, Power: status.PowerState, Labels: d.Metadata.Labels,
		Why: cmp.Or(conditions(status.Conditions).why(typeReady), conditions(status.Conditions).why(typeMaintenanceApproved)),
	}
	s.Decommissioned = conditions(status.Conditions).of(typeReady).Reason == model.ReasonDecommissioned
	if spec, _ := d.Spec.(ServerSpec); spec.BMCRef != nil {
		s.BMC = model.BMCName(spec.BMCRef.Name)
	}
	if rec, _ := d.Decided.(*model.ServerRecord); rec != nil {
		s.Since, s.Claim = rec.Life.Since, rec.Claim.Name
	}
	return s
}

// requested is a boot configuration's status as a claim's, if it is one in Git and none that
// Ingot made.
func requested(d *Document, status BootConfigurationStatus) (st ClaimStatus, inGit bool) {
	rec, _ := d.Decided.(*model.ClaimRecord)
	return ClaimStatus{Server: status.Server, Conditions: status.Conditions}, rec != nil
}

func claimSummary(d *Document, status ClaimStatus) ClaimSummary {
	conds := conditions(status.Conditions)
	bound, ready := conds.of(typeBound), conds.of(typeReady)
	c := ClaimSummary{
		Name: model.Identity{Kind: model.Kind(d.Kind), Namespace: d.Metadata.Namespace, Name: d.Metadata.Name}.ClaimName(), State: ClaimUnbound,
		Server: status.Server, Since: bound.LastTransitionTime.Time, Why: conds.why(typeBound),
		Image: imageOfClaim(d), Labels: d.Metadata.Labels,
	}
	if bound.Status != metav1.ConditionTrue {
		return c
	}
	c.State, c.Why = ClaimBound, conds.why(typeReady)
	if ready.Status == metav1.ConditionTrue && ready.Reason == reasonBooted {
		c.State, c.Since = ClaimBooted, ready.LastTransitionTime.Time
	}
	c.Why = cmp.Or(c.Why, conds.why(model.ConditionBMCReadable), conds.why(typeMaintenanceApproved))
	if u := conds.of(model.ReasonUnconfirmed); c.State == ClaimBound && u.Status == metav1.ConditionTrue {
		c.State, c.Since = ClaimUnconfirmed, u.LastTransitionTime.Time
	}
	if c.Why == "" {
		c.Why = saying(conds.besides())
	}
	return c
}

// imageOfClaim is what a claim, or a ServerBootConfiguration, asks for.
func imageOfClaim(d *Document) string {
	switch spec := d.Spec.(type) {
	case model.ServerClaimSpec:
		return spec.Image
	case BootConfigurationSpec:
		return spec.Image
	}
	return ""
}

func bmcSummary(d *Document, status BMCStatus) BMCSummary {
	conds := conditions(status.Conditions)
	b := BMCSummary{
		Name: model.BMCName(d.Metadata.Name), State: status.State, Labels: d.Metadata.Labels,
		Since: conds.of(typeReady).LastTransitionTime.Time, Why: conds.why(typeReady),
	}
	spec, _ := d.Spec.(BMCSpec)
	ip := status.IP
	if spec.Access != nil {
		ip = spec.Access.IP
	}
	if ip != "" {
		b.Address = spec.Protocol.Address(ip)
	}
	return b
}

// WithLists returns s with empty lists for missing ones, which JSON would write
// as null.
func (s Summary) WithLists() Summary {
	s.Servers, s.Claims = orEmpty(s.Servers), orEmpty(s.Claims)
	s.BMCs, s.Problems = orEmpty(s.BMCs), orEmpty(s.Problems)
	return s
}

func orEmpty[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}
