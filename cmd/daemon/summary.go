package daemon

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
)

// Summary is the fleet at a glance: what GET /api/v1/status answers and
// `ingot status` shows. Lists are sorted by name.
type Summary struct {
	// Revision is the one that was acted upon last, empty before the first.
	Revision model.Revision `json:"revision,omitempty"`
	// Source says what is wrong with the watched branch as a whole; nil when all is well.
	Source *model.SourceState `json:"source,omitempty"`
	// Guard are the lists that wait for an approval, or for room in the guard's window.
	Guard []model.GuardHold `json:"guard,omitempty"`
	// Absent is what is in force though Git lacks it, nil when there is nothing.
	Absent   *AbsentSummary  `json:"absent,omitempty"`
	Servers  []ServerSummary `json:"servers"`
	Claims   []ClaimSummary  `json:"claims"`
	BMCs     []BMCSummary    `json:"bmcs"`
	Problems []model.Problem `json:"problems"`
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
}

// BMCSummary is one BMC at a glance.
type BMCSummary struct {
	Name    model.BMCName `json:"name"`
	State   string        `json:"state"` // Enabled, Pending or Error
	Address string        `json:"address,omitempty"`
	Since   time.Time     `json:"since,omitzero"`
	Why     string        `json:"why,omitempty"`
}

// ReadSummary sums up the files of the status branch. With an error it returns
// what could be read.
func ReadSummary(files map[string][]byte) (Summary, error) { return documentsOf(files).summarise() }

// summaryOf sums up a report: the same as ReadSummary once it is published.
func summaryOf(r *model.Report) (Summary, error) { return reportedDocuments(r).summarise() }

// document is what a summary needs of an object as the status branch shows it.
type document struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		BMCRef         model.LocalRef        `json:"bmcRef"`
		ServerClaimRef *model.ObjectRef      `json:"serverClaimRef"`
		Access         *model.InlineEndpoint `json:"access"`
		Protocol       model.Protocol        `json:"protocol"`
	} `json:"spec"`
	Status struct {
		State      string           `json:"state"`
		PowerState model.Power      `json:"powerState"`
		Phase      string           `json:"phase"`
		Server     model.ServerName `json:"server"`
		IP         string           `json:"ip"`
		Conditions conditions       `json:"conditions"`
	} `json:"status"`
	Record struct {
		Since time.Time `json:"since"`
	} `json:"record"`
}

// revisionDocument is what a summary needs of revision.yaml.
type revisionDocument struct {
	Applied model.Revision     `json:"lastAppliedRevision"`
	Source  *model.SourceState `json:"source"`
	Record  struct {
		Holds       []model.GuardHold `json:"holds"`
		Absent      []model.Absence   `json:"absent"`
		AbsentMore  int               `json:"absentMore"`
		AbsentToken string            `json:"absentToken"`
	} `json:"record"`
}

// problemsDocument is problems.yaml.
type problemsDocument struct {
	Problems []model.Problem `json:"problems"`
}

// summarise sums up all documents.
func (d documents) summarise() (Summary, error) {
	var s Summary
	var errs []error
	for _, path := range d.paths {
		if err := s.add(path, func(into any) error { return d.decode(path, into) }); err != nil {
			errs = append(errs, fmt.Errorf("read %s: %w", path, err))
		}
	}
	return s, errors.Join(errs...)
}

// add takes one document into the summary, by its path.
func (s *Summary) add(path string, decode func(into any) error) error {
	folder, _, _ := strings.Cut(path, "/")
	switch folder {
	case model.ReportRevision:
		var d revisionDocument
		err := decode(&d)
		s.Revision, s.Source, s.Guard = d.Applied, d.Source, d.Record.Holds
		if len(d.Record.Absent) > 0 {
			s.Absent = &AbsentSummary{d.Record.Absent, d.Record.AbsentMore, d.Record.AbsentToken}
		}
		return err
	case model.ReportProblems:
		var d problemsDocument
		err := decode(&d)
		s.Problems = d.Problems
		return err
	case "servers", "serverclaims", "bmcs":
	default:
		return nil
	}
	var d document
	if err := decode(&d); err != nil {
		return err
	}
	switch folder {
	case "servers":
		s.Servers = append(s.Servers, d.server())
	case "serverclaims":
		s.Claims = append(s.Claims, d.claim())
	default:
		s.BMCs = append(s.BMCs, d.bmc())
	}
	return nil
}

func (d *document) server() ServerSummary {
	s := ServerSummary{
		Name: model.ServerName(d.Metadata.Name), State: model.ServerState(d.Status.State), Power: d.Status.PowerState,
		BMC: model.BMCName(d.Spec.BMCRef.Name), Since: d.Record.Since, Why: d.Status.Conditions.why("Ready"),
	}
	if ref := d.Spec.ServerClaimRef; ref != nil {
		s.Claim = model.Named[model.ClaimName](ref.Namespace, ref.Name)
	}
	return s
}

func (d *document) claim() ClaimSummary {
	bound, ready := d.Status.Conditions.of("Bound"), d.Status.Conditions.of("Ready")
	c := ClaimSummary{
		Name: model.Named[model.ClaimName](d.Metadata.Namespace, d.Metadata.Name), State: ClaimUnbound,
		Server: d.Status.Server, Since: bound.LastTransitionTime.Time, Why: d.Status.Conditions.why("Bound"),
	}
	if bound.Status != metav1.ConditionTrue {
		return c
	}
	c.State, c.Why = ClaimBound, d.Status.Conditions.why("Ready")
	if ready.Status == metav1.ConditionTrue && ready.Reason == "Booted" {
		c.State, c.Since = ClaimBooted, ready.LastTransitionTime.Time
	}
	if unread := d.Status.Conditions.why("BMCReadable"); c.Why == "" {
		c.Why = unread
	}
	if u := d.Status.Conditions.of(plan.Unconfirmed); c.State == ClaimBound && u.Status == metav1.ConditionTrue {
		c.State, c.Since = ClaimUnconfirmed, u.LastTransitionTime.Time
	}
	if pending := d.Status.Conditions.of("PendingReprovision"); c.Why == "" && pending.Status == metav1.ConditionTrue {
		c.Why = saying(pending)
	}
	return c
}

func (d *document) bmc() BMCSummary {
	b := BMCSummary{
		Name: model.BMCName(d.Metadata.Name), State: d.Status.State,
		Since: d.Status.Conditions.of("Ready").LastTransitionTime.Time, Why: d.Status.Conditions.why("Ready"),
	}
	ip := d.Status.IP
	if d.Spec.Access != nil {
		ip = d.Spec.Access.IP
	}
	if ip != "" {
		b.Address = d.Spec.Protocol.Address(ip)
	}
	return b
}

// withLists returns s with empty lists for missing ones, which JSON would write
// as null.
func (s Summary) withLists() Summary {
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
