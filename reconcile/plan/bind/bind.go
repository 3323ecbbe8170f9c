// Package bind gives free servers to claims, says why a claim has no server, and applies ServerReadinessRules.
package bind

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/proposal"
)

// Input is the fleet as one plan sees it, in the order of names. Plan adds its decisions to the servers and claims.
type Input struct {
	*proposal.Moment
	Servers []*View
	Claims  []*Claim
	// Hold says why no claim may be bound; zero if claims may be bound.
	Hold       proposal.Why
	Unreadable []model.UnreadableRecord
	// Checked are the results of checks of boots; a claim whose boot has none gets no server. nil = boots are not checked.
	Checked map[proposal.BootKey]proposal.Checked
}

// View is a server as claims see it.
type View struct {
	*proposal.Server // Plan sets Binds
	Labels           map[string]string
	Unfree           string // in a few words why an Available server cannot be bound; "" if it can
	Coming           bool   // it becomes free without an action of a person
	Architecture     string // of an Available server

	// Plan sets the taints by ServerReadinessRules, and the BootstrapOnly rules that hold for the first time.
	Taints       []proposal.RuleTaint
	Bootstrapped []string
}

// Claim is one claim in force.
type Claim struct {
	Name     model.ClaimName
	Manifest *model.ServerClaim
	Record   *model.ClaimRecord
	Server   model.ServerName // "" if it has none
	// Why says why the claim has no server. In an Input it says why it must not get one, whatever servers are free.
	Why proposal.Why
}

// Plan decides on all claims and all servers at once, so that no two claims get one server.
//
// Claims are served by priority, then in the order in which they came to Git, then by name. A claim takes the
// matching server that the fewest waiting claims could use, then the first by name. Claims with equal requirements
// form a group, so that n claims take O(n log n).
func Plan(in Input) *Fleet {
	f := newFleet(in)
	var queue []waitingClaim
	for _, c := range in.Claims {
		switch {
		case c.Server != "":
			continue
		case in.Hold.Reason != "":
			c.Why = in.Hold
			continue
		}
		if c.Why = cmp.Or(f.unready(c.Manifest), c.Why); c.Why.Reason != "" {
			continue
		}
		g := f.groupOf(c.Manifest)
		if len(g.candidates) == 0 {
			c.Why = f.unbound(g)
			continue
		}
		priority, _ := strconv.Atoi(c.Manifest.Annotations[model.AnnotationPriority])
		queue = append(queue, waitingClaim{c, g, priority})
	}
	if len(queue) > 0 {
		f.serve(queue)
	}
	return f
}

type waitingClaim struct {
	*Claim
	group    *group
	priority int
}

// compare orders claims. ServerBootConfigurations come last: they are for servers that no claim requests.
func (c waitingClaim) compare(d waitingClaim) int {
	if c.Manifest.BootConfiguration != d.Manifest.BootConfiguration {
		if c.Manifest.BootConfiguration {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(d.priority, c.priority), cmp.Compare(c.Record.Sequence, d.Record.Sequence), cmp.Compare(c.Name, d.Name))
}

func (f *Fleet) serve(queue []waitingClaim) {
	adopted := f.adopted()
	queue = slices.DeleteFunc(queue, func(c waitingClaim) bool {
		if adopted[c.Name] {
			c.Why = f.unbound(c.group)
		}
		return adopted[c.Name]
	})
	slices.SortFunc(queue, waitingClaim.compare)
	wanted := make([]int, len(f.Servers)) // by how many claims
	var groups []*group
	for _, c := range queue {
		if c.group.size++; c.group.size == 1 {
			groups = append(groups, c.group)
		}
	}
	for _, g := range groups {
		for _, i := range g.candidates {
			wanted[i] += g.size
		}
	}
	for _, g := range groups {
		slices.SortFunc(g.candidates, func(a, b int) int {
			return cmp.Or(cmp.Compare(wanted[a], wanted[b]), cmp.Compare(a, b))
		})
	}
	taken := make([]bool, len(f.Servers))
	for _, c := range queue {
		g := c.group
		for len(g.candidates) > 0 && taken[g.candidates[0]] {
			g.candidates = g.candidates[1:]
		}
		c.Why = f.pick(c, taken)
	}
}

// checkPatience is how long a claim keeps a free server from the claims after it while its boot is checked.
const checkPatience = 30 * time.Second

// pick gives a claim the best free server that can boot its image, and says why the claim has no server.
func (f *Fleet) pick(c waitingClaim, taken []bool) (why proposal.Why) {
	lacking := "" // the architecture that the image does not have
	for _, i := range c.group.candidates {
		s := f.Servers[i]
		if taken[i] || lacking != "" && s.Architecture == lacking {
			continue
		}
		why, taken[i] = f.unchecked(c.Manifest, s.Architecture)
		switch why.Reason {
		case model.ReasonNoArchitecture:
			lacking = s.Architecture
		case "":
			s.Binds = c.Manifest
			return proposal.Why{Reason: model.ReasonInProgress, Message: "server " + string(s.Name) + " is chosen for it"}
		default:
			return why
		}
	}
	if why.Reason == "" {
		why = f.unbound(c.group)
	}
	return why
}

// unchecked says why a claim must not get a server of an architecture yet, although one is free, and asks for the check.
// The server is taken if the claim gets it, and for a short time if that is not known yet.
func (f *Fleet) unchecked(c *model.ServerClaim, architecture string) (why proposal.Why, taken bool) {
	boot, why := booting.BootOfClaim(f.Desired, c)
	if model.IsCatalogName(boot.Image) && why.Reason == "" {
		var named *model.CatalogImage
		if named, why = proposal.FindImage(f.Desired, boot.Image, architecture, &f.likely.imageGuesses); named != nil {
			boot.Image = named.Image
		}
	}
	if why.Reason != "" || f.Checked == nil || boot.Image == "" {
		return why, why.Reason == ""
	}
	boot.Architecture, boot.Ticket = architecture, model.Ticket{Purpose: model.PurposeClaim, Always: c.Annotations[model.AnnotationBoot] == "always"}
	key := proposal.BootKey{Digest: booting.BootDigest(boot), Architecture: architecture, Always: boot.Ticket.Always}
	f.Wanted[key] = boot
	result, begun := f.Checked[key]
	if !begun {
		result = proposal.Checked{Pending: true, Since: f.Now}
	}
	return proposal.UncheckedWhy(boot.Image, result), result.Failed == nil && (!result.Pending || f.Now.Sub(result.Since) < checkPatience)
}

// adopted are the claims that Servers in Git name as theirs, while those servers are not discovered yet.
func (f *Fleet) adopted() map[model.ClaimName]bool {
	claims := make(map[model.ClaimName]bool)
	for name, spec := range f.Desired.Servers {
		if ref := spec.Spec.ServerClaimRef; ref != nil {
			if s := f.server(string(name)); s == nil || s.State() == model.StateInitial {
				claims[model.Named[model.ClaimName](ref.Namespace, ref.Name)] = true
			}
		}
	}
	return claims
}

// unready says why a claim cannot be served, whatever servers are free.
func (f *Fleet) unready(c *model.ServerClaim) (why proposal.Why) {
	switch {
	case c.Annotations[model.AnnotationOperation] == model.OperationIgnore:
		return proposal.Why{Reason: model.ReasonIgnored, Message: "suspended by annotation " + model.AnnotationOperation + ": ignore", Actor: proposal.Tenant}
	case c.BootConfiguration:
		why = f.superseded(c)
	}
	if c.Spec.IgnitionSecretRef != nil && why.Reason == "" {
		_, why = booting.BootOfClaim(f.Desired, c)
	}
	if image := c.Spec.Image; why.Reason == "" && model.IsCatalogName(image) {
		if images := f.Desired.CatalogImages(image); len(images) == 0 {
			_, why = proposal.FindImage(f.Desired, image, "", &f.likely.imageGuesses)
		} else {
			why = f.catalogLost
		}
	}
	if severity, wrong := f.Desired.CheckImage(c.Spec.Image); why.Reason == "" && severity == model.SeverityError {
		why = proposal.Why{Reason: model.ReasonInvalidReference, Message: "image " + wrong, Actor: proposal.Tenant}
	}
	return why
}

// superseded says why a ServerBootConfiguration has no server: that boots what something else in Git says.
func (f *Fleet) superseded(c *model.ServerClaim) proposal.Why {
	ref, own := c.Spec.ServerRef.Name, model.Named[model.ClaimName](c.Namespace, c.Name)
	claim, named := f.naming(ref)
	if f.Desired.Claims[own] != nil {
		claim, named = own, true
	}
	message := ""
	if named {
		message = fmt.Sprintf("server %s boots what ServerClaim %s says", f.Resolve(ref), claim)
	} else if s := f.server(ref); s != nil && s.Manifest != nil && s.Manifest.Spec.BootConfigurationRef != nil {
		r := s.Manifest.Spec.BootConfigurationRef
		if other := model.Named[model.ClaimName](r.Namespace, r.Name); other != own {
			message = fmt.Sprintf("Server %s (%s) names another in bootConfigurationRef: %s", s.Manifest.Name, s.Manifest.Source, other)
		}
	}
	if message == "" {
		return proposal.Why{}
	}
	return proposal.Why{Reason: model.ReasonSuperseded, Message: message, Actor: proposal.RackOperator}
}
