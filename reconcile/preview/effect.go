package preview

import (
	"cmp"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Kind is what an effect is: a step of a proposal, or one of those below.
type Kind = proposal.Step

// The effects that no proposal has.
const (
	Install    Kind = "install"     // an install that is under way changes
	Pending    Kind = "pending"     // a change that waits until it is asked to be installed
	Cleanup    Kind = "cleanup"     // a server's disks are treated otherwise once it is released
	Wait       Kind = "wait"        // a claim has no server
	Withdraw   Kind = "withdraw"    // a claim that had no server is gone
	OtherImage Kind = "image"       // a name of images.yaml means another image
	Hold       Kind = "hold"        // a server is left alone
	BMCAdded   Kind = "bmc-added"   // a BMC is contacted
	BMCChanged Kind = "bmc-changed" // a BMC is contacted elsewhere, or otherwise
	BMCRemoved Kind = "bmc-removed" // a BMC is no longer contacted
	NoLonger   Kind = "no-longer"   // a step of the base does not happen
)

// Effect is one thing that a commit does.
type Effect struct {
	Kind   Kind             `json:"effect"`
	Server model.ServerName `json:"server,omitempty"`
	Claim  model.ClaimName  `json:"claim,omitempty"`
	BMC    model.BMCName    `json:"bmc,omitempty"`
	Image  string           `json:"image,omitempty"` // that is installed
	// Cleanup is how disks are wiped: none, quick or secure.
	Cleanup string `json:"cleanup,omitempty"`
	Message string `json:"message"`
	// Destructive is set when something is disturbed that runs.
	Destructive bool `json:"destructive,omitempty"`
	// Held is set when the guard holds it back, see Preview.Held.
	Held bool `json:"held,omitempty"`
	// Waits says what it is done only after, "" if it is done as soon as it is merged.
	Waits string `json:"waits,omitempty"`
	// Next says what a person can do about it, "" if nothing has to be done.
	Next string `json:"next,omitempty"`

	value string // distinguishes it from others of its kind
}

// key is equal for the same effect of two commits.
func (e Effect) key() Effect {
	e.Message, e.Waits, e.Next, e.Destructive = "", "", "", false
	return e
}

// thing is equal for two ways of one effect: held or not, with another image or cleanup. Operations are
// each another thing.
func (e Effect) thing() Effect {
	t := Effect{Kind: e.Kind, Server: e.Server, Claim: e.Claim}
	if e.Kind == proposal.StepOperation {
		t.value = e.value
	}
	return t
}

// Held is a list of steps that the guard holds back until a commit approves it.
type Held struct {
	Steps []model.Disruption `json:"steps"`
	// Limit is how many may be begun within the guard's window, of Namespace or of the whole fleet.
	Limit     int    `json:"limit"`
	Namespace string `json:"namespace,omitempty"`
	// Approve is the line of a commit message that approves the list, "" for one that is made
	// once Ingot holds it.
	Approve string `json:"approve,omitempty"`
	// Refuse is the command that takes the commit back that asked for the list; "" for one that is not merged.
	Refuse string `json:"refuse,omitempty"`
	// Until is when there is room for it without approval; zero = never.
	Until time.Time `json:"until,omitzero"`
}

// Verdict is the result as a whole, and the exit code of `ingot plan`.
type Verdict string

// The verdicts.
const (
	Nothing     Verdict = "nothing"     // nothing happens
	Changes     Verdict = "changes"     // something happens, and nothing that runs is disturbed
	Destructive Verdict = "destructive" // something that runs is disturbed, at once or once approved
	Wrong       Verdict = "wrong"       // manifests have errors
)

// Preview is what a commit does.
type Preview struct {
	Verdict Verdict        `json:"verdict"`
	Base    model.Revision `json:"base"`
	Head    model.Revision `json:"head"`
	// Effects are sorted by server, claim and BMC, the destructive ones first.
	Effects []Effect `json:"effects"`
	Held    []Held   `json:"held"`
	// Problems are those that Git has with the commit and has not without it.
	Problems []model.Problem `json:"problems"`
	// Notes say what is not known, or was assumed.
	Notes []string `json:"notes"`
}

// sort puts the effects and problems in order.
func (p *Preview) sort() {
	first := map[bool]int{false: 1}
	slices.SortStableFunc(p.Effects, func(a, b Effect) int {
		return cmp.Or(
			first[a.Destructive]-first[b.Destructive], cmp.Compare(a.Server, b.Server), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.BMC, b.BMC),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.value, b.value),
		)
	})
	model.SortProblems(p.Problems)
}

func (p *Preview) verdict() Verdict {
	switch {
	case model.HasErrors(p.Problems):
		return Wrong
	case slices.ContainsFunc(p.Effects, func(e Effect) bool { return e.Destructive }):
		return Destructive
	case len(p.Effects) > 0:
		return Changes
	}
	return Nothing
}
