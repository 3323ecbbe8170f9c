package preview

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
)

// Input is all that a preview is made of. It is read-only.
type Input struct {
	Fleet *Fleet
	// Base is what Git has without the commit, Head what it has with it.
	Base, Head *model.Desired
	Policy     policy.Options
	Now        time.Time
	// Behind is set when Ingot has not acted yet upon all of the base: the commit begins when it has.
	Behind bool
	Notes  []string // of what is not known
	// Check returns why a boot is not possible, as far as that is known; nil checks no boots.
	Check func(proposal.Boot) *proposal.Failure
}

// Of says what the step from Base to Head does. The same input gives the same preview.
func Of(in Input) *Preview {
	if in.Behind {
		behind := *in.Fleet
		behind.Observed = in.follow(in.Base).in.Observed
		in.Fleet = &behind
	}
	c := comparison{
		Input: in, before: in.follow(in.Base), after: in.follow(in.Head), effects: []Effect{}, oldNames: in.Head.OldNames(in.Base),
	}
	c.steps()
	c.claims()
	c.changedServers()
	c.changedClaims()
	c.changedBMCs()
	c.changedImages()
	p := &Preview{Base: in.Base.Revision, Head: in.Head.Revision, Effects: c.effects, Held: c.held(), Problems: c.problems(), Notes: in.Notes}
	p.sort()
	p.Verdict = p.verdict()
	return p
}

// follow finds what happens if Git has a revision.
func (in *Input) follow(d *model.Desired) *future {
	f := &future{in: in.Fleet.input(in.Fleet.withKnown(d, in.Base), in.Policy, in.Now), check: in.Check}
	return f.follow()
}

type comparison struct {
	Input
	before, after *future
	effects       []Effect
	oldNames      map[model.ClaimName]model.ClaimName // see Desired.OldNames
}

func (c *comparison) add(e Effect) { c.effects = append(c.effects, e) }

// servers are the servers with effects of some kinds, or of any other than booting from elsewhere.
func (c *comparison) servers(kinds ...Kind) map[model.ServerName]bool {
	all := make(map[model.ServerName]bool)
	for _, e := range c.effects {
		if len(kinds) == 0 && e.Kind != proposal.StepBoot || slices.Contains(kinds, e.Kind) {
			all[e.Server] = true
		}
	}
	return all
}

// steps are the effects on servers that the head has and the base does not, and those that no longer
// happen. A claim that the base is about to give a server has it by the time of the merge.
func (c *comparison) steps() {
	had, goes := make(map[Effect]bool), make(map[Effect]bool)
	for _, e := range c.before.effects {
		had[e.key()] = true
	}
	for _, e := range c.after.effects {
		goes[e.thing()] = true
		if !had[e.key()] {
			c.add(e)
		}
	}
	for _, e := range c.before.effects {
		bound := e.Kind == proposal.StepBind || e.Kind == proposal.StepAdopt
		switch {
		case bound && c.isGone(e.Claim):
			e = Effect{Server: e.Server, Claim: e.Claim}
			e.release(c.before.disposal(c.before.servers[e.Server]))
			e.Message = fmt.Sprintf("is about to be bound to claim %s, as the base says, and then it %s", e.Claim, e.Message)
			c.add(e)
		case !bound && !goes[e.thing()] && e.Kind != proposal.StepTouch && e.Kind != proposal.StepBoot:
			c.add(Effect{Kind: NoLonger, Server: e.Server, Claim: e.Claim, value: string(e.Kind) + e.value, Message: "is spared what it waits for: it " + e.Message})
		}
	}
}

// isGone reports whether a commit takes a claim away.
func (c *comparison) isGone(claim model.ClaimName) bool {
	return c.Head.Claims[claim] == nil && c.Head.NameNow(claim, c.Base.LastRenaming()) == claim && !c.Head.IsQuarantined(claim.Identity())
}

// freed are the bindings of claims to servers that the commit has wiped, if that succeeds.
func (c *comparison) freed() map[model.ClaimName]Effect {
	all := make(map[model.ClaimName]Effect)
	var wiped []model.ServerName
	for _, s := range c.after.last.Servers {
		if s.Record.Life.State == model.StateCleanup || s.Record.Release != nil && !c.after.disposal(s).retained {
			wiped = append(wiped, s.Name)
		}
	}
	if len(wiped) == 0 || !slices.ContainsFunc(c.after.last.Claims, func(cl *bind.Claim) bool { return cl.Server == "" }) {
		return all
	}
	later := &future{in: plan.AssumeWiped(c.after.in, wiped), check: c.Check}
	for _, e := range later.follow().effects {
		if e.Kind == proposal.StepBind {
			e.Message += ", once it is wiped"
			all[e.Claim] = e
		}
	}
	return all
}

func (c *comparison) claims() {
	before, freed := make(map[model.ClaimName]*bind.Claim), c.freed()
	for _, cl := range c.before.last.Claims {
		before[cl.Name] = cl
		if cl.Server == "" && c.isGone(cl.Name) {
			c.add(Effect{Kind: Withdraw, Claim: cl.Name, Message: "is gone; it had no server"})
		}
	}
	for _, cl := range c.after.last.Claims {
		old, bound := before[cl.Name], freed[cl.Name]
		switch {
		case cl.Server != "":
		case bound.Kind != "":
			c.add(bound)
		case old == nil || old.Server != "" || old.Why.Reason != cl.Why.Reason || !reflect.DeepEqual(asked(old.Manifest), asked(cl.Manifest)):
			c.add(Effect{Kind: Wait, Claim: cl.Name, Message: "waits for a server: " + cl.Why.Text(), value: cl.Why.Reason})
		}
	}
}

// asked is what a claim asks for, nil if its manifest is not known.
func asked(c *model.ServerClaim) []any {
	if c == nil {
		return nil
	}
	return []any{c.Spec, maps.Collect(maps.All(c.Annotations))} // no annotations are never nil
}

// held are the lists that the guard holds back with the commit, and not without it.
func (c *comparison) held() []Held {
	recorded := make(map[string]bool)
	for _, h := range c.Fleet.Observed.Fleet.Holds {
		recorded[h.Token] = true
	}
	all := []Held{}
	for _, h := range c.after.in.Observed.Fleet.Holds {
		if !slices.ContainsFunc(h.Steps, func(d model.Disruption) bool { return !c.before.isHeld(d) }) {
			continue
		}
		held := Held{Steps: h.Steps, Limit: h.Limit, Namespace: h.Scope, Until: h.Until}
		if recorded[h.Token] {
			held.Approve, held.Refuse = proposal.ApproveLine(h.Token), proposal.Refuse(h.Revision)
		}
		all = append(all, held)
	}
	return all
}

// problems are those of Git that the step brings.
func (c *comparison) problems() []model.Problem {
	had := make(map[model.Problem]bool)
	anywhere := func(p model.Problem) model.Problem {
		p.Line, p.Column = 0, 0
		return p
	}
	for _, p := range slices.Concat(c.Base.Problems, c.before.last.Unmatched) {
		had[anywhere(p)] = true
	}
	return slices.DeleteFunc(slices.Concat([]model.Problem{}, c.Head.Problems, c.after.last.Unmatched), func(p model.Problem) bool { return had[anywhere(p)] })
}

var severity = map[Verdict]int{Nothing: 0, Changes: 1, Destructive: 2, Wrong: 3}

// Compare is positive if the effects are worse than those of another preview, negative if they are better,
// and 0 if neither is.
func (p *Preview) Compare(other *Preview) int {
	return cmp.Or(
		cmp.Compare(severity[p.Verdict], severity[other.Verdict]),
		cmp.Compare(p.destructive(), other.destructive()),
		cmp.Compare(len(p.Effects), len(other.Effects)),
	)
}

func (p *Preview) destructive() int {
	n := 0
	for i := range p.Effects {
		if p.Effects[i].Destructive {
			n++
		}
	}
	return n
}
