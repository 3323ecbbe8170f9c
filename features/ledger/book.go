package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// DefaultGrace is how long what was decided may take to be carried out after what
// asked for it was withdrawn.
const DefaultGrace = 30 * time.Second

// History is all that a Book is made of.
type History struct {
	Revisions []Revision
	Events    []Event
	// Names are the machines of servers that no manifest names by UUID.
	Names map[model.ServerName]string
	// Grace is DefaultGrace when zero.
	Grace time.Duration
}

// Book is a history replayed.
type Book struct {
	Violations []Violation

	grace    time.Duration
	names    map[model.ServerName]string
	force    *force
	asks     asks
	machines map[string]*machine
	renamed  map[model.ClaimName]model.ClaimName
	power    map[model.ClaimName]wanted
	services []*service
	removed  map[model.ClaimName]time.Time
	given    map[model.ClaimName][]given
}

// given is that a machine was given a claim's Ignition.
type given struct {
	uuid string
	at   time.Time
}

// wanted is the power state that a claim asks for, and until when it asked for the
// other one.
type wanted struct {
	now    model.Power
	before time.Time
}

// machine is what the book knows of one machine.
type machine struct {
	uuid  string
	owner model.ClaimName // what its disk was installed for, "" = nobody has it
	// other may be the owner as well: the claim was renamed and a rewritten history
	// brought its former name back, so that both are in force, and what acts need not
	// have seen the one revision in between.
	other model.ClaimName
	since time.Time // when that was installed
	// dirty is set while the disk holds what an owner left.
	dirty    bool
	retained bool // and is to be kept so
	hand     bool // a person has it running
	// unknown is set while the disk holds what nobody can tell the owner of.
	unknown bool
	// again is set while its owner asked for it to be installed again, cycled while a
	// power cycle that was asked for is under way.
	again, cycled bool
}

// Replay reads a history into a book.
func Replay(h History) *Book {
	b := &Book{
		grace: h.Grace, names: h.Names, force: newForce(), machines: make(map[string]*machine),
		renamed: make(map[model.ClaimName]model.ClaimName), power: make(map[model.ClaimName]wanted),
		removed: make(map[model.ClaimName]time.Time),
		given:   make(map[model.ClaimName][]given),
	}
	if b.grace == 0 {
		b.grace = DefaultGrace
	}
	events := slices.Clone(h.Events)
	slices.SortStableFunc(events, func(x, y Event) int { return x.At.Compare(y.At) })
	for _, r := range h.Revisions {
		for len(events) > 0 && events[0].At.Before(r.At) {
			b.event(events[0])
			events = events[1:]
		}
		b.revision(r)
	}
	for _, e := range events {
		b.event(e)
	}
	return b
}

func (b *Book) revision(r Revision) {
	b.noteApprovals() // a machine may have been installed since the last one
	defer b.noteApprovals()
	secrets := maps.Clone(b.force.objects)
	changes := b.force.take(r)
	pairs := renames(changes, func(c *model.ServerClaim) string { return b.secretOf(c, secrets) })
	for _, c := range changes {
		b.note(c, r.At, pairs)
	}
	b.rename(pairs)
	for _, m := range b.machines {
		for old, new := range b.renamed {
			if m.owner == new && b.claim(old) != nil {
				m.other = old
			}
		}
	}
}

// tell decides which of two claims a machine's disk is of, once a request to release
// one of them tells.
func (b *Book) tell(m *machine, at time.Time) {
	if m.other != "" && b.releaseOf(m, at) == nil && b.asks.find(at, askRelease, string(m.other)) != nil {
		m.owner, m.other = m.other, ""
	}
}

// secretOf is the content of the Secret that a claim names, as it is now or was.
func (b *Book) secretOf(c *model.ServerClaim, before map[model.Identity]placed) string {
	if c.Spec.IgnitionSecretRef == nil {
		return ""
	}
	id := model.Identity{Kind: "Secret", Namespace: c.Namespace, Name: c.Spec.IgnitionSecretRef.Name}
	o, in := b.force.objects[id]
	if !in {
		o = before[id]
	}
	s, ok := o.Object.(*model.Secret)
	if !ok {
		return ""
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s.Values)) {
		fmt.Fprintf(&text, "%s=%s\n", key, s.Values[key].Reveal())
	}
	return text.String()
}

// note has one change ask, and keeps what is a state rather than a request.
func (b *Book) note(c change, at time.Time, pairs map[model.ClaimName]model.ClaimName) {
	old, gone := c.Old.(*model.ServerClaim)
	if _, renamed := pairs[claimOf(old, gone)]; !gone || !renamed {
		b.asks = append(b.asks, requests(c, at)...)
	}
	switch o := c.either().(type) {
	case *model.ServerClaim:
		b.noteClaim(o, c.New == nil, at)
	case *model.Server:
		b.notePark(o, c.New == nil, at)
	case *model.ServerMaintenance:
		b.noteMaintenance(o, c.New == nil, at)
	}
}

func claimOf(c *model.ServerClaim, is bool) model.ClaimName {
	if !is {
		return ""
	}
	return c.ClaimName()
}

func (b *Book) noteClaim(c *model.ServerClaim, gone bool, at time.Time) {
	name := c.ClaimName()
	if gone {
		b.removed[name] = at
		return
	}
	if _, was := b.removed[name]; was {
		delete(b.removed, name)
		b.asks.withdraw(askRelease, string(name), at.Add(b.grace))
	}
	switch w := b.power[name]; w.now {
	case c.Spec.Power:
	case "": // a new claim wanted nothing else before
		b.power[name] = wanted{now: c.Spec.Power}
	default:
		b.power[name] = wanted{now: c.Spec.Power, before: at.Add(b.grace)}
	}
}

// rename has claims go on under other names, with their open requests. All names change at once.
func (b *Book) rename(names map[model.ClaimName]model.ClaimName) {
	b.asks.rename(askReprovision, names)
	power := maps.Clone(b.power)
	for old, new := range names {
		if w, known := power[old]; known {
			b.power[new] = w // with the former power
		}
		b.renamed[old] = new
	}
	for _, new := range names {
		delete(b.renamed, new) // it is a claim's name again
	}
	for _, m := range b.machines {
		if new, renamed := names[m.owner]; renamed {
			m.owner = new
		}
	}
}

func (b *Book) called(c model.ClaimName) model.ClaimName {
	for range len(b.renamed) {
		if b.claim(c) != nil || b.renamed[c] == "" {
			break
		}
		c = b.renamed[c]
	}
	return c
}

// claim is a claim in force, or nil.
func (b *Book) claim(name model.ClaimName) *model.ServerClaim {
	c, _ := b.force.objects[name.Identity()].Object.(*model.ServerClaim)
	return c
}

func (b *Book) machine(uuid string) *machine {
	m := b.machines[uuid]
	if m == nil {
		m = &machine{uuid: uuid}
		b.machines[uuid] = m
	}
	return m
}

// called are the names that Git may have for a machine.
func (b *Book) serversOf(m *machine) (names []string) {
	for _, id := range sorted(b.force.objects) {
		if s, ok := b.force.objects[id].Object.(*model.Server); ok && s.Spec.SystemUUID == m.uuid {
			names = append(names, s.Name)
		}
	}
	for name, uuid := range b.names {
		if uuid == m.uuid {
			names = append(names, string(name))
		}
	}
	return names
}

// Disk is what the disk of a machine holds: the claim, or "".
func (b *Book) Disk(uuid string) model.ClaimName { return b.machine(uuid).owner }

func (b *Book) holding(c model.ClaimName) (all []*machine) {
	for _, uuid := range slices.Sorted(maps.Keys(b.machines)) {
		if m := b.machines[uuid]; c != "" && m.owner == c {
			all = append(all, m)
		}
	}
	return all
}

func (b *Book) violation(e Event, format string, args ...any) {
	b.Violations = append(b.Violations, Violation{Event: e, Why: fmt.Sprintf(format, args...)})
}
