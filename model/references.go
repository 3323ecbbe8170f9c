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

// Spent reports whether nothing is looked for any longer.
func (g *Guesses) Spent() bool { return g.Left < leastCost }

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
	known := make(map[Identity]bool)
	objects := c.desired.objects()
	for _, o := range objects {
		known[o.Identity()] = true
	}
	for _, o := range objects {
		refs := o.Metadata().References
		for i := range refs {
			if to := refs[i].To; to.Kind != KindServer && !(c.secretsElsewhere && to.Kind.secret()) && !known[to] && !c.desired.Quarantined[to] && !c.made(to) {
				missing = append(missing, miss{o, &refs[i]})
			}
		}
	}
	slices.SortFunc(missing, func(a, b miss) int { // the first ones have a guess
		return cmp.Or(cmp.Compare(a.from.Identity().String(), b.from.Identity().String()), cmp.Compare(a.ref.Field, b.ref.Field))
	})
	names, guesses := make(map[Identity][]string), Guesses{MaxGuesses}
	for id := range known {
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

// discoverable says of kinds that come to be by discovery, too, what those are called.
var discoverable = map[Kind]string{
	KindEndpoint: "; a device that DHCP finds is called by its network and MAC address, as oob-001a2b3c4d5e is",
	KindBMC:      "; one that DHCP finds is called by its network and MAC address, as oob-001a2b3c4d5e is",
	// see secretFiles
	KindBMCSecret: "; one outside Git stands in the folder that secretFiles names",
	KindSecret:    "; one outside Git stands in the folder that secretFiles names",
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
