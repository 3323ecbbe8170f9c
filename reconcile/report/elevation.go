package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// Elevation is what one picture of the status branch shows, for a page that draws each
// rack by itself and has RackStyle in its stylesheet.
type Elevation struct{ of picture }

// ElevationsOf returns the elevations of a report, and how many racks are left out.
func ElevationsOf(r *model.Report) (all []Elevation, leftOut int) {
	var tiles []tile
	d := reportedBy(r)
	for _, path := range d.paths {
		if !strings.HasPrefix(path, serverFolder) {
			continue
		}
		of, _ := d.at(path)
		if doc, ok := of.(*Document); ok {
			if t, placed := tileOf(doc); placed {
				tiles = append(tiles, t)
			}
		}
	}
	pictures, leftOut := picturesOf(tiles)
	for _, p := range pictures {
		all = append(all, Elevation{p})
	}
	return all, leftOut
}

// tileOf is a server in the picture of its rack, if it has a place.
func tileOf(d *Document) (t tile, placed bool) {
	st, ok := d.Status.(ServerStatus)
	at := d.place()
	if !ok || at.rack == "" {
		return tile{}, false
	}
	s := serverSummary(d, st)
	act := waitingOf(st.Conditions, s.Why, s.Since).urgency() == needsSomebody
	return tile{s.Name, s.State, act, at}, true
}

// Name is that of the picture's file, without folder and ending.
func (e Elevation) Name() string {
	return strings.TrimSuffix(strings.TrimPrefix(e.of.path, pictureFolder), ".svg")
}

// Title says what it is of.
func (e Elevation) Title() string { return e.of.title() }

// Summary says in words what it shows.
func (e Elevation) Summary() string { return e.of.summary() }

// Servers is how many servers it shows.
func (e Elevation) Servers() (n int) {
	for _, r := range e.of.racks {
		n += len(r.tiles)
	}
	return n
}

// Racks draws its racks, each as an SVG, in which each server is a link.
func (e Elevation) Racks(link func(model.ServerName) string) []string {
	units := unitsOf(e.of.racks)
	var drawn []string
	for _, r := range e.of.racks {
		drawn = append(drawn, r.svg(units, link))
	}
	return drawn
}

// svg draws a rack by itself.
func (r rack) svg(units int, link func(model.ServerName) string) string {
	const width = numbersWidth + rackWidth + 1
	body := pen{link: link}
	height := r.draw(&body, numbersWidth, 0, units) + 1
	says := picture{racks: []rack{r}}.summary()
	return fmt.Sprintf(`<svg class="rack" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="group" aria-label="%[3]s">`+"\n%[4]s</svg>",
		width, height, escaped("rack "+r.name+": "+strings.TrimPrefix(says, "1 rack, ")), body.String())
}

// RackStyle is the stylesheet of what Racks draws.
func RackStyle() string { return ".rack{" + stylesheet() + "}" }

// Look is how a state is shown: by a letter, and by a colour that white letters are
// readable on.
type Look struct {
	State          model.ServerState
	Letter, Colour string
}

// Looks are those of all states, in the order of a server's life.
func Looks() []Look {
	var all []Look
	for _, st := range model.ServerStates {
		all = append(all, Look{st, looks[st].letter, looks[st].colour})
	}
	return all
}

// Actor returns what a condition says and who has to act, "" if nobody has to.
func Actor(c metav1.Condition) (says, actor string) { return splitActor(saying(c)) }

// Placed is a server's place as its labels say it: its location, its rack and, if it is
// known, the lowest unit that it takes.
func (d *Document) Placed() []Fact {
	var facts []Fact
	at := d.place()
	for _, f := range []Fact{{"location", at.location}, {"rack", at.rack}, {"shelf", unitText(at)}} {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	return facts
}

// place is where a server is. A document that was read back has only labels to tell it.
func (d *Document) place() place {
	if d.at.rack == "" {
		return placeOf(d.Metadata.Labels, nil)
	}
	return d.at
}

func unitText(p place) string {
	switch {
	case p.unit == 0:
		return ""
	case p.height == 1:
		return fmt.Sprintf("U%d", p.unit)
	}
	return fmt.Sprintf("U%d to U%d", p.unit, p.unit+p.height-1)
}
