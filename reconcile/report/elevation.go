package report

import (
	"fmt"
	"strings"

	"ingot/model"
)

// Elevation is what one picture of the status branch shows, for a page that draws each
// rack by itself and has RackStyle in its stylesheet.
type Elevation struct{ of picture }

// Elevations are those of the fleet, and how many racks are left out.
func (d *Documents) Elevations() (all []Elevation, leftOut int) {
	pictures, leftOut := picturesOf(tilesOf(d.List(Servers)))
	for _, p := range pictures {
		all = append(all, Elevation{p})
	}
	return all, leftOut
}

// Name is that of the picture's file, without folder and ending.
func (e Elevation) Name() string {
	return strings.TrimSuffix(strings.TrimPrefix(e.of.path, pictureFolder), ".svg")
}

// Title names the location.
func (e Elevation) Title() string { return e.of.title() }

// Summary counts the servers by state.
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
