package preview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/laws/window"
	"ingot/reconcile/plan/proposal"
)

// effects are what a future has in store for servers.
func (f *future) effects(fleet *Fleet) []Effect {
	var all []Effect
	for _, name := range slices.Sorted(maps.Keys(fleet.Observed.Servers)) {
		was, now := fleet.Observed.Servers[name], f.in.Observed.Servers[name]
		if now == nil {
			all = append(all, Effect{
				Kind: Forget, Server: name, Message: "is forgotten: its machine is left as it is, and no disk of it is wiped; if one with its UUID comes back, " +
					"it is a new server, which any claim may get",
			})
			continue
		}
		s := serverFuture{future: f, fleet: fleet, name: name, was: was, now: now, spec: f.manifest(name)}
		s.guarded()
		s.decided()
		s.touched()
		s.delayed()
		all = append(all, s.effects...)
	}
	return all
}

// server is what is planned with a server at last.
func (f *future) server(name model.ServerName) *plan.Server {
	i, found := slices.BinarySearchFunc(f.last.Servers, name, func(s *plan.Server, n model.ServerName) int { return cmp.Compare(s.Name, n) })
	if !found {
		return &plan.Server{Name: name}
	}
	return f.last.Servers[i]
}

// manifest is what Git says of a server, nil if nothing.
func (f *future) manifest(name model.ServerName) *model.Server { return f.server(name).Manifest }

// serverFuture is what a future has in store for one server.
type serverFuture struct {
	*future
	fleet    *Fleet
	name     model.ServerName
	was, now *model.ServerRecord
	spec     *model.Server
	effects  []Effect
}

func (s *serverFuture) add(e Effect) {
	e.Server = s.name
	s.effects = append(s.effects, e)
}

func (s *serverFuture) has(kinds ...Kind) bool {
	return slices.ContainsFunc(s.effects, func(e Effect) bool { return slices.Contains(kinds, e.Kind) })
}

// guarded are the effects that the guard was asked about.
func (s *serverFuture) guarded() {
	for _, d := range s.steps[s.name] {
		s.add(s.step(d))
	}
	for _, d := range s.held[s.name] {
		e := s.step(d)
		e.Held = true
		s.add(e)
	}
}

// step is the effect of a step that takes something from a server's user.
func (s *serverFuture) step(d model.Disruption) Effect {
	e := Effect{Kind: Touch, Claim: d.Claim, value: d.Value, Destructive: true, Message: d.Action + " " + d.Value}
	switch d.Action {
	case "release", "retain":
		return s.release(d.Claim, d.Action == "retain")
	case "wipe":
		e.Kind, e.Cleanup = Wipe, s.cleanup()
		e.Message = fmt.Sprintf("was kept as claim %s left it, and is wiped now: cleanup %s", d.Claim, e.Cleanup)
	case "reprovision":
		e.Kind, e.Image = Reprovision, s.imageOf(d.Claim)
		e.Message = fmt.Sprintf("is powered off and installed again for claim %s, with image %s%s", d.Claim, e.Image, eachTime(s.in.Desired.Claims[d.Claim]))
	case "maintenance":
		e.Kind, e.Message = Maintain, s.maintenance(d.Value)
	case "power-off":
		e.Kind, e.Message = PowerOff, fmt.Sprintf("is powered off, as claim %s says", d.Claim)
		if by := window.MaintenanceOf(d); by != "" {
			e.Message = fmt.Sprintf("is out of service, and powered off now by ServerMaintenance %s", by)
		}
	case "operation":
		e.Kind, e.Message = Operation, "is asked for what its annotation says: "+d.Value
	case "discover":
		e.Kind, e.Message = Discover, "was found running: it is powered off, and its probe is booted"
	}
	return e
}

// release is that a server is taken from its claim.
func (s *serverFuture) release(claim model.ClaimName, retained bool) Effect {
	e := Effect{Kind: Release, Claim: claim, Cleanup: s.cleanup(), Destructive: true}
	switch {
	case retained:
		e.Kind, e.Cleanup = Retain, ""
		e.Message = fmt.Sprintf("is taken from claim %s, powered off, and kept as it is (reclaimPolicy Retain)", claim)
	case e.Cleanup == model.CleanupNone:
		e.Message = fmt.Sprintf("is taken from claim %s, powered off, and free with its disks as they are (cleanup none)", claim)
	default:
		e.Message = fmt.Sprintf("is taken from claim %s, powered off, and its disks are wiped (cleanup %s)", claim, e.Cleanup)
	}
	return e
}

// cleanup is how the server's disks are wiped.
func (s *serverFuture) cleanup() string { return s.future.cleanup(s.name) }

// cleanup is how a server's disks are wiped.
func (f *future) cleanup(name model.ServerName) string {
	mode := f.in.Policy.CleanupMode
	if spec := f.manifest(name); spec != nil {
		mode = cmp.Or(spec.Annotations[model.AnnotationCleanup], mode)
	}
	return model.StricterCleanup(mode, f.in.Observed.Servers[name].Claim.Cleanup)
}

// retained reports whether a server that is released is kept as it is: its manifest says so, or did
// when that was decided and is gone.
func (f *future) retained(name model.ServerName) bool {
	spec, rec := f.manifest(name), f.in.Observed.Servers[name]
	if spec == nil {
		return rec != nil && rec.Release != nil && rec.Release.Retain
	}
	return spec.Spec.ReclaimPolicy == model.ReclaimRetain
}

func (s *serverFuture) imageOf(claim model.ClaimName) string {
	if c := s.in.Desired.Claims[claim]; c != nil {
		return c.Spec.Image
	}
	return ""
}

// maintenance says what takes the server out of service.
func (s *serverFuture) maintenance(by string) string {
	m := s.in.Desired.Maintenances[by]
	switch {
	case m == nil:
		return "is parked: powered off, and left alone"
	case m.Spec.ServerPower == model.PowerOn:
		return fmt.Sprintf("goes out of service by ServerMaintenance %s: it is left On, or switched On once, and not healed", by)
	}
	return fmt.Sprintf("goes out of service by ServerMaintenance %s: it is powered off", by)
}

// decided are the effects that the server's record shows.
func (s *serverFuture) decided() {
	s.claimed()
	if s.now.Release != nil && s.was.Release == nil && !s.has(Release, Retain) {
		s.add(s.release(s.now.Release.Claim, s.now.Release.Retain))
	}
	back := s.was.Release != nil && s.now.Release == nil && s.now.Claim.Name == s.was.Claim.Name
	if back {
		s.add(Effect{Kind: Keep, Claim: s.now.Claim.Name, Message: fmt.Sprintf("stays with claim %s, which is back%s", s.now.Claim.Name, eachTime(s.in.Desired.Claims[s.now.Claim.Name]))})
	}
	wasOut, isOut := s.was.Life.State == model.StateMaintenance, s.now.Life.State == model.StateMaintenance
	switch {
	case isOut && !wasOut && !s.has(Maintain):
		s.add(Effect{Kind: Maintain, Message: s.maintenance(s.now.Maintenance.By), value: s.now.Maintenance.By})
	case wasOut && !isOut:
		s.add(Effect{Kind: Return, Claim: s.now.Claim.Name, Message: fmt.Sprintf("comes back into service, as %s", s.now.Life.State)})
	}
	if s.was.Claim.Power == model.PowerOff && s.now.Claim.Power == model.PowerOn {
		s.add(Effect{Kind: PowerOn, Claim: s.now.Claim.Name, Message: fmt.Sprintf("is powered on, as claim %s says", s.now.Claim.Name)})
	}
	if v := s.now.Requests.HandledOperation; v != s.was.Requests.HandledOperation && v != "" && !s.has(Operation) {
		says := "is asked for what its annotation says: " + v
		if op := s.now.Requests.Operation; op != nil && op.Value == v && op.Outcome == model.OutcomeRefused {
			says = "is not asked for what its annotation says, " + v + ": " + op.Message
		}
		s.add(Effect{Kind: Operation, Message: says, value: v})
	}
}

// claimed is the effect of the claim that the server has now and had not.
func (s *serverFuture) claimed() {
	claim, i := s.now.Claim.Name, s.now.Intent
	switch {
	case claim == "" || claim == s.was.Claim.Name:
	case i != nil && i.Kind == model.IntentAdopt && i.Value == string(claim):
		s.add(Effect{Kind: Adopt, Claim: claim, Message: fmt.Sprintf("serves claim %s as it runs (serverClaimRef)", claim)})
	case s.was.Claim.Name != "" && s.now.Life.State != model.StateCleanup && !(i != nil && i.Kind == model.IntentBind && i.Value == string(claim)):
		s.add(Effect{Kind: Rename, Claim: claim, Message: fmt.Sprintf("goes on for claim %s, which was called %s", claim, s.was.Claim.Name)})
	default:
		image := s.imageOf(claim)
		s.add(Effect{Kind: Bind, Claim: claim, Image: image, Message: bindText(s.in.Desired.Claims[claim])})
	}
}

// bindText says what a claim makes of a free server.
func bindText(c *model.ServerClaim) string {
	switch {
	case c == nil:
		return "is bound to it"
	case c.Spec.Power == model.PowerOff:
		return fmt.Sprintf("is bound to claim %s, and stays Off", c.ClaimName())
	case c.Spec.Image == "":
		return fmt.Sprintf("is bound to claim %s, and booted as it says", c.ClaimName())
	}
	return fmt.Sprintf("is bound to claim %s, and image %s is installed%s", c.ClaimName(), c.Spec.Image, eachTime(c))
}

// eachTime says that what a claim installs is booted from the network each time, "" if it is not.
func eachTime(c *model.ServerClaim) string {
	if !always(c) {
		return ""
	}
	return ", from the network at each boot (" + model.AnnotationBoot + ": always)"
}

func always(c *model.ServerClaim) bool {
	return c != nil && c.Annotations[model.AnnotationBoot] == "always"
}

// delayed notes what a server waits for of which something is to be done, and nothing asked.
func (s *serverFuture) delayed() {
	waits := s.server(s.name).Why.Text()
	if c, gone := s.fleet.unreachable[s.name]; gone && waits == "" {
		waits = c.Message
	}
	if waits == "" || len(s.asked[s.name]) > 0 {
		return
	}
	for i := range s.effects {
		done := s.effects[i].Kind == Maintain && s.now.Life.State == model.StateMaintenance // and that is what the server waits for
		if e := &s.effects[i]; e.Destructive && !e.Held && !done {
			e.Waits = waits
		}
	}
}

// touched are the effects of what is asked of the machine, if nothing else says why.
func (s *serverFuture) touched() {
	facts := s.fleet.Observed.ServerFacts[s.name]
	on := facts != nil && facts.Power == model.PowerOn
	for _, a := range s.asked[s.name] {
		switch do := a.(type) {
		case proposal.SetIndicator, proposal.SetBootOrder:
			s.add(Effect{Kind: Setting, Message: "has its BMC asked to " + a.String(), value: a.String()})
		case proposal.Arm:
			s.armed(&do.Boot)
		case proposal.SetPower:
			if len(s.effects) > 0 {
				continue
			}
			disturbs := on && do.Reset != model.ResetOn
			s.add(Effect{
				Kind: Touch, Claim: s.now.Claim.Name, Destructive: disturbs, value: string(do.Reset),
				Message: "has its BMC asked for power " + string(do.Reset),
			})
		}
	}
}

// armed is the effect of a boot from the network that nothing else says.
func (s *serverFuture) armed(b *proposal.Boot) {
	switch purpose := b.Ticket.Purpose; {
	case purpose == model.PurposeDiscovery && !s.has(Discover):
		s.add(Effect{Kind: Discover, Message: "is discovered: its probe is booted"})
	case purpose == model.PurposeClaim && s.was.Install.Digest != "" && !s.has(Bind, Reprovision):
		s.add(Effect{
			Kind: Reprovision, Claim: s.now.Claim.Name, Image: b.Image, Destructive: true,
			Message: fmt.Sprintf("is installed again for claim %s, with image %s%s, as was asked for while it was not to be On",
				s.now.Claim.Name, b.Image, eachTime(s.in.Desired.Claims[s.now.Claim.Name])),
		})
	}
}
