package report

import (
	"cmp"
	"strconv"
	"strings"

	"ingot/model"
)

// The labels that say where a server is. They are read as they are, or with the prefix of
// those that the metadata service serves.
const (
	labelLocation = "location"
	labelRack     = "rack"
	labelShelf    = "shelf"  // the lowest unit of the rack that it takes, from 1 at the bottom
	labelHeight   = "height" // how many units it takes, 1 if it is not said

	placePrefix = "metadata.metal.ironcore.dev/"
)

// Limits of a place. Racks of 60 units are about the highest there are.
const (
	maxUnit   = 60
	maxHeight = 20
)

// place is where a server is mounted. Without a rack it is not known.
type place struct {
	location, rack string
	unit           int // the lowest that it takes; 0 = not known
	height         int // in units
}

// placeOf reads the place of a server from its labels and annotations. Labels win, and of
// two labels the one with the prefix.
func placeOf(labels map[string]string, s *model.Server) place {
	if len(labels) == 0 && (s == nil || len(s.Annotations) == 0) {
		return place{}
	}
	said := func(key string) string {
		value := cmp.Or(labels[placePrefix+key], labels[key])
		if value == "" && s != nil {
			value = s.Annotations[placePrefix+key]
		}
		return strings.TrimSpace(value)
	}
	p := place{location: placeText(said(labelLocation)), rack: placeText(said(labelRack)), height: 1}
	if p.rack == "" {
		return place{}
	}
	p.unit = number(said(labelShelf), maxUnit)
	if h := number(said(labelHeight), maxHeight); h > 0 {
		p.height = min(h, maxUnit+1-max(p.unit, 1))
	}
	return p
}

// maxPlaceText is how many letters of a location's or rack's name count: as many as a label
// may have.
const maxPlaceText = 63

// placeText bounds the name of a location or rack: an annotation may be anything.
func placeText(s string) string {
	return cut(strings.ReplaceAll(shownText(s), "\n", " "), maxPlaceText)
}

// number reads a number of units, "7", "07" or "U07"; 0 for what is none, or too many.
func number(s string, most int) int {
	n, err := strconv.Atoi(strings.TrimLeft(s, "uU"))
	if err != nil || n < 1 || n > most {
		return 0
	}
	return n
}
