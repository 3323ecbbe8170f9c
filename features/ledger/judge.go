package ledger

import (
	"slices"
	"time"

	"ingot/model"
)

// event judges one event, and keeps what it changed.
func (b *Book) event(e Event) {
	m := b.machine(e.Machine)
	e.Claim = b.called(e.Claim)
	switch e.Kind {
	case Found:
		m.owner, m.since, m.dirty, m.hand = e.Claim, e.At, e.Claim != "", true
	case PowerOn:
		b.switchedOn(m, e)
	case PowerOff, PowerLost:
		if e.Kind == PowerOff && !e.ByHand && !b.wantsOff(m, e.At) {
			b.disrupt(m, e)
		}
		m.hand = false
	case Restart:
		if !e.ByHand {
			b.disrupt(m, e)
		}
	case NetBoot:
		if m.owner != "" && !b.always(m.owner) {
			b.disrupt(m, e)
		}
	case Wipe:
		b.wiped(m, e)
	case Install:
		b.installed(m, e)
	case Ignition:
		b.served(m, e)
	case DiskBoot:
	}
}

// disrupt uses up the request that asked for what takes a machine away from its user.
func (b *Book) disrupt(m *machine, e Event) {
	if m.owner == "" && !m.hand || m.again {
		return
	}
	b.tell(m, e.At)
	if a := b.releaseOf(m, e.At); a != nil {
		a.used = true
		b.release(m)
		return
	}
	if a := b.asks.find(e.At, askReprovision, string(m.owner)); a != nil && m.owner != "" {
		a.used, m.again = true, true
		return
	}
	for _, server := range b.serversOf(m) {
		if b.operated(m, e, server) {
			return
		}
		if a := b.asks.find(e.At, askDiscover, server); a != nil && m.owner == "" {
			a.used, m.hand = true, false
			return
		}
	}
	if m.owner == "" {
		b.violation(e, "a person has it running, and no commit names it")
		return
	}
	b.violation(e, "it belongs to claim %s, and no commit asked for that (any more)", m.owner)
}

func (b *Book) operated(m *machine, e Event, server string) bool {
	a := b.asks.find(e.At, askOperation, server)
	if a == nil {
		return false
	}
	switch operation(a.value) {
	case model.OperationIgnore, model.OperationUnpark, model.OperationPark:
		a.used = true
		return b.operated(m, e, server)
	case model.OperationRetry:
		a.used, m.again = true, true
		return true
	}
	if e.Kind != PowerOff && e.Kind != Restart {
		return false
	}
	a.used, m.cycled = true, true
	return true
}

func (b *Book) release(m *machine) {
	m.owner, m.other, m.hand = "", "", false
	for _, server := range b.serversOf(m) {
		s, ok := b.force.objects[model.Identity{Kind: model.KindServer, Name: server}].Object.(*model.Server)
		m.retained = m.retained || ok && s.Spec.ReclaimPolicy == model.ReclaimRetain
	}
	if !m.retained {
		return
	}
	for _, server := range b.serversOf(m) { // what was said before the release is no answer to it
		for a := b.asks.find(farFuture, askServer, server); a != nil; a = b.asks.find(farFuture, askServer, server) {
			a.used = true
		}
	}
}

// farFuture is later than any event.
var farFuture = time.Unix(1<<40, 0)

func (b *Book) wantsOff(m *machine, at time.Time) bool {
	return b.serviced(m, model.PowerOff, at) || m.owner != "" && b.powerIs(m.owner, model.PowerOff, at)
}

// powerIs reports whether a claim wants a power state, or did a moment ago.
func (b *Book) powerIs(c model.ClaimName, want model.Power, at time.Time) bool {
	w := b.power[c]
	return w.now == want || w.now != "" && at.Before(w.before)
}

func (b *Book) switchedOn(m *machine, e Event) {
	cycled := m.cycled
	m.cycled = false
	switch {
	case e.ByHand:
		m.hand = true
	case m.owner == "", m.again, cycled, b.powerIs(m.owner, model.PowerOn, e.At), b.serviced(m, model.PowerOn, e.At):
	case b.releaseOf(m, e.At) != nil, b.asks.find(e.At, askReprovision, string(m.owner)) != nil:
	case slices.ContainsFunc(b.serversOf(m), func(s string) bool { return b.switchedOnBy(s, e.At) }):
	default:
		b.violation(e, "claim %s wants it Off", m.owner)
	}
}

// switchedOnBy uses up an operation that switches a server on.
func (b *Book) switchedOnBy(server string, at time.Time) bool {
	a := b.asks.find(at, askOperation, server)
	if a == nil {
		return false
	}
	a.used = true
	return true
}

func (b *Book) wiped(m *machine, e Event) {
	if m.retained {
		asked := slices.ContainsFunc(b.serversOf(m), func(s string) bool { return b.asks.find(e.At, askServer, s) != nil })
		if !asked {
			b.violation(e, "it was released to be kept as it is, and nobody asked for a wipe")
		}
	}
	b.disrupt(m, e)
	m.owner, m.other, m.dirty, m.retained, m.again, m.unknown = "", "", m.dirty && len(e.Left) > 0, false, false, false
}

func (b *Book) installed(m *machine, e Event) {
	c := e.Claim
	if m.unknown = c == ""; m.unknown {
		m.owner, m.other, m.dirty, m.again = "", "", true, false
		return
	}
	switch at, removed := b.removed[c]; {
	case b.claim(c) == nil && (!removed || e.At.After(at.Add(b.grace))):
		b.violation(e, "claim %s is not in Git", c)
	case m.owner == c && !m.again && !b.always(c):
		b.violation(e, "claim %s was installed there before, and no commit asked for it again", c)
	case m.owner != "" && m.owner != c:
		b.violation(e, "for claim %s, over what belongs to claim %s", c, m.owner)
	case m.owner == "" && m.dirty:
		b.violation(e, "for claim %s, and its disks were not all wiped since its last owner", c)
	default:
		b.elsewhere(m, e)
		b.givenAway(m, e)
	}
	m.owner, m.other, m.since, m.dirty, m.again, m.retained = c, "", e.At, true, false, false
	if now := b.renamed[c]; b.claim(c) != nil && b.claim(now) != nil {
		m.other = now
	}
}

// elsewhere looks for another machine whose disk holds the claim.
func (b *Book) elsewhere(m *machine, e Event) {
	for _, other := range b.holding(e.Claim) {
		if a := b.releaseOf(other, e.At); other != m && (a == nil || a.at.Before(other.since)) {
			b.violation(e, "for claim %s, whose disk is in machine %s", e.Claim, other.uuid)
		}
	}
}

// releaseOf is the open request to release what a machine holds, or nil. One that was
// withdrawn before that was installed is none.
func (b *Book) releaseOf(m *machine, at time.Time) *ask {
	if m.owner == "" {
		return nil
	}
	a := b.asks.find(at, askRelease, string(m.owner))
	if a != nil && !a.until.IsZero() && a.at.Before(m.since) {
		return nil
	}
	return a
}

// served judges who was given a claim's Ignition.
func (b *Book) served(m *machine, e Event) {
	if e.Claim == "" {
		return
	}
	b.given[e.Claim] = append(b.given[e.Claim], given{e.Machine, e.At})
	switch named := b.named(e.Claim); {
	case m.owner != "" && m.owner != e.Claim && b.releaseOf(m, e.At) == nil:
		b.violation(e, "of claim %s, and it belongs to claim %s", e.Claim, m.owner)
	case named != "" && named != e.Machine:
		b.violation(e, "of claim %s, which is for machine %s", e.Claim, named)
	default:
		b.elsewhere(m, e)
	}
}

// named is the machine of the server that a claim names, "" if it names none that is known.
func (b *Book) named(c model.ClaimName) string {
	claim := b.claim(c)
	if claim == nil || claim.Spec.ServerRef == nil {
		return ""
	}
	name := claim.Spec.ServerRef.Name
	if s, ok := b.force.objects[model.Identity{Kind: model.KindServer, Name: name}].Object.(*model.Server); ok && s.Spec.SystemUUID != "" {
		return s.Spec.SystemUUID
	}
	return b.names[model.ServerName(name)]
}

// givenAway looks for another machine that was given a claim's Ignition and is not where the
// claim was installed, though nobody asked to release it in between.
func (b *Book) givenAway(m *machine, e Event) {
	for _, g := range b.given[e.Claim] {
		released := slices.ContainsFunc(b.asks, func(a *ask) bool {
			return a.kind == askRelease && a.name == string(e.Claim) && a.at.After(g.at)
		})
		if g.uuid != m.uuid && !released && b.machine(g.uuid).owner != e.Claim { // else see elsewhere
			b.violation(e, "for claim %s, whose Ignition machine %s was given", e.Claim, g.uuid)
			return
		}
	}
}

// always reports whether a claim's machine boots from the network each time.
func (b *Book) always(c model.ClaimName) bool {
	claim := b.claim(c)
	return claim != nil && claim.Annotations[model.AnnotationBoot] == "always"
}

// Shown is what the status branch says of a claim.
type Shown struct {
	Booted bool
	Reason string // why it may be on two disks, or on none
	Waits  string // the reason of any condition that is not met
}

// AtRest compares claims with disks once nothing is under way any more: each has one,
// or a reason is shown.
func (b *Book) AtRest(shown map[model.ClaimName]Shown, at time.Time) (found []Violation) {
	for _, id := range sorted(b.force.objects) {
		c, ok := b.force.objects[id].Object.(*model.ServerClaim)
		if !ok {
			continue
		}
		name := c.ClaimName()
		holding := b.holding(name)
		e := Event{At: at, Claim: name}
		s, is := shown[name]
		if !is && b.force.dropped[id] && len(b.given[name]) == 0 {
			continue // it was pushed and taken away again while no Ingot looked: there is nothing to keep
		}
		switch {
		case len(holding) > 1 && s.Reason == "":
			e.Machine = holding[1].uuid
			found = append(found, Violation{e, "at rest it holds claim " + string(name) + ", as does machine " + holding[0].uuid + ", and nothing says why"})
		case len(holding) == 0 && s.Booted && !b.mayHold(name, shown):
			found = append(found, Violation{e, "claim " + string(name) + " is said to be Booted, and no disk holds it"})
		case len(holding) == 0 && !s.Booted && s.Reason == "" && s.Waits == "" && c.Spec.Power != model.PowerOff:
			found = append(found, Violation{e, "no disk holds claim " + string(name) + ", and nothing says why"})
		}
	}
	return found
}

// mayHold reports whether a disk may hold a claim: nobody can tell whose it is, or its
// other owner does not run.
func (b *Book) mayHold(c model.ClaimName, shown map[model.ClaimName]Shown) bool {
	for _, m := range b.machines {
		if m.unknown || m.other == c && !shown[m.owner].Booted {
			return true
		}
	}
	return false
}
