package preview

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/proposal"
)

// changedClaims are claims with a server that ask for something else, which takes effect later.
func (c *comparison) changedClaims() {
	handled := c.servers(proposal.StepBind, proposal.StepAdopt, proposal.StepReprovision, proposal.StepRelease, proposal.StepRetain)
	boots := c.servers(proposal.StepBoot)
	c.effects = slices.DeleteFunc(c.effects, func(e Effect) bool { return e.Kind == proposal.StepBoot && handled[e.Server] })
	for _, cl := range c.after.last.Claims {
		before, e := c.formerly(cl.Name), Effect{Server: cl.Server, Claim: cl.Name}
		if cl.Server == "" || before == nil || cl.Manifest == nil {
			continue
		}
		c.settings(claimSettings, e, before.Annotations, cl.Manifest.Annotations)
		if handled[cl.Server] {
			continue
		}
		begins := false
		if what := c.otherInstall(before, cl.Manifest); what != "" {
			begins = c.installs(e, cl, what)
		}
		if always(cl.Manifest) && !always(before) && !begins && !boots[cl.Server] {
			e.Kind, e.Message = Pending, "boots from its disk: "+model.AnnotationBoot+": always counts from its next installation on"
			e.Next = askInstall(cl)
			c.add(e)
		}
	}
}

// formerly is a claim as it is without the commit, nil if it is new. It may have another name.
func (c *comparison) formerly(name model.ClaimName) *model.ServerClaim {
	return c.Base.Claims[cmp.Or(c.oldNames[name], name)]
}

// installAnnotations are the annotations of a claim that belong to what is installed.
var installAnnotations = []struct{ name, what string }{
	{model.AnnotationKernelArguments, "other kernel arguments"},
	{model.AnnotationRootDevice, "another disk"},
	{model.AnnotationSeed, "another way for its configuration"},
	{model.AnnotationOverwrite, "another say on what may be overwritten"},
}

// otherInstall says what of a claim's install differs, "" if nothing.
func (c *comparison) otherInstall(before, after *model.ServerClaim) string {
	var what []string
	if before.Spec.Image != after.Spec.Image {
		what = append(what, fmt.Sprintf("image %s instead of %s", after.Spec.Image, before.Spec.Image))
	}
	if !reflect.DeepEqual(secretOf(c.Base, before), secretOf(c.Head, after)) {
		what = append(what, "another content of its Secret")
	}
	for _, a := range installAnnotations {
		if was, is := before.Annotations[a.name], after.Annotations[a.name]; was != is {
			what = append(what, fmt.Sprintf("%s (%s %q instead of %q)", a.what, a.name, is, was))
		}
	}
	return strings.Join(what, ", ")
}

// secretOf is the content of a claim's Secret, or its name if it is not in Git.
func secretOf(d *model.Desired, c *model.ServerClaim) any {
	if c.Spec.IgnitionSecretRef == nil {
		return nil
	}
	name := c.Spec.IgnitionSecretRef.Name
	if s := d.Secrets[model.Named[model.ObjectName](c.Namespace, name)]; s != nil {
		return s.Values
	}
	return name
}

// installs adds that a claim with a server asks for another install, and reports whether that begins now.
func (c *comparison) installs(e Effect, cl *bind.Claim, what string) bool {
	e.Kind, e.Image, e.value, e.Next = Pending, cl.Manifest.Spec.Image, what, askInstall(cl)
	rec, facts := c.after.servers[e.Server].Record, c.Fleet.Observed.ServerFacts[e.Server]
	served := []install.Stage{install.WritingDisk, install.Served, install.Installing, install.PoweredOff, install.Unreported}
	switch {
	case rec.Install.Digest != "" || rec.Doubt != nil:
		e.Message = fmt.Sprintf("goes on running what it was installed with: %s waits until it is asked for", what)
	case slices.Contains(served, c.Fleet.status[e.Server].InstallStage):
		e.Message = fmt.Sprintf("is being installed, which goes on: %s waits until it is asked for", what)
	default:
		e.Kind, e.Next, e.Message = Install, "", "is being installed, and starts over: "+what
		e.Destructive = facts != nil && facts.Power == model.PowerOn
	}
	c.add(e)
	return e.Kind == Install
}

// askInstall says how to have a claim's server installed again.
func askInstall(cl *bind.Claim) string {
	return fmt.Sprintf("to have it installed, which restarts the server: give %s a new value of annotation %s", cl.Name.Identity(), model.AnnotationReprovision)
}

// changedServers are the servers that are left alone with the commit, or have other annotations, or other
// plans for their disks.
func (c *comparison) changedServers() {
	told, wiped := c.servers(), c.servers(proposal.StepRelease, proposal.StepRetain, proposal.StepWipe)
	for _, is := range c.after.last.Servers {
		was := c.before.servers[is.Name]
		if was == nil {
			continue
		}
		e := Effect{Server: is.Name, Claim: is.Record.Claim.Name}
		c.settings(serverSettings, e, annotations(was.Manifest), annotations(is.Manifest))
		if before, after := c.before.disposal(was), c.after.disposal(is); before != after && !wiped[is.Name] {
			c.otherCleanup(e, was.Record, before, after)
		}
		if a := is.Approval; a != nil && (was.Approval == nil || was.Approval.Message != a.Message) {
			c.add(Effect{Kind: Wait, Server: e.Server, Claim: e.Claim, Message: a.Text(), value: a.Reason})
		}
		held := is.Why.Reason != "" && is.Why.Reason != was.Why.Reason && is.Why.Reason != model.ReasonPendingReprovision // see changedClaims
		if held && !told[is.Name] && !c.after.in.Busy[is.Name] {
			c.add(Effect{Kind: Hold, Server: e.Server, Claim: e.Claim, Message: "is left alone: " + is.Why.Text(), value: is.Why.Reason})
		}
	}
}

func annotations(s *model.Server) map[string]string {
	if s == nil {
		return nil
	}
	return s.Annotations
}

// otherCleanup adds that something else happens to a server's disks once it is released, or now if it is
// being released.
func (c *comparison) otherCleanup(e Effect, rec *model.ServerRecord, before, after disposal) {
	e.Kind, e.Cleanup = Cleanup, after.mode
	when := "when it is next released"
	switch state := rec.Settled(); {
	case state == model.StateCleanup, state == model.StateReserved && rec.Release != nil:
		when = "now"
		kept, wiped := before.retained || before.mode == model.CleanupNone, !after.retained && after.mode != model.CleanupNone
		e.Destructive = kept && wiped
	case rec.Life.State == model.StateReleased:
		when = "once reclaimPolicy is Recycle"
		before.retained, after.retained = false, false
	}
	e.Message = fmt.Sprintf("has its disks %s %s; without this: %s", after, when, before)
	c.add(e)
}

// changedImages are the names that mean another image with the commit.
func (c *comparison) changedImages() {
	names := make(map[string]bool)
	for _, d := range []*model.Desired{c.Base, c.Head} {
		if d.Images != nil {
			for _, i := range d.Images.Spec.Images {
				names[i.Name] = true
			}
		}
	}
	for name := range names {
		was, is := imagesText(c.Base.CatalogImages(name)), imagesText(c.Head.CatalogImages(name))
		if was == is {
			continue
		}
		var waiting []string
		bound := 0
		for _, cl := range c.after.last.Claims {
			switch s := c.before.servers[cl.Server]; {
			case cl.Manifest == nil || cl.Manifest.Spec.Image != name:
			case cl.Server == "":
				waiting = append(waiting, string(cl.Name))
			case s != nil && s.Record.Claim.Name == cl.Name:
				bound++
			}
		}
		e := Effect{Kind: OtherImage, value: name, Image: is, Message: fmt.Sprintf("means %s instead of %s", is, was)}
		if len(waiting) > 0 {
			e.Message += "; claims without a server get it: " + text.List(waiting, ", ")
		}
		if bound > 0 {
			e.Message += fmt.Sprintf("; claims with a server keep their image until %s has a new value: %d", model.AnnotationReprovision, bound)
		}
		c.add(e)
	}
}

// imagesText shows the images of a name.
func imagesText(images []model.CatalogImage) string {
	var texts []string
	for _, i := range images {
		says := i.Image
		if i.Architecture != "" {
			says += " (" + i.Architecture + ")"
		}
		texts = append(texts, says)
	}
	return cmp.Or(strings.Join(texts, ", "), "nothing")
}

// changedBMCs are the BMCs that the commit adds, changes and takes away.
func (c *comparison) changedBMCs() {
	all := maps.Clone(c.Base.BMCs)
	maps.Copy(all, c.Head.BMCs)
	for name, b := range all {
		e, was, is, refused := Effect{BMC: name}, c.before.bmc(name), c.after.bmc(name), ""
		if is != nil && is.Why.Reason == model.ReasonAddressNotAllowed {
			refused = is.Why.Text()
		}
		switch {
		case c.Base.BMCs[name] == nil && refused != "":
			e.Kind, e.Message = BMCAdded, "is not contacted: "+refused
		case c.Base.BMCs[name] == nil:
			e.Kind = BMCAdded
			e.Message = "is contacted; machines behind it that are Off are powered on to be discovered, those that run something are left alone"
		case c.Head.BMCs[name] == nil && c.Head.IsQuarantined(b.Identity()):
			continue
		case c.Head.BMCs[name] == nil:
			e.Kind, e.Message = BMCRemoved, "is no longer contacted; its servers stay as they are, and their power is not restored"
		case otherContact(was, is) == "":
			continue
		case refused != "":
			e.Kind, e.Message = BMCChanged, "has "+otherContact(was, is)+", and is no longer contacted: "+refused
		default:
			e.Kind, e.Message = BMCChanged, "has "+otherContact(was, is)+": what answers is checked before any request for its servers"
		}
		c.add(e)
	}
}

// bmc is what the last plan has of a BMC, nil if it has none.
func (f *future) bmc(name model.BMCName) *bmcs.BMC {
	if i := slices.IndexFunc(f.last.BMCs, func(b *bmcs.BMC) bool { return b.Name == name }); i >= 0 {
		return f.last.BMCs[i]
	}
	return nil
}

// otherContact says what differs in how a BMC is contacted, "" if nothing does.
func otherContact(was, is *bmcs.BMC) string {
	a, b := was.Target, is.Target
	switch {
	case was.Why.Reason == model.ReasonIgnored || is.Why.Reason == model.ReasonIgnored: // its address is not looked up
	case a.Scheme != b.Scheme || a.Address != b.Address || a.Hostname != b.Hostname:
		return "another address"
	case a.Username != b.Username || a.Password != b.Password || was.Manifest.Spec.BMCSecretRef != is.Manifest.Spec.BMCSecretRef:
		return "other credentials"
	case was.Manifest.Spec.BMCUUID != is.Manifest.Spec.BMCUUID:
		return "another UUID"
	case a.TLSMinimum != b.TLSMinimum:
		return "another lowest version of TLS"
	}
	return ""
}
