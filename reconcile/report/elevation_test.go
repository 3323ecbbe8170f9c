package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
)

func TestAnElevationShowsWhatThePictureShows(t *testing.T) {
	in := shownFleet()
	p := NewProjector()
	r := p.Report(in, plan.Plan(in), 1, model.Holder{})
	all, leftOut := ElevationsOf(r)
	if leftOut != 0 {
		t.Errorf("%d racks are left out", leftOut)
	}
	var pictures []picture
	for _, e := range all {
		pictures = append(pictures, e.of)
	}
	if diff := cmp.Diff(p.page.pictures, pictures, cmp.AllowUnexported(picture{}, rack{}, tile{}, place{})); diff != "" {
		t.Errorf("-pictures of the status branch +elevations:\n%s", diff)
	}
	if e := all[0]; e.Name() != "berlin" || e.Title() != "Racks of berlin" || e.Servers() != 6 || e.Summary() != e.of.summary() {
		t.Errorf("%s: %s, %d servers, %s", e.Name(), e.Title(), e.Servers(), e.Summary())
	}
}

func TestEachServerOfAnElevationIsALink(t *testing.T) {
	in := shownFleet()
	all, _ := ElevationsOf(reportOf(in))
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
	all, _ := ElevationsOf(reportOf(in))
	if first := all[0].of.racks[0]; first.name != "r99" || len(first.tiles) != 1 || first.tiles[0].name != name {
		t.Errorf("the first rack is %+v", first)
	}
}

func TestThePlaceOfAServerInWords(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   []Fact
	}{
		"no rack":   {map[string]string{"location": "berlin"}, nil},
		"one unit":  {map[string]string{"location": "berlin", "rack": "r1", "shelf": "7"}, []Fact{{"location", "berlin"}, {"rack", "r1"}, {"shelf", "U7"}}},
		"two units": {map[string]string{"rack": "r1", "shelf": "7", "height": "2"}, []Fact{{"rack", "r1"}, {"shelf", "U7 to U8"}}},
		"no shelf":  {map[string]string{"rack": "r1"}, []Fact{{"rack", "r1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Document{Metadata: Metadata{Labels: tc.labels}}
			if diff := cmp.Diff(tc.want, d.Placed()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
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

func TestWhatAReportHoldsIsWhatIsReadOfItsFiles(t *testing.T) {
	r := reportOf(shownFleet())
	want, _, err := ReadHeld(fleettest.Rendered(t, r))
	if err != nil || len(want) == 0 {
		t.Fatal(want, err)
	}
	if diff := cmp.Diff(want, HeldOf(r)); diff != "" {
		t.Errorf("-read +of the report:\n%s", diff)
	}
}
