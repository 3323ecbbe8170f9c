package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
)

// Limits of the pictures. One of 500 servers has about 110 KiB, and is written again when
// one of these changes; 5,000 servers are ten pictures.
const (
	maxTiles      = 500 // servers of one picture, by whole racks
	maxRackTiles  = 100 // servers of one rack
	maxPictures   = 100
	maxEmbedded   = 8 // pictures that the page shows; to the others it links
	pictureFolder = model.ReportRacks
)

// tile is a server in the picture of its rack.
type tile struct {
	name  model.ServerName
	state model.ServerState
	act   bool // a person has to act
	at    place
}

func tilesOf(servers []*Document) (tiles []tile) {
	for _, d := range servers {
		if at := d.place(); at.rack != "" {
			o := d.Overview()
			tiles = append(tiles, tile{model.ServerName(d.Metadata.Name), model.ServerState(o.Summary.State), o.NeedsAction(), at})
		}
	}
	return tiles
}

// place is where a server is. The place of a document that was read back comes from its labels.
func (d *Document) place() place {
	if d.at.rack == "" {
		return placeOf(d.Metadata.Labels, nil)
	}
	return d.at
}

// picture is the elevations of racks of one location.
type picture struct {
	path     string
	location string
	part     int // from 1, where a location has several
	racks    []rack
}

type rack struct {
	name  string
	tiles []tile
	more  int // servers that are not shown
}

func (p picture) title() string {
	title := "Racks"
	if p.location != "" {
		title += " of " + p.location
	}
	if p.part > 1 {
		title += fmt.Sprintf(", part %d", p.part)
	}
	return title
}

// picturesOf puts servers, which are in the order of names, into the pictures of their
// racks. It returns how many racks there are no pictures of, too.
func picturesOf(tiles []tile) (all []picture, leftOut int) {
	byRack := make(map[[2]string]*rack)
	for _, t := range tiles {
		key := [2]string{t.at.location, t.at.rack}
		r := byRack[key]
		if r == nil {
			r = &rack{name: t.at.rack}
			byRack[key] = r
		}
		if len(r.tiles) == maxRackTiles {
			r.more++
			continue
		}
		r.tiles = append(r.tiles, t)
	}
	taken := make(map[string]bool)
	size := 0
	for _, key := range slices.SortedFunc(maps.Keys(byRack), byPlace) {
		r := byRack[key]
		n := len(all)
		another := n == 0 || all[n-1].location != key[0]
		if another || size+len(r.tiles) > maxTiles {
			if n == maxPictures {
				leftOut++
				continue
			}
			part := 1
			if !another {
				part = all[n-1].part + 1
			}
			all, size = append(all, picture{path: picturePath(key[0], taken), location: key[0], part: part}), 0
		}
		last := &all[len(all)-1]
		last.racks = append(last.racks, *r)
		size += len(r.tiles)
	}
	return all, leftOut
}

// byPlace orders racks by location and name, in which numbers count as such.
func byPlace(a, b [2]string) int {
	for i := range a {
		if c := text.CompareNatural(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// picturePath is a file for the picture of a location. Those that differ in case alone have
// different files, for some people's disks would mix them up.
func picturePath(location string, taken map[string]bool) string {
	slug := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(location))
	slug = cmp.Or(strings.Trim(slug, "-"), "racks")
	name := slug
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", slug, n)
	}
	taken[name] = true
	return pictureFolder + name + ".svg"
}

func (p picture) summary() string {
	counts, act, all := make(map[model.ServerState]int), 0, 0
	for _, r := range p.racks {
		for _, t := range r.tiles {
			counts[t.state]++
			all++
			if t.act {
				act++
			}
		}
	}
	parts := []string{text.Plural(len(p.racks), "rack"), text.Plural(all, "server")}
	for _, st := range model.ServerStates {
		if counts[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[st], st))
		}
	}
	if act > 0 {
		parts = append(parts, fmt.Sprintf("action needed on %d", act))
	}
	return strings.Join(parts, ", ")
}
