package preview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// Kind is what kind of effect a commit has.
type Kind string

// The kinds of effects. Those of a machine that runs something for somebody are destructive,
// but for the ones that leave it as it is.
const (
	Bind        Kind = "bind"        // a claim gets a free server, which is installed
	Adopt       Kind = "adopt"       // a claim gets a server as it runs
	Rename      Kind = "rename"      // a claim keeps its server under another name
	Keep        Kind = "keep"        // a server that was to be released stays with its claim
	Release     Kind = "release"     // a server is taken from its claim, and wiped
	Retain      Kind = "retain"      // a server is taken from its claim, and kept as it is
	Wipe        Kind = "wipe"        // the disks of a server that was kept are wiped
	Reprovision Kind = "reprovision" // a server is installed again
	Install     Kind = "install"     // what is being installed is another
	Pending     Kind = "pending"     // a change that waits until it is asked to be installed
	Boot        Kind = "boot"        // a server boots from elsewhere from its next boot on
	Cleanup     Kind = "cleanup"     // what becomes of a server's disks once it is released is another
	Maintain    Kind = "maintenance" // a server goes out of service
	Return      Kind = "return"      // a server comes back into service
	PowerOn     Kind = "power-on"    // the claim wants its server On
	PowerOff    Kind = "power-off"   // the claim wants its server Off
	Operation   Kind = "operation"   // what an annotation asks for once
	Discover    Kind = "discover"    // a server is discovered by its probe
	Touch       Kind = "touch"       // anything else that is asked of a machine
	Setting     Kind = "setting"     // an indicator, a boot order, an annotation that asks a machine for nothing
	Wait        Kind = "wait"        // a claim that has no server
	Withdraw    Kind = "withdraw"    // a claim is gone that had no server
	Hold        Kind = "hold"        // a server is left alone
	Forget      Kind = "forget"      // a server is forgotten, and left as it is
	BMCAdded    Kind = "bmc-added"   // a BMC is to be spoken with
	BMCChanged  Kind = "bmc-changed" // a BMC is elsewhere, or takes another password
	BMCRemoved  Kind = "bmc-removed" // a BMC is no longer contacted
	NoLonger    Kind = "no-longer"   // what would have happened does not
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

	value string // tells it from others of its kind
}

// key is equal for the same effect of two commits.
func (e *Effect) key() string {
	held := ""
	if e.Held {
		held = "held"
	}
	return strings.Join([]string{string(e.Kind), string(e.Server), string(e.Claim), string(e.BMC), e.Image, e.Cleanup, held, e.value}, "\x00")
}

// thing is equal for effects of which one is the other in another way: no longer held back, with another
// image, with disks wiped otherwise. Operations are each another thing.
func (e *Effect) thing() string {
	value := ""
	if e.Kind == Operation {
		value = e.value
	}
	return strings.Join([]string{string(e.Kind), string(e.Server), string(e.Claim), value}, "\x00")
}

// Held is a list of steps that the guard holds back until a commit approves it.
type Held struct {
	Steps []model.Disruption `json:"steps"`
	// Limit is how many are let be begun within the guard's window, of Namespace or of the
	// whole fleet.
	Limit     int    `json:"limit"`
	Namespace string `json:"namespace,omitempty"`
	// Approve is the line of a commit message that approves the list, "" for one that is made
	// once Ingot holds it.
	Approve string `json:"approve,omitempty"`
	// Until is when there is room for it without approval; zero = never.
	Until time.Time `json:"until,omitzero"`
}

// Verdict is what all comes to, and the exit code of `ingot plan`.
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

// Servers counts the servers that the effects of some kinds are of.
func (p *Preview) Servers(kinds ...Kind) int {
	seen := make(map[model.ServerName]bool)
	for i := range p.Effects {
		if e := &p.Effects[i]; slices.Contains(kinds, e.Kind) && e.Server != "" {
			seen[e.Server] = true
		}
	}
	return len(seen)
}

func (p *Preview) sort() {
	first := func(e *Effect) int {
		if e.Destructive {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(p.Effects, func(a, b Effect) int {
		return cmp.Or(
			cmp.Compare(first(&a), first(&b)), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.BMC, b.BMC),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.value, b.value),
		)
	})
	model.SortProblems(p.Problems)
}

// judge says what all comes to.
func (p *Preview) judge() Verdict {
	destructive := func(e Effect) bool { return e.Destructive }
	switch {
	case model.HasErrors(p.Problems):
		return Wrong
	case slices.ContainsFunc(p.Effects, destructive):
		return Destructive
	case len(p.Effects) > 0:
		return Changes
	}
	return Nothing
}
