package disks

import (
	"fmt"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
)

// Limits on the disks that are missing from the report of a wipe.
const (
	// MaxMissing is how many of a server are remembered: as many as a report may have.
	MaxMissing = 1024
	// MaxText is how much of its serial number identifies a disk, in bytes, and how much of
	// its name and model is shown.
	MaxText = 128
	// MaxNamed is how many disks a message names.
	MaxNamed = 8
)

// SameMissing reports whether two entries are of one disk.
func SameMissing(a, b model.MissingDisk) bool {
	if a.Serial == "" || b.Serial == "" {
		return a.Serial == b.Serial && a.Name == b.Name
	}
	return model.Disk{Serial: a.Serial, Model: a.Model}.Same(model.Disk{Serial: b.Serial, Model: b.Model})
}

// Remembered are the accepted disks that the next release does not list again: those that are
// gone. A disk that a BMC still shows, or a system sees, may hold data of the next tenant.
// Replaced ones are listed, and checked again each time.
func Remembered(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool {
		return m.ReplacedBy == "" && (m.FromBMC || m.NotWiped || m.Serial == "")
	})
}

// NotAccepted are the missing disks that were not accepted.
func NotAccepted(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool { return m.Gone })
}

// serialKey is a serial number as it is compared: probes and disks differ in blanks
// and in case.
func serialKey(serial string) string { return strings.ToLower(Clip(serial)) }

// Clip bounds what a probe calls a disk.
func Clip(s string) string { return text.Clip(s, MaxText) }

// MissingDisksText says which disks are missing; "" = none.
func MissingDisksText(missing []model.MissingDisk) string {
	var texts []string
	for _, of := range []struct {
		is  func(model.MissingDisk) bool
		one string
		all string
	}{
		{func(m model.MissingDisk) bool { return m.NotWiped }, "was seen by the wipe and not wiped, or not wholly",
			"were seen by the wipe and not wiped, or not wholly"},
		{
			func(m model.MissingDisk) bool { return m.FromBMC && !m.NotWiped },
			"is shown by the BMC and is not in the wipe's report, nor are all volumes that it is part of",
			"are shown by the BMC and are not in the wipe's report, nor are all volumes that they are part of",
		},
		{
			func(m model.MissingDisk) bool { return !m.FromBMC && !m.NotWiped },
			"was there before and is not in the wipe's report",
			"were there before and are not in the wipe's report",
		},
	} {
		disks := slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool { return !of.is(m) })
		switch len(disks) {
		case 0:
		case 1:
			texts = append(texts, "disk "+Text(disks)+" "+of.one)
		default:
			texts = append(texts, "disks "+Text(disks)+" "+of.all)
		}
	}
	return strings.Join(texts, "; ")
}

// Text names disks, the first of them.
func Text(disks []model.MissingDisk) string {
	var names []string
	for _, d := range disks[:min(len(disks), MaxNamed)] {
		name := d.Name
		switch {
		case d.Serial != "" && d.Model != "":
			name += fmt.Sprintf(" (serial %s, model %s)", d.Serial, d.Model)
		case d.Serial != "":
			name += fmt.Sprintf(" (serial %s)", d.Serial)
		case d.Model != "":
			name += fmt.Sprintf(" (no serial number, model %s)", d.Model)
		default:
			name += " (no serial number)"
		}
		names = append(names, name)
	}
	if more := len(disks) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
