package report

import (
	"fmt"
	"net/netip"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// Revision is revision.yaml: what is applied, what waits, and who wrote the branch.
type Revision struct {
	Observed model.Revision `json:"observedRevision,omitempty"`
	Applied  model.Revision `json:"lastAppliedRevision,omitempty"`
	Verified *Verified      `json:"verified,omitempty"`
	Source   *Source        `json:"source,omitempty"`
	Guard    []Guard        `json:"guard,omitempty"`
	Absent   *Absent        `json:"absentWithoutCommit,omitempty"`
	// LastGood are objects that are in force as they were, for files that cannot be used may have them.
	LastGood []model.LastGood `json:"lastGood,omitempty"`
	// LastGoodLeftOut is how many more objects are in force as they were.
	LastGoodLeftOut int    `json:"lastGoodLeftOut,omitempty"`
	Pools           []Pool `json:"exhaustedPools,omitempty"`
	// Tenants are git.tenants, for those who check manifests before they are merged.
	Tenants model.Tenants `json:"tenants,omitempty"`
	// Policy is what else of the configuration decides what a commit does, for those who plan
	// before it is merged.
	Policy Policy `json:"policy"`
	// Fence and Holder say who wrote the branch.
	Fence   uint64            `json:"fence"`
	Holder  model.Holder      `json:"holder,omitzero"`
	Decided model.FleetRecord `json:"decided"`
}

// Absent is what is in force though Git lacks it.
type Absent struct {
	Message string `json:"message"`
	Approve string `json:"approve"` // the line of the commit message that approves all of their removals
	Count   int    `json:"count"`
}

// Verified is the revision in force and who signed it, where git.verify.mode asks for that.
type Verified struct {
	Revision model.Revision `json:"revision"`
	SignedBy string         `json:"signedBy"`
}

// Source says what is wrong with the watched branch as a whole.
type Source struct {
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// Guard is one list of steps that the guard holds back.
type Guard struct {
	Message string             `json:"message"`
	Approve string             `json:"approve"` // the line of the commit message that approves it
	Limit   int                `json:"limit"`
	Since   time.Time          `json:"since"`
	Until   time.Time          `json:"until,omitzero"` // when there is room for it without approval
	Steps   []model.Disruption `json:"steps"`
	LeftOut string             `json:"leftOut,omitempty"`
}

// Problems is problems.yaml: every manifest that was refused.
type Problems struct {
	Problems []model.Problem `json:"problems"`
	LeftOut  string          `json:"leftOut,omitempty"`
}

// Policy is what of the configuration decides what a commit does to machines.
type Policy struct {
	CleanupMode         string   `json:"cleanupMode"`
	MaxDisruptions      int      `json:"maxDisruptions"`
	MaxPowerDisruptions int      `json:"maxPowerDisruptions"`
	GuardWindow         string   `json:"guardWindow"` // as Go writes durations
	Architectures       []string `json:"architectures,omitempty"`
	// Strict is git.strict.
	Strict bool `json:"strict"`
	// AllowPlaintextSecrets is git.allowPlaintextSecrets.
	AllowPlaintextSecrets bool `json:"allowPlaintextSecrets"`
	// BMCNetworks are bmc.networks, none of which means any.
	BMCNetworks []bmcNetwork `json:"bmcNetworks,omitempty"`
}

// bmcNetwork is a model.BMCNetwork that is written and read in one way only.
type bmcNetwork struct {
	Prefix netip.Prefix `json:"prefix"`
	Plain  bool         `json:"plain,omitempty"`
}

func policyOf(p *policy.Options) Policy {
	shown := Policy{
		CleanupMode: p.CleanupMode, MaxDisruptions: p.MaxDisruptions, MaxPowerDisruptions: p.MaxPowerDisruptions,
		GuardWindow: p.GuardWindow.String(), Architectures: p.Architectures, Strict: p.Strict,
		AllowPlaintextSecrets: p.PlaintextSecrets,
	}
	for _, n := range p.BMCNetworks {
		shown.BMCNetworks = append(shown.BMCNetworks, bmcNetwork(n))
	}
	return shown
}

// Apply sets the policy that the status branch shows.
func (p *Policy) Apply(to *policy.Options) error {
	window, err := time.ParseDuration(p.GuardWindow)
	if err != nil {
		return fmt.Errorf("read policy.guardWindow of %s: %w", model.ReportRevision, err)
	}
	to.CleanupMode, to.MaxDisruptions, to.MaxPowerDisruptions = p.CleanupMode, p.MaxDisruptions, p.MaxPowerDisruptions
	to.GuardWindow, to.Architectures = window, p.Architectures
	to.Strict, to.PlaintextSecrets, to.BMCNetworks = p.Strict, p.AllowPlaintextSecrets, nil
	for _, n := range p.BMCNetworks {
		to.BMCNetworks = append(to.BMCNetworks, model.BMCNetwork(n))
	}
	return nil
}

func (v *view) revisionDocument(r *model.Report) *Revision {
	d, fleet := v.in.Desired, v.in.Observed.Fleet
	doc := &Revision{
		Observed: d.Source.Observed, Applied: fleet.Applied.Revision(), Decided: decidedFleet(fleet), Pools: ExhaustedPools(v.in.Pools),
		Fence: r.Fence, Holder: r.Holder,
		Tenants: v.in.Policy.Tenants, Policy: policyOf(&v.in.Policy),
	}
	if doc.Observed == "" {
		doc.Observed = d.Revision
	}
	if d.VerifiedBy != "" {
		doc.Verified = &Verified{d.Revision, shownText(d.VerifiedBy)}
	}
	if d.Source.Reason != "" {
		doc.Source = &Source{d.Source.Reason, shownText(d.Source.Message), d.Source.Since}
	}
	doc.LastGood = shownLastGood(d.LastGood)
	doc.LastGoodLeftOut = len(d.LastGood) - len(doc.LastGood)
	for i, g := range fleet.Holds {
		shown := doc.Decided.Holds[i].Steps
		gd := Guard{
			Message: guardText(&g), Approve: proposal.ApproveLine(g.Token), Limit: g.Limit, Since: g.Since, Until: g.Until, Steps: shown,
		}
		if more := len(g.Steps) - len(shown); more > 0 {
			gd.LeftOut = text.Plural(more, "step")
		}
		doc.Guard = append(doc.Guard, gd)
	}
	if n := len(fleet.Absent) + fleet.AbsentMore; n > 0 {
		doc.Absent = &Absent{Message: absentText(n), Approve: proposal.ApproveLine(fleet.AbsentToken), Count: n}
	}
	return doc
}

// shownLastGood are as many of the objects that are in force as they were as there is room for.
func shownLastGood(all []model.LastGood) []model.LastGood {
	r := room{maxShownLastGood}
	return kept(all, func(o any) bool {
		for _, file := range o.(*model.LastGood).Behind {
			r.takes(len(file) + 8)
		}
		return r.fitsWhole(o)
	})
}

// guardText says what a list waits for.
func guardText(g *model.GuardHold) string {
	refuse := "; to refuse them: " + proposal.Refuse(g.Revision)
	if g.Gap {
		return fmt.Sprintf("%s of revision %s wait for an approval: no Ingot had run for long, so later decisions may be lost, and these servers run%s",
			text.Plural(len(g.Steps), "step"), g.Revision, refuse)
	}
	what := "the fleet"
	if g.Scope != "" {
		what = "namespace " + g.Scope
	}
	says := fmt.Sprintf("%s of revision %s would be more than the limit of %d within the guard's window for %s", text.Plural(len(g.Steps), "step"), g.Revision, g.Limit, what)
	if !g.Until.IsZero() {
		says += "; there is room at " + text.Time(g.Until)
	}
	return says + refuse
}

func absentText(n int) string {
	return fmt.Sprintf("%s in force though Git lacks them or has them otherwise, and no commit that follows on the revision applied says so", text.Plural(n, "object"))
}
