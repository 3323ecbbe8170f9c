package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"ingot/model"
)

// Limits on the disks that are missing from the report of a wipe.
const (
	// maxMissing is how many of a server are remembered: as many as a report may have.
	maxMissing = 1024
	// maxText is how much of its serial number tells a disk from others, in bytes, and
	// how much of its name and model is told.
	maxText = 128
	// maxNamed is how many disks a message names.
	maxNamed = 8
)

// missing lists the disks that the server was discovered with and that are not among
// those that the probe reports of a wipe, whatever became of them there. What is not
// seen is not wiped, and the next tenant would find what is on it. A disk without a
// serial number can be told from no other: it is missing when no disk at all was seen.
func (s *server) missing(reported []model.DiskWipe) []model.MissingDisk {
	probe := s.fleet.in.Observed.Probes[s.name]
	if probe == nil {
		return nil
	}
	seen := make(map[string]bool, len(reported))
	for _, d := range reported {
		seen[serialKey(d.Serial)] = true
	}
	var list []model.MissingDisk
	for _, d := range probe.Data.Storage {
		serial := serialKey(d.Serial)
		there := seen[serial] || serial == "" && len(reported) > 0
		if there || d.Removable || d.SizeBytes == 0 || len(list) == maxMissing {
			continue
		}
		if serial != "" {
			seen[serial] = true // a disk with several paths is one
		}
		m := model.MissingDisk{Name: clip(d.Name), Serial: clip(d.Serial), Model: clip(d.Model)}
		m.Gone = s.gone(m)
		list = append(list, m)
	}
	return list
}

// gone reports whether a person has said of a missing disk that it is gone for good.
func (s *server) gone(m model.MissingDisk) bool {
	return slices.ContainsFunc(s.rec.Missing, func(known model.MissingDisk) bool {
		return known.Gone && serialKey(known.Serial) == serialKey(m.Serial) && (m.Serial != "" || known.Name == m.Name)
	})
}

// letGo takes missing disks to be gone for good: a person was told of them, and asks
// for the wipe all the same.
func letGo(missing []model.MissingDisk) []model.MissingDisk {
	list := slices.Clone(missing)
	for i := range list {
		list[i].Gone = true
	}
	return list
}

// missed are the missing disks of which nobody has said that they are gone for good.
func missed(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool { return m.Gone })
}

// serialKey is a serial number as it is compared: probes and disks differ in blanks
// and in case.
func serialKey(serial string) string { return strings.ToLower(clip(serial)) }

// clip bounds what a probe calls a disk.
func clip(text string) string {
	text = strings.TrimSpace(text)
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// missingText says which disks are missing; "" = none.
func missingText(missing []model.MissingDisk) string {
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return "disk " + disksText(missing) + " was there when the server was discovered and is not in the wipe's report"
	}
	return "disks " + disksText(missing) + " were there when the server was discovered and are not in the wipe's report"
}

// seatedText says what to look for.
func seatedText(missing []model.MissingDisk) string {
	if len(missing) == 1 {
		return "look whether it is seated and its controller works; once it is there again, or if it was taken out for good,"
	}
	return "look whether they are seated and their controller works; once they are there again, or if they were taken out for good,"
}

// disksText names disks, the first of them.
func disksText(disks []model.MissingDisk) string {
	var names []string
	for _, d := range disks[:min(len(disks), maxNamed)] {
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
