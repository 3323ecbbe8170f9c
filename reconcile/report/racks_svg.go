package report

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"ingot/model"
)

// Sizes of a picture, in pixels.
const (
	rackWidth    = 150
	unitHeight   = 18
	numbersWidth = 20 // left of a rack, for the numbers of its units
	rackGap      = 14
	pictureEdge  = 16
	headHeight   = 52 // title and legend
	racksPerRow  = 5
	loosePerRow  = 5 // servers without a known height
	maxColumns   = 6 // servers beside one another at one height
)

// look is how a state is shown: by a letter, and by a colour that white letters are
// readable on.
type look struct{ letter, colour string }

var looks = map[model.ServerState]look{
	model.StateInitial:     {"I", "#57606a"},
	model.StateDiscovery:   {"D", "#7c3aed"},
	model.StateAvailable:   {"A", "#15803d"},
	model.StateReserved:    {"R", "#1d4ed8"},
	model.StateCleanup:     {"C", "#b45309"},
	model.StateReleased:    {"L", "#0e7490"},
	model.StateMaintenance: {"M", "#a21caf"},
	model.StateError:       {"E", "#b91c1c"},
}

// The colours of what is around the servers, on light and on dark screens.
const paper = `.p{fill:#fff}.f{fill:#f6f8fa;stroke:#6e7781}.n{fill:#1f2328}` +
	`@media(prefers-color-scheme:dark){.p{fill:#0d1117}.f{fill:#161b22;stroke:#8b949e}.n{fill:#e6edf3}}`

func stylesheet() string {
	var b strings.Builder
	b.WriteString("text{font:11px sans-serif}" + paper + ".w{fill:#fff}.a rect{stroke:#f59e0b;stroke-width:2}")
	for _, st := range model.ServerStates {
		fmt.Fprintf(&b, ".%s rect{fill:%s}", looks[st].letter, looks[st].colour)
	}
	return b.String()
}

// pen draws racks. With a link each server leads to where more is said of it.
type pen struct {
	strings.Builder
	link func(model.ServerName) string
}

// svg draws the racks of a picture, side by side and in rows.
func (p picture) svg() string {
	var body pen
	y := headHeight
	for row := range slices.Chunk(p.racks, racksPerRow) {
		bottom := y
		units := unitsOf(row)
		for i, r := range row {
			x := pictureEdge + i*(numbersWidth+rackWidth+rackGap) + numbersWidth
			bottom = max(bottom, r.draw(&body, x, y, units))
		}
		y = bottom + rackGap
	}
	columns := min(len(p.racks), racksPerRow)
	width := max(2*pictureEdge+columns*(numbersWidth+rackWidth+rackGap)-rackGap, minPictureWidth)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="t d">
<title id="t">%[3]s</title>
<desc id="d">%[4]s</desc>
<style>%[5]s</style>
<rect class="p" width="%[1]d" height="%[2]d"/>
`, width, y, escaped(p.title()), escaped(p.summary()), stylesheet())
	fmt.Fprintf(&b, `<text class="n" x="%d" y="20">%s</text>`+"\n", pictureEdge, escaped(p.title()+": "+p.summary()))
	p.legend(&b)
	b.WriteString(body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

// minPictureWidth has room for the legend.
const minPictureWidth = 800

func (p picture) legend(b *strings.Builder) {
	x := pictureEdge
	for _, st := range model.ServerStates {
		fmt.Fprintf(b, `<g class="%[1]s"><rect x="%[2]d" y="28" width="14" height="14"/><text class="w" x="%[3]d" y="39">%[1]s</text></g>`,
			looks[st].letter, x, x+3)
		fmt.Fprintf(b, `<text class="n" x="%d" y="39">%s</text>`+"\n", x+18, st)
		x += 32 + 6*len(st)
	}
	fmt.Fprintf(b, `<text class="n" x="%d" y="39">! action needed</text>`+"\n", x)
}

// unitsOf is how many units the racks of a row are drawn with.
func unitsOf(racks []rack) int {
	units := 0
	for _, r := range racks {
		for _, t := range r.tiles {
			if t.at.unit > 0 {
				units = max(units, t.at.unit+t.at.height-1)
			}
		}
	}
	return units
}

// draw draws a rack with its upper left corner at x and y, and returns where it ends.
func (r rack) draw(b *pen, x, y, units int) int {
	name := "rack " + r.name
	fmt.Fprintf(b, `<text class="n" x="%d" y="%d">%s</text>`+"\n", x, y+12, escaped(cut(name, rackWidth/7)))
	y += unitHeight
	boxes, loose := r.arrange()
	if units > 0 {
		fmt.Fprintf(b, `<rect class="f" x="%d" y="%d" width="%d" height="%d"/>`+"\n", x, y, rackWidth, units*unitHeight)
		for u := 1; u <= units; u++ {
			if u == 1 || u%5 == 0 {
				fmt.Fprintf(b, `<text class="n" x="%d" y="%d" text-anchor="end">%d</text>`+"\n", x-4, y+(units-u)*unitHeight+13, u)
			}
		}
		for _, o := range boxes {
			width := rackWidth / o.columns
			o.tile.draw(b, x+o.column*width, y+(units-o.tile.at.unit-o.tile.at.height+1)*unitHeight, width, o.tile.at.height*unitHeight)
		}
		y += units * unitHeight
	}
	if len(loose) > 0 && units > 0 {
		y += 4
	}
	perRow := loosePerRow
	if units == 0 && len(loose) <= maxUnit {
		perRow = 1 // there is room for their names
	}
	for i, t := range loose {
		width := rackWidth / perRow
		t.draw(b, x+i%perRow*width, y+i/perRow*unitHeight, width, unitHeight)
	}
	y += (len(loose) + perRow - 1) / perRow * unitHeight
	if r.more > 0 {
		fmt.Fprintf(b, `<text class="n" x="%d" y="%d">and %d more</text>`+"\n", x, y+13, r.more)
		y += unitHeight
	}
	return y
}

// box is a server at its height, in one of the columns that those at this height share.
type box struct {
	tile            tile
	column, columns int
}

// arrange puts those servers side by side that take the same units. Loose are those of which
// nobody said which they take, and those that there is no room for.
func (r rack) arrange() (boxes []box, loose []tile) {
	var mounted []tile
	for _, t := range r.tiles {
		if t.at.unit == 0 {
			loose = append(loose, t)
			continue
		}
		mounted = append(mounted, t)
	}
	slices.SortStableFunc(mounted, func(a, b tile) int { return cmp.Compare(a.at.unit, b.at.unit) })
	for len(mounted) > 0 {
		n, top := 0, mounted[0].at.unit
		for n < len(mounted) && (n == 0 || mounted[n].at.unit < top) {
			top = max(top, mounted[n].at.unit+mounted[n].at.height)
			n++
		}
		group, without := columned(mounted[:n])
		boxes, loose = append(boxes, group...), append(loose, without...)
		mounted = mounted[n:]
	}
	return boxes, loose
}

// columned gives each of the servers, which are in the order of units, the first column
// that is free at its units.
func columned(group []tile) (boxes []box, without []tile) {
	var free []int // of each column, the lowest unit that nobody takes
	for _, t := range group {
		at := slices.IndexFunc(free, func(unit int) bool { return unit <= t.at.unit })
		switch {
		case at >= 0:
		case len(free) == maxColumns:
			without = append(without, t)
			continue
		default:
			at = len(free)
			free = append(free, 0)
		}
		free[at] = t.at.unit + t.at.height
		boxes = append(boxes, box{tile: t, column: at})
	}
	for i := range boxes {
		boxes[i].columns = len(free)
	}
	return boxes, without
}

// draw draws a server, with its name where there is room for it.
func (t tile) draw(b *pen, x, y, width, height int) {
	says, class := looks[t.state].letter, looks[t.state].letter
	title := fmt.Sprintf("%s: %s", t.name, t.state)
	if t.act {
		says, class, title = says+"!", class+" a", title+", action needed"
	}
	if room := (width - 8) / 7; room > 8 {
		says += " " + tail(string(t.name), room-len(says)-1)
	}
	open, end := "", "\n"
	if b.link != nil {
		open, end = `<a href="`+escaped(b.link(t.name))+`">`, "</a>\n"
	}
	fmt.Fprintf(b, `%s<g class="%s"><title>%s</title><rect x="%d" y="%d" width="%d" height="%d"/>`, open, class, escaped(title), x+1, y+1, width-2, height-2)
	fmt.Fprintf(b, `<text class="w" x="%d" y="%d">%s</text></g>%s`, x+4, y+13, escaped(says), end)
}

// tail is the end of a name, which tells servers of one rack apart.
func tail(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	return "…" + string(r[len(r)-most+1:])
}

// escaped is a text from outside as a text of XML.
func escaped(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff {
			return -1 // XML 1.0 §2.2 has no such letters, or discourages them
		}
		return r
	}, s))
}
