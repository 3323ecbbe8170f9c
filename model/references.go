package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Reference is a place where an object names another one.
type Reference struct {
	To           Identity
	Field        string // path of the name
	Line, Column int    // where it stands in the object's file
}

// Problem is a warning about what an object names.
func (r *Reference) Problem(of Object, message string) Problem {
	file, _ := sourceOf(of)
	return Problem{
		Severity: SeverityWarning, File: file, Line: r.Line, Column: r.Column,
		Object: of.Identity().String(), Field: r.Field, Message: message, Rule: RuleReference,
	}
}

// Guesses finds what people may have meant by names that nothing has. How much it looks for
// is bounded, however many those are: for the rest it says nothing.
type Guesses struct {
	// Left is with how many known names it may still compare.
	Left int
}

// MaxGuesses is a bound that takes some hundredths of a second at worst.
const MaxGuesses = 20_000

// leastCost is what a search costs at least, so that there are not too many.
const leastCost = 100

// Near is what to add to a message about a name that is not among the known: ", did you
// mean …?", or "".
func (g *Guesses) Near(name string, known []string) string { return didYouMean(g.nearest(name, known)) }

func (g *Guesses) nearest(name string, known []string) string {
	cost := max(len(known), leastCost)
	if cost > g.Left {
		return ""
	}
	g.Left -= cost
	return Nearest(name, known)
}

func didYouMean(near string) string {
	if near == "" {
		return ""
	}
	return ", did you mean " + strconv.Quote(near) + "?"
}

// dangling warns of references to objects that stand in no manifest. Servers come to be by
// discovery, so what names one is for the plan to judge.
func (c *crossCheck) dangling() {
	type miss struct {
		from Object
		ref  *Reference
	}
	var missing []miss
	objects := c.desired.objects()
	for _, o := range objects {
		refs := o.Metadata().References
		for i := range refs {
			if c.dangles(refs[i].To) {
				missing = append(missing, miss{o, &refs[i]})
			}
		}
	}
	if len(missing) == 0 {
		return
	}
	slices.SortFunc(missing, func(a, b miss) int { // the first ones have a guess
		return cmp.Or(cmp.Compare(a.from.Identity().String(), b.from.Identity().String()), cmp.Compare(a.ref.Field, b.ref.Field))
	})
	names, guesses := make(map[Identity][]string), Guesses{MaxGuesses}
	for _, o := range objects {
		id := o.Identity()
		all := Identity{Kind: id.Kind, Namespace: id.Namespace}
		names[all] = append(names[all], id.Name)
	}
	for _, among := range names {
		slices.Sort(among) // of two that are as near, always the same
	}
	for _, m := range missing {
		to := m.ref.To
		more := cmp.Or(guesses.Near(to.Name, names[Identity{Kind: to.Kind, Namespace: to.Namespace}]), discoverable[to.Kind])
		c.problems = append(c.problems, m.ref.Problem(m.from, "no manifest here defines "+to.String()+more))
	}
}

// dangles reports whether what a reference names stands in no manifest, and should.
func (c *crossCheck) dangles(to Identity) bool {
	return to.Kind != KindServer && !(c.SecretsElsewhere && to.Kind.secret()) && !c.desired.has(to) && !c.desired.IsQuarantined(to) && !c.made(to)
}

func (d *Desired) has(id Identity) bool {
	switch id.Kind {
	case KindEndpoint:
		return is(d.Endpoints[id.Name], id)
	case KindBMC:
		return is(d.BMCs[BMCName(id.Name)], id)
	case KindBMCSecret:
		return is(d.BMCSecrets[id.Name], id)
	case KindServer:
		return is(d.Servers[ServerName(id.Name)], id)
	case KindServerClaim, KindServerBootConfiguration:
		return is(d.Claims[id.ClaimName()], id)
	case KindServerMaintenance:
		return is(d.Maintenances[id.Name], id)
	case KindServerReadinessRule:
		return is(d.ReadinessRules[id.Name], id)
	case KindImageCatalog:
		return d.Images != nil
	case KindSecret:
		return is(d.Secrets[Named[ObjectName](id.Namespace, id.Name)], id)
	}
	return false
}

func is[O interface {
	comparable
	Object
}](o O, id Identity) bool {
	var none O
	return o != none && o.Identity() == id
}

// discoverable says of kinds that come to be by discovery, too, what those are called.
var discoverable = map[Kind]string{
	KindEndpoint: "; a device that DHCP finds is called by its network and MAC address, as oob-001a2b3c4d5e is",
	KindBMC:      "; one that DHCP finds is called by its network and MAC address, as oob-001a2b3c4d5e is",
	// see secretFiles
	KindBMCSecret: "; one outside Git is in the folder that secretFiles names",
	KindSecret:    "; one outside Git is in the folder that secretFiles names",
}

// made reports whether Ingot may make the object itself: a device that DHCP finds, or what the
// server of a claim boots.
func (c *crossCheck) made(id Identity) bool {
	switch id.Kind {
	case KindEndpoint, KindBMC:
		i := strings.LastIndexByte(id.Name, '-')
		_, err := CanonicalMAC(id.Name[i+1:])
		return i > 0 && err == nil
	case KindServerBootConfiguration:
		return c.desired.Claims[Named[ClaimName](id.Namespace, id.Name)] != nil
	default:
		return false
	}
}
