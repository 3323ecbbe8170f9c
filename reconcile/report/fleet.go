package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
)

// Fleet is fleet.yaml: the revision that is applied, the holds and problems of the fleet as a
// whole, and who wrote the branch.
type Fleet struct {
	Source
	Counts       Counts `json:"counts"`
	Holds        []Hold `json:"holds,omitempty"`
	HoldsLeftOut int    `json:"holdsLeftOut,omitempty"`
	// LastGood are objects that are in force as they were, because a file with errors may have them.
	LastGood        []model.LastGood `json:"lastGood,omitempty"`
	LastGoodLeftOut int              `json:"lastGoodLeftOut,omitempty"` // how many more have no room here
	Pools           []Pool           `json:"exhaustedPools,omitempty"`
	Problems        []model.Problem  `json:"problems"` // in the manifests, never nil
	ProblemsLeftOut int              `json:"problemsLeftOut,omitempty"`
	// CommitStatus says why the Git host shows no newer commit status. Only the API has it.
	CommitStatus *Trouble `json:"commitStatus,omitempty"`
	// Tenants and Policy are what of the configuration decides what a commit does, for commands that
	// plan before it is merged.
	Tenants model.Tenants     `json:"tenants,omitempty"`
	Policy  Policy            `json:"policy"`
	Fence   uint64            `json:"fence"`
	Holder  model.Holder      `json:"holder,omitzero"` // the writer
	Decided model.FleetRecord `json:"decided"`
}

// Source is how far the watched branch was read, and applied.
type Source struct {
	Observed model.Revision `json:"observedRevision,omitempty"`
	Applied  model.Revision `json:"lastAppliedRevision,omitempty"`
	Verified *Verified      `json:"verified,omitempty"`
	// Trouble is what is wrong with the watched branch as a whole; nil if it can be used.
	Trouble *Trouble `json:"trouble,omitempty"`
}

// Counts are the numbers of servers and claims by state.
type Counts struct {
	Servers map[model.ServerState]int `json:"servers,omitempty"`
	Claims  map[string]int            `json:"claims,omitempty"`
}

// Trouble is something that does not work.
type Trouble struct {
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// Verified is the revision in force and who signed it, where git.verify.mode asks for that.
type Verified struct {
	Revision model.Revision `json:"revision"`
	SignedBy string         `json:"signedBy"`
}

// Policy is what of the configuration decides what a commit does to machines.
type Policy struct {
	CleanupMode         string `json:"cleanupMode"`
	MaxDisruptions      int    `json:"maxDisruptions"`
	MaxPowerDisruptions int    `json:"maxPowerDisruptions"`
	GuardWindow         string `json:"guardWindow"` // as Go writes durations
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
		GuardWindow: p.GuardWindow.String(), AllowPlaintextSecrets: p.PlaintextSecrets,
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
		return fmt.Errorf("read policy.guardWindow of %s: %w", model.ReportFleet, err)
	}
	to.CleanupMode, to.MaxDisruptions, to.MaxPowerDisruptions = p.CleanupMode, p.MaxDisruptions, p.MaxPowerDisruptions
	to.GuardWindow, to.PlaintextSecrets, to.BMCNetworks = window, p.AllowPlaintextSecrets, nil
	for _, n := range p.BMCNetworks {
		to.BMCNetworks = append(to.BMCNetworks, model.BMCNetwork(n))
	}
	return nil
}

func (v *view) fleetDocument(r *model.Report) *Fleet {
	d, fleet := v.in.Desired, v.in.Observed.Fleet
	doc := &Fleet{
		Source: Source{Observed: d.Source.Observed, Applied: fleet.Applied.Revision()}, Counts: v.counts(), Decided: decidedFleet(fleet),
		Pools: ExhaustedPools(v.in.Pools), Fence: r.Fence, Holder: r.Holder, Tenants: v.in.Policy.Tenants, Policy: policyOf(&v.in.Policy),
		LastGood: shownLastGood(d.LastGood),
	}
	doc.Observed = cmp.Or(doc.Observed, d.Revision)
	if d.VerifiedBy != "" {
		doc.Verified = &Verified{d.Revision, shownText(d.VerifiedBy)}
	}
	if d.Source.Reason != "" {
		doc.Trouble = &Trouble{d.Source.Reason, shownText(d.Source.Message), d.Source.Since}
	}
	problems := v.problems()
	doc.Problems = append([]model.Problem{}, worstKept(problems, maxShownList, bySeverity)...)
	doc.ProblemsLeftOut, doc.LastGoodLeftOut = len(problems)-len(doc.Problems), len(d.LastGood)-len(doc.LastGood)
	doc.Holds, doc.HoldsLeftOut = v.holds()
	return doc
}

func (v *view) counts() Counts {
	c := Counts{make(map[model.ServerState]int), make(map[string]int)}
	for _, s := range v.Servers {
		c.Servers[s.Record.Life.State]++
	}
	for _, claim := range v.Claims {
		state := ClaimUnbound
		if s := v.servers[claim.Server]; s != nil {
			state, _ = v.server(s).claimState(claim.Manifest)
		}
		c.Claims[state]++
	}
	return c
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
