package report

import (
	"fmt"
	"strings"
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

func TestElevationsAreThoseOfThePictures(t *testing.T) {
	all, leftOut := documentsOf(shownFleet()).Elevations()
	if len(all) != 2 || leftOut != 0 {
		t.Fatalf("%d elevations, %d racks are left out", len(all), leftOut)
	}
	if e := all[0]; e.Name() != "berlin" || e.Title() != "Racks of berlin" || e.Servers() != 6 || e.Summary() != e.of.summary() {
		t.Errorf("%s: %s, %d servers, %s", e.Name(), e.Title(), e.Servers(), e.Summary())
	}
}

func TestEachServerOfAnElevationIsALink(t *testing.T) {
	all, _ := documentsOf(shownFleet()).Elevations()
	link := func(name model.ServerName) string { return "/servers/" + string(name) + `?"<` }
	links := 0
	for _, e := range all {
		for _, svg := range e.Racks(link) {
			elements := elementsOf(t, svg)
			if links += elements["a"]; elements["a"] == 0 || elements["a"] != elements["g"] || elements["style"] > 0 {
				t.Errorf("it has elements %v:\n%s", elements, svg)
			}
			if strings.Contains(svg, link("")) || strings.Contains(svg, " style=") {
				t.Errorf("a link is not escaped, or a style is within:\n%s", svg)
			}
		}
	}
	if links != 8 { // of nine servers one has no rack
		t.Errorf("%d servers are links", links)
	}
}

func TestAServerIsPlacedByItsManifestToo(t *testing.T) {
	in := shownFleet()
	name := fleettest.ServerName(8) // which has no labels
	in.Desired.Servers[name] = &model.Server{Meta: model.Meta{
		Name: string(name), Annotations: map[string]string{"metadata.metal.ironcore.dev/rack": "r99"},
	}}
	all, _ := documentsOf(in).Elevations()
	if first := all[0].of.racks[0]; first.name != "r99" || len(first.tiles) != 1 || first.tiles[0].name != name {
		t.Errorf("the first rack is %+v", first)
	}
}

func TestTheStyleOfRacksHasAColourForEachState(t *testing.T) {
	style := RackStyle()
	for _, l := range Looks() {
		if !strings.Contains(style, fmt.Sprintf(".%s rect{fill:%s}", l.Letter, l.Colour)) {
			t.Errorf("%s has no colour in %s", l.State, style)
		}
	}
}
