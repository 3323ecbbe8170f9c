package preview

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/service"
)

func (f *future) effect(p *proposal.Proposal) Effect {
	e := Effect{Kind: p.Step(), Server: p.Of.Name, Claim: p.Of.Record.Claim.Name, Destructive: p.Takes != nil}
	if p.Takes != nil {
		d := *p.Takes
		d.Server, d.Claim = e.Server, e.Claim
		e.value, e.Held = d.Value, f.isHeld(d)
	}
	f.describe(&e, p)
	last := f.servers[e.Server]
	if !e.Destructive || e.Held || f.in.Busy[e.Server] || last == nil {
		return e
	}
	if e.Kind != proposal.StepMaintenance || last.Record.Life.State != model.StateMaintenance { // else the server waits for its end
		e.Waits = last.Why.Text()
	}
	return e
}

func (f *future) describe(e *Effect, p *proposal.Proposal) {
	s, c, op := p.Of, p.Of.Desired.Claims[e.Claim], p.Of.Record.Requests.Operation
	after := disposal{e.Kind == proposal.StepRetain, disks.Mode(s)}
	switch e.Kind {
	case proposal.StepRelease, proposal.StepRetain:
		e.release(after)
	case proposal.StepWipe:
		e.Cleanup, e.Message = after.mode, fmt.Sprintf("was kept as claim %s left it, and has its disks %s now", e.Claim, after)
	case proposal.StepReprovision:
		e.Image, e.Destructive = imageText(c, s.Record), true
		if had := s.Record.Install.ReplacesImage; had != nil {
			e.Image += " instead of " + had.Image
		}
		e.Message = fmt.Sprintf("is powered off and installed again for claim %s, with image %s%s", e.Claim, e.Image, eachTime(c))
		if p.Takes == nil {
			e.Message = fmt.Sprintf("is installed again for claim %s, with image %s%s, as asked for while its claim was Off", e.Claim, e.Image, eachTime(c))
		}
	case proposal.StepMaintenance:
		e.Message = "is parked: powered off, and left alone"
		if m := s.Desired.Maintenances[s.Service.By]; m != nil {
			e.Message = fmt.Sprintf("goes out of service by ServerMaintenance %s, which %s", m.Name, service.EffectText(m))
		}
	case proposal.StepPowerOff:
		e.Message = fmt.Sprintf("is powered off, as claim %s says", e.Claim)
		if by := p.Takes.Value; by != string(model.PowerOff) {
			e.Message = "is out of service, and powered off now by ServerMaintenance " + by
		}
	case proposal.StepOperation:
		e.value = s.Record.Requests.HandledOperation
		e.Message = "gets the operation of its annotation: " + e.value
		if op != nil && op.Value == e.value && op.Outcome == model.OutcomeRefused {
			e.Message = "does not get the operation of its annotation, " + e.value + ": " + op.Message
		}
	case proposal.StepDiscover:
		e.Message = "is discovered: its probe is booted"
		if e.Destructive {
			e.Message = "was found running: it is powered off, and its probe is booted"
		}
	case proposal.StepBind:
		e.Image = imageText(c, s.Record)
		e.Message = bindText(c, e.Image)
	case proposal.StepAdopt:
		e.Message = fmt.Sprintf("serves claim %s as it runs (serverClaimRef)", e.Claim)
	case proposal.StepRename:
		e.Message = fmt.Sprintf("goes on for claim %s, which was called %s", e.Claim, s.Stored.Claim.Name)
	case proposal.StepKeep:
		e.Message = fmt.Sprintf("stays with claim %s, which is back%s", e.Claim, eachTime(c))
	case proposal.StepReturn:
		e.Message = fmt.Sprintf("comes back into service, as %s", f.servers[e.Server].Record.Life.State)
	case proposal.StepPowerOn:
		e.Message = fmt.Sprintf("is powered on, as claim %s says", e.Claim)
	case proposal.StepForget:
		e.Message = "is forgotten: its machine is left as it is, and no disk of it is wiped; if one with its UUID comes back, it is a new server, " +
			"which any claim may get"
	case proposal.StepBoot:
		e.Message = "boots its image from the network at each boot"
		if !always(c) {
			e.Message = "boots from its disk from its next boot on, and no longer from the network each time: an image that runs from memory alone does not come back"
		}
	case proposal.StepSetting, proposal.StepTouch:
		last := p.Do[len(p.Do)-1]
		power, ok := last.(proposal.SetPower)
		e.Destructive = ok && s.Power() == model.PowerOn && power.Reset != model.ResetOn
		e.value, e.Message = last.String(), "gets a request to its BMC: "+last.String()
	}
}

// release says that a server is taken from its claim.
func (e *Effect) release(d disposal) {
	e.Kind, e.Cleanup, e.Destructive = proposal.StepRelease, d.mode, true
	e.Message = fmt.Sprintf("is taken from claim %s, powered off, and its disks are %s", e.Claim, d)
	if d.retained {
		e.Kind, e.Cleanup = proposal.StepRetain, ""
		e.Message = fmt.Sprintf("is taken from claim %s, powered off, and kept as it is (reclaimPolicy Retain)", e.Claim)
	}
}

// imageText is the image of a claim, with its meaning if it is a name.
func imageText(c *model.ServerClaim, rec *model.ServerRecord) string {
	if named := rec.Claim.Image; named != nil && named.Name == c.Spec.Image {
		return named.Name + " (" + named.Image + ")"
	}
	return c.Spec.Image
}

func bindText(c *model.ServerClaim, image string) string {
	switch {
	case c.Spec.Power == model.PowerOff:
		return fmt.Sprintf("is bound to claim %s, and stays Off", c.ClaimName())
	case c.Spec.Image == "":
		return fmt.Sprintf("is bound to claim %s, and booted as it says", c.ClaimName())
	}
	return fmt.Sprintf("is bound to claim %s, and image %s is installed%s", c.ClaimName(), image, eachTime(c))
}

// eachTime says that a claim is booted from the network each time, "" if it is not.
func eachTime(c *model.ServerClaim) string {
	if !always(c) {
		return ""
	}
	return ", from the network at each boot (" + model.AnnotationBoot + ": always)"
}

func always(c *model.ServerClaim) bool { return c.Annotations[model.AnnotationBoot] == "always" }

// disposal is what happens to a server's disks once it is released.
type disposal struct {
	retained bool
	mode     string
}

// disposal is that of a server. If its manifest is gone, it is as decided with the release.
func (f *future) disposal(s *plan.Server) disposal {
	retained := s.Record.Release != nil && s.Record.Release.Retain
	if s.Manifest != nil {
		retained = s.Manifest.Spec.ReclaimPolicy == model.ReclaimRetain
	}
	return disposal{retained, disks.Mode(&proposal.Server{Moment: &proposal.Moment{Policy: &f.in.Policy}, Manifest: s.Manifest, Record: s.Record})}
}

// String says what happens to the disks.
func (d disposal) String() string {
	says := "wiped (cleanup " + d.mode + ")"
	if d.mode == model.CleanupNone {
		says = "left as they are (cleanup none)"
	}
	if d.retained {
		return "kept until reclaimPolicy is Recycle, then " + says
	}
	return says
}
