package report

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

var update = flag.Bool("update", false, "write the golden files of the page anew")

// shownFleet is a fleet with something of everything, in racks of two locations.
func shownFleet() *world.Input {
	in := plantest.BigFleet(9, 3)
	in.Desired.Revision, in.Observed.Fleet.Applied.Commit = "main@sha1:8c1f0a2b3c4d5e6f", "8c1f0a2b3c4d5e6f"
	for i := range 9 {
		labels := map[string]string{"location": "berlin", "rack": "r1", "shelf": fmt.Sprint(2*i + 1), "height": "2"}
		switch i {
		case 5: // two behind one BMC are beside one another
			labels["shelf"] = "9"
		case 6:
			labels = map[string]string{"metadata.metal.ironcore.dev/location": "potsdam", "metadata.metal.ironcore.dev/rack": "r10", "rack": "other"}
		case 7:
			labels = map[string]string{"location": "potsdam", "rack": "r2", "shelf": "U04"}
		case 8:
			labels = nil
		}
		in.Desired.BMCs[model.BMCName(fleettest.BMCName(i))].Labels = labels
	}
	fleettest.ChangeRecord(in.Observed, 4, func(r *model.ServerRecord) { r.Life.State, r.Life.Reason = model.StateError, model.ReasonCleanupFailed })
	fleettest.ChangeRecord(in.Observed, 7, func(r *model.ServerRecord) { r.Life.State = model.StateReleased })
	plantest.Waiting(in, 1, func(_ int, c *model.ServerClaim) {
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r77"}}
	})
	in.Desired.Problems = []model.Problem{
		{Severity: model.SeverityWarning, File: "bmcs/a.yaml", Line: 3, Message: "spec.power has no effect"},
		{Severity: model.SeverityError, File: "claims/web.yaml", Line: 7, Column: 3, Object: "ServerClaim default/web", Field: "spec.imge", Message: `unknown field, did you mean "image"?`},
	}
	in.Observed.Fleet.Holds = []model.GuardHold{{
		Token: "X4YRGUC5KSZPNQ2M", Revision: "main@sha1:8c1f0a2b3c4d5e6f", Since: fleettest.Now.Add(-time.Minute), Limit: 1,
		Steps: []model.Disruption{{Action: "release", Server: fleettest.ServerName(0), Claim: "default/c00000"}, {Action: "release", Server: fleettest.ServerName(1), Claim: "default/c00001"}},
	}}
	return in
}

func TestThePageOfAFleet(t *testing.T) {
	docs := reportOf(shownFleet()).Documents
	var drawn []string
	for path, d := range docs {
		if d.Object == nil {
			drawn = append(drawn, path)
		}
	}
	slices.Sort(drawn)
	want := []string{"README.md", "racks/berlin.svg", "racks/potsdam.svg"}
	if diff := cmp.Diff(want, drawn); diff != "" {
		t.Errorf("files of the page (-want +got):\n%s", diff)
	}
	for _, path := range drawn {
		golden := filepath.Join("testdata", "page", filepath.FromSlash(path))
		if *update {
			if err := errors.Join(os.MkdirAll(filepath.Dir(golden), 0o755), os.WriteFile(golden, []byte(docs[path].Text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), docs[path].Text); diff != "" {
			t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
		}
	}
}

// S12: what was read and what is acted upon may differ, and both are shown.
func TestS12BothRevisionsAreShown(t *testing.T) {
	in := plantest.BigFleet(1, 0)
	in.Desired.Revision, in.Desired.Source.Observed = "main@sha1:bbbb", "main@sha1:bbbb"
	in.Observed.Fleet.Applied = model.Applied{Branch: "main", Commit: "aaaa"}
	docs := reportOf(in).Documents
	r := docs[model.ReportFleet].Object.(*Fleet)
	if r.Observed != "main@sha1:bbbb" || r.Applied != "main@sha1:aaaa" {
		t.Errorf("observed %s, applied %s", r.Observed, r.Applied)
	}
	if want := "Revision in force: `main@sha1:aaaa`, next: `main@sha1:bbbb`."; !strings.Contains(docs[model.ReportReadme].Text, want) {
		t.Errorf("the page does not say %q:\n%.500s", want, docs[model.ReportReadme].Text)
	}
}

// What is shown has no time that moves by itself, or each look would be a commit.
func TestThePageDoesNotAge(t *testing.T) {
	in := shownFleet()
	var p Projector
	first := reportBy(&p, in)
	later := *in
	later.Now = in.Now.Add(3 * time.Second)
	second := reportBy(&p, &later)
	for path, d := range second.Documents {
		if d != first.Documents[path] {
			t.Errorf("%s is made anew though nothing happened", path)
		}
	}
}

func TestAPictureIsDrawnAnewWhenAServerInItChanged(t *testing.T) {
	in := shownFleet()
	var p Projector
	first := reportBy(&p, in)
	fleettest.ChangeRecord(in.Observed, 3, func(r *model.ServerRecord) { r.Life.State, r.Life.Reason = model.StateError, model.ReasonCleanupFailed })
	second := reportBy(&p, in)
	if first.Documents["racks/berlin.svg"] == second.Documents["racks/berlin.svg"] {
		t.Error("the picture of its rack is the same")
	}
	if first.Documents["racks/potsdam.svg"] != second.Documents["racks/potsdam.svg"] {
		t.Error("the picture of another location is drawn anew")
	}
	for i := range 9 {
		in.Desired.BMCs[model.BMCName(fleettest.BMCName(i))] = &model.BMC{Meta: model.Meta{Name: fleettest.BMCName(i)}, Spec: in.Desired.BMCs[model.BMCName(fleettest.BMCName(i))].Spec}
	}
	third := reportBy(&p, in)
	if d := third.Documents["racks/berlin.svg"]; d != nil {
		t.Error("the picture stays though no server has a label any more")
	}
	if page := third.Documents[model.ReportReadme].Text; !strings.Contains(page, "no server has the label `rack`") {
		t.Errorf("the page does not say how to get a picture:\n%s", page)
	}
}

func TestUrgentRowsComeFirstAndOthersAreCounted(t *testing.T) {
	var all []*Document
	add := func(name string, waiting ...Waiting) {
		all = append(all, &Document{Kind: "Server", Metadata: Metadata{Name: name}, Status: ServerStatus{Overview: Overview{Waiting: waiting}}})
	}
	for i := range maxRows {
		add(fmt.Sprint("fine", i))
	}
	add("slow", Waiting{Reason: model.ReasonWaitingForPower})
	add("broken", Waiting{Reason: model.ReasonCleanupFailed, Actor: proposal.RackOperator})
	none := func(Summary) []string { return nil }
	shown := func(room int) string {
		var b strings.Builder
		table{"Servers", "server", nil, none, room}.write(&b, all)
		return b.String()
	}
	got := shown(maxShownTable)
	if !regexp.MustCompile(`(?m)^\| \[broken\].* rack operator \|\n\| \[slow\].*\n\| \[fine0\]`).MatchString(got) {
		t.Errorf("wrong order: %.300s", got)
	}
	if want := "Left out are 2 that wait for nothing: see [servers/](servers/).\n\n"; !strings.HasSuffix(got, want) {
		t.Errorf("it ends %q, want %q", got[len(got)-100:], want)
	}
	if got = shown(90); !strings.Contains(got, "[broken]") || !strings.HasSuffix(got, "Left out are 1 that wait, 300 that wait for nothing: see [servers/](servers/).\n\n") {
		t.Errorf("with room for one row:\n%s", got)
	}
}

// A forge renders the page: whatever people, BMCs and servers write must stay text.
func TestWhatOthersWroteIsMereTextOnThePage(t *testing.T) {
	for in, want := range map[string]string{
		"rack=b, 2 cordoned":                             "rack=b, 2 cordoned",
		"<script>alert(1)</script><img src=x onerror=y>": "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=y&gt;",
		"a | b":                                "a &#124; b",
		"| x |\n|---|\n# heading":              "&#124; x &#124; &#124;---&#124; #&#8288; heading",
		"@admins fixes #12, see !7 and ~bug":   "@&#8288;admins fixes #&#8288;12, see !&#8288;7 and \\~&#8288;bug",
		"[here](javascript:x) ![](x)":          "\\[here\\](javascript:x) !&#8288;\\[\\](x)",
		"https://evil.example and WWW.evil.io": "https:&#8288;//evil.example and WWW&#8288;.evil.io",
		"`code` *bold* _it_ \\|":               "&#96;code&#96; \\*bold\\* \\_it\\_ \\\\&#124;",
		"&lt;b&gt; $x^2$":                      "&amp;lt;b&amp;gt; $&#8288;x^&#8288;2$&#8288;",
		"bell\x07 right-to-left\u202e end":     "bell right-to-left end",
		strings.Repeat("ä", maxCell+1):         strings.Repeat("ä", maxCell-1) + "…",
	} {
		if got := cell(in); got != want {
			t.Errorf("%q is written\n%q, want\n%q", in, got, want)
		}
	}
	if got, want := link("a|b", "servers/a b.yaml"), "a&#124;b"; got != want {
		t.Errorf("a path that is none is written %q, want %q", got, want)
	}
}

// hostile is a name that breaks out of whatever does not escape it.
const hostile = "</text><script>alert(1)</script>\"'&|@admins \x00\x1b\ufffe"

func TestNothingFromOutsideBreaksOutOfAPicture(t *testing.T) {
	var tiles []tile
	for i, st := range model.ServerStates {
		at := place{location: hostile, rack: hostile, unit: i % 3 * 2, height: 2}
		tiles = append(tiles, tile{model.ServerName(hostile), st, i%2 == 0, at})
	}
	pictures, _ := picturesOf(tiles)
	if pictures[0].path != "racks/text--script-alert-1---script------admins.svg" {
		t.Errorf("the picture is at %q", pictures[0].path)
	}
	svg := pictures[0].svg()
	if elements := elementsOf(t, svg); elements["script"] > 0 || elements["title"] == 0 || elements["desc"] != 1 {
		t.Errorf("it has elements %v:\n%s", elements, svg)
	}
	for _, outside := range []string{"href", "url(", "@import", "http://evil", "onload"} {
		if strings.Contains(svg, outside) {
			t.Errorf("it has %q:\n%s", outside, svg)
		}
	}
}

// elementsOf counts the elements of a document, which has to be well-formed.
func elementsOf(t *testing.T, doc string) map[string]int {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(doc))
	counts := make(map[string]int)
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return counts
		case err != nil:
			t.Fatalf("not well-formed: %v\n%s", err, doc)
		}
		if start, ok := token.(xml.StartElement); ok {
			counts[start.Name.Local]++
		}
	}
}

func TestEachStateHasItsLetterAndAColourThatWhiteIsReadableOn(t *testing.T) {
	seen := make(map[string]model.ServerState)
	for _, st := range model.ServerStates {
		l := looks[st]
		if other, taken := seen[l.letter]; taken || l.letter == "" {
			t.Errorf("%s has letter %q, as %s has", st, l.letter, other)
		}
		seen[l.letter] = st
	}
	for _, l := range looks {
		if got := contrast(l.colour, "#ffffff"); got < 4.5 { // WCAG 2.2 §1.4.3
			t.Errorf("white on %s has contrast %.2f", l.colour, got)
		}
	}
	for _, scheme := range [][2]string{{"#1f2328", "#ffffff"}, {"#e6edf3", "#0d1117"}} {
		if got := contrast(scheme[0], scheme[1]); got < 7 || !strings.Contains(paper, scheme[0]) {
			t.Errorf("text %s has contrast %.2f on %s", scheme[0], got, scheme[1])
		}
	}
}

// contrast is that of WCAG 2.2.
func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(colour string) (l float64) {
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			panic(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

func TestPlacesByLabels(t *testing.T) {
	const prefix = "metadata.metal.ironcore.dev/"
	for name, tt := range map[string]struct {
		labels, annotations map[string]string
		want                place
	}{
		"no label":                        {},
		"a location alone is no place":    {labels: map[string]string{"location": "a"}},
		"a rack alone":                    {labels: map[string]string{"rack": "7"}, want: place{rack: "7", height: 1}},
		"all four":                        {labels: map[string]string{"location": "a", "rack": "7", "shelf": "12", "height": "2"}, want: place{"a", "7", 12, 2}},
		"units as they are printed":       {labels: map[string]string{"rack": "7", "shelf": "U07"}, want: place{"", "7", 7, 1}},
		"the prefix of the metadata":      {labels: map[string]string{prefix + "rack": "7", "rack": "8"}, want: place{rack: "7", height: 1}},
		"annotations of the Server":       {annotations: map[string]string{prefix + "rack": "7", prefix + "shelf": "3"}, want: place{"", "7", 3, 1}},
		"labels before annotations":       {labels: map[string]string{"rack": "8"}, annotations: map[string]string{prefix + "rack": "7"}, want: place{rack: "8", height: 1}},
		"a unit that no rack has":         {labels: map[string]string{"rack": "7", "shelf": "61"}, want: place{rack: "7", height: 1}},
		"a height that is none":           {labels: map[string]string{"rack": "7", "shelf": "1", "height": "tall"}, want: place{"", "7", 1, 1}},
		"what would stand out at the top": {labels: map[string]string{"rack": "7", "shelf": "59", "height": "9"}, want: place{"", "7", 59, 2}},
		"an annotation of a megabyte":     {annotations: map[string]string{prefix + "rack": strings.Repeat("x", 1<<20)}, want: place{rack: strings.Repeat("x", 62) + "…", height: 1}},
	} {
		got := placeOf(tt.labels, &model.Server{Meta: model.Meta{Annotations: tt.annotations}})
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(place{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// rackTiles returns n servers in racks of 40.
func rackTiles(n int, location func(i int) string) []tile {
	var tiles []tile
	for i := range n {
		tiles = append(tiles, tile{fleettest.ServerName(i), model.StateReserved, i%50 == 0, place{location(i), fmt.Sprint("r", i/40), i%40 + 1, 1}})
	}
	return tiles
}

func TestPicturesAreBounded(t *testing.T) {
	for name, location := range map[string]func(i int) string{
		"one location":       func(int) string { return "berlin" },
		"many locations":     func(i int) string { return fmt.Sprint("l", i/400) },
		"a location of each": func(i int) string { return fmt.Sprint("l", i) },
	} {
		pictures, leftOut := picturesOf(rackTiles(5000, location))
		sum, most, seen := 0, 0, make(map[string]bool)
		for _, p := range pictures {
			n := len(p.svg())
			sum, most = sum+n, max(most, n)
			seen[p.path] = true
		}
		if most > 150<<10 || len(pictures) > maxPictures || len(seen) != len(pictures) || leftOut > 0 != (len(pictures) == maxPictures) {
			t.Errorf("%s: %d pictures at %d paths, the largest of %d bytes; %d racks left out", name, len(pictures), len(seen), most, leftOut)
		}
		t.Logf("%s: 5000 servers are %d pictures of %d KiB, the largest has %d KiB", name, len(pictures), sum>>10, most>>10)
	}
	crowd := rackTiles(300, func(int) string { return "" })
	for i := range crowd {
		crowd[i].at = place{rack: "r", unit: 1, height: 1}
	}
	pictures, _ := picturesOf(crowd)
	if svg := pictures[0].svg(); !strings.Contains(svg, "and 200 more") || strings.Count(svg, "<g ") != maxRackTiles+len(model.ServerStates) {
		t.Errorf("a rack of 300 servers at one height shows %d of them", strings.Count(svg, "<g "))
	}
}

func TestPicturesHaveFilesThatNoDiskMixesUp(t *testing.T) {
	tiles := []tile{{at: place{location: "B", rack: "1"}}, {at: place{location: "b", rack: "1"}}, {at: place{location: "..", rack: "1"}}, {at: place{rack: "1"}}, {at: place{location: "ä/b", rack: "1"}}}
	pictures, _ := picturesOf(tiles)
	var paths []string
	for _, p := range pictures {
		paths = append(paths, p.path)
	}
	want := []string{"racks/racks.svg", "racks/racks-2.svg", "racks/b.svg", "racks/b-2.svg", "racks/b-3.svg"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestServersAtOneHeightAreBesideOneAnother(t *testing.T) {
	mount := func(unit, height int) tile { return tile{at: place{rack: "r", unit: unit, height: height}} }
	r := rack{tiles: []tile{mount(1, 4), mount(1, 1), mount(2, 2), mount(5, 1), mount(0, 1)}}
	boxes, loose := r.arrange()
	var got [][3]int
	for _, b := range boxes {
		got = append(got, [3]int{b.tile.at.unit, b.column, b.columns})
	}
	if diff := cmp.Diff([][3]int{{1, 0, 2}, {1, 1, 2}, {2, 1, 2}, {5, 0, 1}}, got); diff != "" || len(loose) != 1 {
		t.Errorf("unit, column and columns (-want +got):\n%s%d are loose", diff, len(loose))
	}
}

func TestServersWithoutAShelfHaveTheirNamesWhereThereIsRoom(t *testing.T) {
	named := func(tiles ...tile) bool {
		pictures, _ := picturesOf(tiles)
		return strings.Contains(pictures[0].svg(), ">A a</text>")
	}
	a := tile{"a", model.StateAvailable, false, place{rack: "r", height: 1}}
	mounted := tile{"b", model.StateAvailable, false, place{rack: "r", unit: 3, height: 1}}
	many := slices.Repeat([]tile{a}, maxUnit+1)
	if !named(a) || named(a, mounted) || !named(many[1:]...) || named(many...) {
		t.Error("a server has its name in a rack without shelves alone, with no more servers than a rack has units")
	}
}

// The page of a fleet where everything is as bad as can be stays within what a forge shows.
func TestTheLargestPageIsShownByForges(t *testing.T) {
	in := plantest.BigFleet(2000, 1000)
	plantest.Waiting(in, 2000, func(int, *model.ServerClaim) {})
	in.Desired.Source = model.SourceState{Reason: "FetchFailed", Message: strings.Repeat("<|@", 1000)}
	for i := range 2000 {
		fleettest.ChangeRecord(in.Observed, i, func(r *model.ServerRecord) {
			r.Life.State, r.Life.Reason, r.Life.Message = model.StateError, model.ReasonCleanupFailed, strings.Repeat("<|@", 1000)
		})
		in.Desired.Problems = append(in.Desired.Problems, model.Problem{File: strings.Repeat("<|@", 90), Message: strings.Repeat("<|@", 1000)})
		in.Observed.Fleet.Absent = append(in.Observed.Fleet.Absent, model.Absence{Identity: model.ClaimName("default/x").Identity(), Token: "T"})
		in.Observed.Fleet.Holds = append(in.Observed.Fleet.Holds, model.GuardHold{Token: "T", Steps: make([]model.Disruption, 3)})
	}
	in.Observed.Fleet.Holds = in.Observed.Fleet.Holds[:20]
	page := reportOf(in).Documents[model.ReportReadme].Text
	if len(page) > maxReadme || strings.Contains(page, "is cut here") {
		t.Errorf("it has %d bytes, or is cut", len(page))
	}
	if lines := regexp.MustCompile(`(?m)^Left out are .*$`).FindAllString(page, -1); len(lines) != 4 {
		t.Errorf("it says in %d lines what is left out: %q", len(lines), lines)
	}
}
