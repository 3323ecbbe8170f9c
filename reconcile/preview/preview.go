package preview

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// Input is all that a preview is made of. Nobody changes what it points to.
type Input struct {
	Fleet *Fleet
	// Base is what Git says without the commit, Head what it says with it.
	Base, Head *model.Desired
	Policy     policy.Options
	Now        time.Time
	// Behind is set when Ingot has not acted yet upon all that the base says: that it has then is what
	// the commit begins with.
	Behind bool
	Notes  []string // of what is not known
}

// Of says what the step from Base to Head does. The same input gives the same preview.
func Of(in Input) *Preview {
	if in.Behind {
		in.Fleet = in.Fleet.following(in.Base, in.Policy, in.Now)
	}
	c := comparison{Input: in}
	base, head := in.Fleet.standIns(in.Base, in.Base), in.Fleet.standIns(in.Head, in.Base)
	c.before = follow(in.Fleet.input(base, in.Policy, in.Now))
	c.after = follow(in.Fleet.input(head, in.Policy, in.Now))
	c.released()
	p := &Preview{Base: in.Base.Revision, Head: in.Head.Revision, Effects: []Effect{}, Held: c.held(), Problems: c.problems(), Notes: in.Notes}
	p.Effects = append(p.Effects, c.servers()...)
	p.Effects = append(p.Effects, c.changedBoots(p.Effects)...)
	p.Effects = append(p.Effects, c.claims()...)
	p.Effects = append(p.Effects, c.left(p.Effects)...)
	p.Effects = append(p.Effects, c.laterBoots(p.Effects)...)
	p.Effects = append(p.Effects, c.laterCleanups(p.Effects)...)
	p.Effects = append(p.Effects, c.settings()...)
	p.Effects = append(p.Effects, c.bmcs()...)
	p.sort()
	p.Verdict = p.judge()
	return p
}

// comparison is one under way.
type comparison struct {
	Input
	before, after *future
	// later are the claims that get a server once it was wiped, with that server.
	later map[model.ClaimName]model.ServerName
}

// servers are the effects on servers that the step has and its base has not, and those that
// are off with it.
func (c *comparison) servers() []Effect {
	before, after := c.before.effects(c.Fleet), c.after.effects(c.Fleet)
	had := keys(before, (*Effect).key)
	goes := keys(after, (*Effect).thing)
	all := slices.DeleteFunc(after, func(e Effect) bool { return had[e.key()] })
	for _, e := range before {
		if goes[e.thing()] || e.Kind == Touch || e.Kind == Bind {
			continue // a server that another claim gets is told with that claim
		}
		all = append(all, Effect{
			Kind: NoLonger, Server: e.Server, Claim: e.Claim, value: e.key(),
			Message: "is spared what it waits for: it " + e.Message,
		})
	}
	return all
}

func keys(effects []Effect, of func(*Effect) string) map[string]bool {
	all := make(map[string]bool, len(effects))
	for i := range effects {
		all[of(&effects[i])] = true
	}
	return all
}

// released finds out which claims get the servers that the commit has wiped: what goes well
// with them is taken for granted.
func (c *comparison) released() {
	c.later = make(map[model.ClaimName]model.ServerName)
	if !slices.ContainsFunc(c.after.last.Claims, func(cl *bind.Claim) bool { return cl.Server == "" }) {
		return
	}
	in := *c.after.in
	o := *in.Observed
	o.Servers, o.ServerFacts = maps.Clone(o.Servers), maps.Clone(o.ServerFacts)
	in.Observed, in.Readings = &o, maps.Clone(in.Readings)
	in.Busy = maps.Clone(in.Busy)
	freed := false
	for name, rec := range o.Servers {
		if rec.Life.State != model.StateCleanup && (rec.Release == nil || c.after.retained(name)) {
			continue
		}
		free := *rec
		free.Life.State, free.Claim.Name, free.Claim.Tenant, free.Release, free.Boot.Ticket, free.Power.Asked = model.StateAvailable, "", "", nil, nil, nil
		o.Servers[name] = &free
		o.ServerFacts[name] = &model.ServerFacts{Name: name, Power: model.PowerOff, Inventory: new(model.Inventory)}
		if facts := c.Fleet.Observed.ServerFacts[name]; facts != nil {
			o.ServerFacts[name].Inventory = facts.Inventory
		}
		in.Readings[name] = reading.State{At: in.Now, InventoryAt: in.Now, Reached: true, Offs: 1000}
		delete(in.Busy, name)
		freed = true
	}
	if !freed {
		return
	}
	then := follow(&in)
	for name, rec := range then.in.Observed.Servers {
		if rec.Claim.Name != "" && rec.Claim.Name != c.after.in.Observed.Servers[name].Claim.Name {
			c.later[rec.Claim.Name] = name
		}
	}
}

// held are the lists that the guard holds back with the commit, and not without it.
func (c *comparison) held() []Held {
	known := make(map[string]bool)
	for _, h := range c.before.in.Observed.Fleet.Holds {
		for _, d := range h.Steps {
			known[StepText(d)] = true
		}
	}
	recorded := make(map[string]bool)
	for _, h := range c.Fleet.Observed.Fleet.Holds {
		recorded[h.Token] = true
	}
	all := []Held{}
	for _, h := range c.after.in.Observed.Fleet.Holds {
		if !slices.ContainsFunc(h.Steps, func(d model.Disruption) bool { return !known[StepText(d)] }) {
			continue
		}
		held := Held{Steps: h.Steps, Limit: h.Limit, Namespace: h.Scope, Until: h.Until}
		if recorded[h.Token] {
			held.Approve = proposal.ApproveLine(h.Token)
		}
		all = append(all, held)
	}
	return all
}

// StepText says which step the guard holds back.
func StepText(d model.Disruption) string {
	says := d.Action + " of server " + string(d.Server)
	if d.Claim != "" {
		says += " from claim " + string(d.Claim)
	}
	switch d.Action {
	case "reprovision", "maintenance", "operation", "discover":
		says += ": " + d.Value
	}
	return says
}

// problems are those of Git that the step brings.
func (c *comparison) problems() []model.Problem {
	type same struct {
		severity            model.Severity
		file, object, field string
		message             string
	}
	of := func(p model.Problem) same { return same{p.Severity, p.File, p.Object, p.Field, p.Message} }
	had := make(map[same]bool)
	for _, p := range slices.Concat(c.Base.Problems, c.before.last.Unmatched) {
		had[of(p)] = true
	}
	all := []model.Problem{}
	for _, p := range slices.Concat(c.Head.Problems, c.after.last.Unmatched) {
		if !had[of(p)] {
			all = append(all, p)
		}
	}
	return all
}

// changedBoots are the claims that ask for something else than before.
func (c *comparison) changedBoots(effects []Effect) []Effect {
	handled := serversOf(effects, Bind, Adopt, Reprovision, Release, Retain)
	var all []Effect
	for _, cl := range c.after.last.Claims {
		server, before := cl.Server, c.formerly(cl.Name)
		if server == "" || handled[server] || before == nil || cl.Manifest == nil {
			continue
		}
		if what := c.otherBoot(before, cl.Manifest); what != "" {
			all = append(all, c.otherInstall(server, cl, what))
		}
	}
	return all
}

// formerly is a claim as it is without the commit, nil if it is new. It may have another name.
func (c *comparison) formerly(name model.ClaimName) *model.ServerClaim {
	if before := c.Base.Claims[name]; before != nil {
		return before
	}
	for old, now := range c.Head.Renamed {
		if now == name {
			return c.Base.Claims[old]
		}
	}
	return nil
}

// otherBoot says what of a claim's boot is another, "" if nothing.
func (c *comparison) otherBoot(before, after *model.ServerClaim) string {
	var what []string
	if before.Spec.Image != after.Spec.Image {
		what = append(what, fmt.Sprintf("image %s instead of %s", after.Spec.Image, before.Spec.Image))
	}
	if !reflect.DeepEqual(secretOf(c.Base, before), secretOf(c.Head, after)) {
		what = append(what, "what its Secret holds")
	}
	if a, b := before.Annotations[model.AnnotationKernelArguments], after.Annotations[model.AnnotationKernelArguments]; a != b {
		what = append(what, "other kernel arguments")
	}
	for _, a := range diskAnnotations {
		if was, is := before.Annotations[a.name], after.Annotations[a.name]; was != is {
			what = append(what, fmt.Sprintf("%s (%s %q instead of %q)", a.what, a.name, is, was))
		}
	}
	return strings.Join(what, ", ")
}

// diskAnnotations are the annotations of a claim that say where a disk image goes, and with what.
var diskAnnotations = []struct{ name, what string }{
	{model.AnnotationRootDevice, "another disk"},
	{model.AnnotationSeed, "another way for its configuration"},
	{model.AnnotationOverwrite, "another say on what may be overwritten"},
}

// secretOf is what a claim's Secret holds, as far as Git says.
func secretOf(d *model.Desired, c *model.ServerClaim) map[string]model.Sensitive {
	if c.Spec.IgnitionSecretRef == nil {
		return nil
	}
	s := d.Secrets[model.Named[model.ObjectName](c.Namespace, c.Spec.IgnitionSecretRef.Name)]
	if s == nil {
		return map[string]model.Sensitive{"": model.NewSensitive(c.Spec.IgnitionSecretRef.Name)} // elsewhere, and as it was
	}
	return s.Values
}

// otherInstall is what comes of it that a claim which has a server asks for something else.
func (c *comparison) otherInstall(server model.ServerName, cl *bind.Claim, what string) Effect {
	e := Effect{Kind: Pending, Server: server, Claim: cl.Name, Image: cl.Manifest.Spec.Image, value: what}
	rec := c.after.in.Observed.Servers[server]
	switch stage := c.Fleet.stages[server]; {
	case rec.Install.Digest != "" || rec.Doubt != nil:
		e.Message = fmt.Sprintf("goes on running what it was installed with: %s waits until it is asked for", what)
		e.Next = fmt.Sprintf("to have it installed, which restarts the server: give %s a new value of annotation %s", cl.Name.Identity(), model.AnnotationReprovision)
	case slices.Contains([]install.Stage{install.WritingDisk, install.Served, install.Installing, install.PoweredOff, install.Unreported}, stage):
		e.Message = fmt.Sprintf("is being installed, and goes on with what it was served: %s waits until it is asked for", what)
		e.Next = fmt.Sprintf("to have it installed after that: give %s a new value of annotation %s", cl.Name.Identity(), model.AnnotationReprovision)
	default:
		facts := c.Fleet.Observed.ServerFacts[server]
		e.Kind, e.Destructive = Install, facts != nil && facts.Power == model.PowerOn
		e.Message = "is being installed, and begins anew: " + what
	}
	return e
}

// claims are the effects on claims that have no server.
func (c *comparison) claims() []Effect {
	before := make(map[model.ClaimName]*bind.Claim)
	for _, cl := range c.before.last.Claims {
		before[cl.Name] = cl
	}
	var all []Effect
	for _, cl := range c.after.last.Claims {
		if cl.Server != "" {
			continue
		}
		old, was := before[cl.Name]
		if was && old.Server == "" && old.Why.Reason == cl.Why.Reason && sameManifest(old.Manifest, cl.Manifest) && c.later[cl.Name] == "" {
			continue // it waits as it did
		}
		e := Effect{Kind: Wait, Claim: cl.Name, Message: "waits for a server: " + cl.Why.Text(), value: cl.Why.Reason}
		if server := c.later[cl.Name]; server != "" {
			e.Image, e.Server = cl.Manifest.Spec.Image, server
			e.Kind, e.Message = Bind, fmt.Sprintf("is bound to claim %s once it is wiped, and image %s is installed", cl.Name, e.Image)
		}
		all = append(all, e)
	}
	for name, old := range before {
		if c.Head.Claims[name] != nil || c.Head.Renamed[name] != "" || c.Head.IsQuarantined(name.Identity()) {
			continue
		}
		rec := c.Fleet.Observed.Servers[old.Server]
		switch {
		case old.Server == "":
			all = append(all, Effect{Kind: Withdraw, Claim: name, Message: "is gone; it had no server"})
		case rec != nil && rec.Claim.Name == "" && c.before.in.Observed.Servers[old.Server].Claim.Name == name:
			all = append(all, c.takenAgain(name, old.Server))
		}
	}
	return all
}

// takenAgain is that a claim is gone which the status branch does not show to have a server yet, but which
// Ingot is about to give one, or has given by the time of the merge.
func (c *comparison) takenAgain(claim model.ClaimName, server model.ServerName) Effect {
	s := serverFuture{future: c.before, fleet: c.Fleet, name: server}
	e := s.release(claim, c.before.retained(server))
	e.Server = server
	e.Message = fmt.Sprintf("is about to be bound to claim %s, as the base says, and then it %s", claim, e.Message)
	return e
}

// sameManifest reports whether two claims ask for the same.
func sameManifest(a, b *model.ServerClaim) bool {
	return a != nil && b != nil && reflect.DeepEqual(a.Spec, b.Spec) && maps.Equal(a.Annotations, b.Annotations)
}

// left are the servers that are left alone with the commit, for a reason that does not hold
// without it.
func (c *comparison) left(effects []Effect) []Effect {
	told := make(map[model.ServerName]bool)
	for _, e := range effects {
		told[e.Server] = true
	}
	before := make(map[model.ServerName]proposal.Why)
	for _, s := range c.before.last.Servers {
		before[s.Name] = s.Why
		if s.Approval != nil {
			before["approval of "+s.Name] = *s.Approval
		}
	}
	var all []Effect
	for _, s := range c.after.last.Servers {
		if a := s.Approval; a != nil && before["approval of "+s.Name].Message != a.Message {
			all = append(all, Effect{Kind: Wait, Server: s.Name, Claim: s.Record.Claim.Name, Message: a.Text(), value: a.Reason})
		}
		asks := len(c.after.asked[s.Name]) > 0
		if s.Why.Reason == "" || asks || told[s.Name] || before[s.Name].Reason == s.Why.Reason {
			continue
		}
		all = append(all, Effect{Kind: Hold, Server: s.Name, Claim: s.Record.Claim.Name, Message: "is left alone: " + s.Why.Text(), value: s.Why.Reason})
	}
	return all
}

// bmcs are the BMCs that the commit adds, changes and takes away.
func (c *comparison) bmcs() []Effect {
	behind := make(map[model.BMCName][]string)
	for _, name := range slices.Sorted(maps.Keys(c.Fleet.Observed.Servers)) {
		b := c.Fleet.Observed.Servers[name].BMC
		behind[b] = append(behind[b], string(name))
	}
	refused := make(map[model.BMCName]string)
	for _, b := range c.after.last.BMCs {
		if b.Why.Reason == model.ReasonAddressNotAllowed {
			refused[b.Name] = b.Why.Text()
		}
	}
	names := maps.Clone(c.Base.BMCs)
	maps.Copy(names, c.Head.BMCs)
	var all []Effect
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, after := c.Base.BMCs[name], c.Head.BMCs[name]
		servers := text.List(behind[name], ", ")
		switch {
		case before == nil && refused[name] != "":
			all = append(all, Effect{Kind: BMCAdded, BMC: name, Message: "is not contacted: " + refused[name]})
		case before == nil:
			all = append(all, Effect{Kind: BMCAdded, BMC: name, Message: "is contacted; machines behind it that are Off are powered on to be discovered, " +
				"those that run something are left alone"})
		case after == nil && c.Head.IsQuarantined(before.Identity()):
		case after == nil && servers == "":
			all = append(all, Effect{Kind: BMCRemoved, BMC: name, Message: "is no longer contacted"})
		case after == nil:
			all = append(all, Effect{Kind: BMCRemoved, BMC: name, Message: "is no longer contacted: " + servers + " stay as they are, and their power is not restored"})
		default:
			switch what := c.otherBMC(before, after); {
			case what != "" && refused[name] != "":
				all = append(all, Effect{Kind: BMCChanged, BMC: name, value: what, Message: "has " + what + ", and is no longer contacted: " + refused[name]})
			case what != "":
				all = append(all, Effect{Kind: BMCChanged, BMC: name, value: what, Message: "has " + what + ": what answers is checked before any request for " + servers})
			}
		}
	}
	return all
}

// otherBMC says what of a BMC is another, "" if nothing that it is spoken with by.
func (c *comparison) otherBMC(before, after *model.BMC) string {
	a, b := before.Spec, after.Spec
	secret := func(d *model.Desired, name string) map[string]model.Sensitive {
		if s := d.BMCSecrets[name]; s != nil {
			return s.Values
		}
		return nil
	}
	switch {
	case !reflect.DeepEqual(a.Access, b.Access), !reflect.DeepEqual(a.EndpointRef, b.EndpointRef), a.Protocol != b.Protocol, c.otherEndpoint(before, after):
		return "another address"
	case a.BMCSecretRef != b.BMCSecretRef, !reflect.DeepEqual(secret(c.Base, a.BMCSecretRef.Name), secret(c.Head, b.BMCSecretRef.Name)):
		return "other credentials"
	case a.BMCUUID != b.BMCUUID:
		return "another UUID"
	case before.Annotations[model.AnnotationTLSMinimum] != after.Annotations[model.AnnotationTLSMinimum]:
		return "another lowest version of TLS"
	}
	return ""
}

func (c *comparison) otherEndpoint(before, after *model.BMC) bool {
	if before.Spec.EndpointRef == nil || after.Spec.EndpointRef == nil {
		return false
	}
	a, b := c.Base.Endpoints[before.Spec.EndpointRef.Name], c.Head.Endpoints[after.Spec.EndpointRef.Name]
	return a != nil && b != nil && a.Spec != b.Spec
}
