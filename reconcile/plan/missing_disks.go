package plan

import (
	"cmp"
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
	// maxText is how much of its serial number tells a disk from others, in bytes, and
	// how much of its name and model is shown.
	maxText = 128
	// maxNamed is how many disks a message names.
	maxNamed = 8
)

// missing lists the disks that the report of a wipe does not account for: those that the
// server is known to have had and that are not in it, or only in part, and those that
// the wipe left alone. What is not wiped, the next tenant would find.
func (s *server) missing(reported []model.DiskWipe) []model.MissingDisk {
	all, a := s.disks(), newAccount(reported)
	var list []model.MissingDisk
	add := func(d model.Disk, saw bool) {
		m := model.MissingDisk{Name: clip(d.Name), Serial: clip(d.Serial), Model: clip(d.Model), FromBMC: d.FromBMC, NotWiped: saw}
		if !saw {
			m.ReplacedBy = d.ReplacedBy
		}
		same := func(k model.MissingDisk) bool { return SameMissing(k, m) }
		if len(list) < MaxMissing && !slices.ContainsFunc(list, same) {
			m.Gone = m.ReplacedBy != "" || s.gone(m) || accepts(s.acceptance(), m)
			list = append(list, m)
		}
	}
	for _, w := range reported {
		if w.Result == model.WipeSkipped && !needsNoWipe(w) {
			add(w.Disk(), true)
		}
	}
	for _, d := range all {
		failed := func(w model.DiskWipe) bool { return w.Result == model.WipeFailed && d.Same(w.Disk()) }
		if !a.covers(d, all) && !slices.ContainsFunc(reported, failed) {
			add(d, slices.ContainsFunc(reported, func(w model.DiskWipe) bool { return d.Same(w.Disk()) }))
		}
	}
	return list
}

// SameMissing reports whether two entries are of one disk.
func SameMissing(a, b model.MissingDisk) bool {
	if a.Serial == "" || b.Serial == "" {
		return a.Serial == b.Serial && a.Name == b.Name
	}
	return model.Disk{Serial: a.Serial, Model: a.Model}.Same(model.Disk{Serial: b.Serial, Model: b.Model})
}

// gone reports whether a person has said before that no wipe accounts for a disk.
func (s *server) gone(m model.MissingDisk) bool {
	return slices.ContainsFunc(s.rec.Disks.Missing, func(known model.MissingDisk) bool {
		return known.Gone && known.ReplacedBy == "" && SameMissing(known, m)
	})
}

// remembered are the accepted disks that the next release does not ask for again: those
// that are gone. What a BMC still shows, or a system sees, may hold what its next tenant
// writes. Replaced ones are listed, and looked at anew each time.
func remembered(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool {
		return m.ReplacedBy == "" && (m.FromBMC || m.NotWiped || m.Serial == "")
	})
}

// NotAccepted are the missing disks that nobody accepted.
func NotAccepted(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool { return m.Gone })
}

// serialKey is a serial number as it is compared: probes and disks differ in blanks
// and in case.
func serialKey(serial string) string { return strings.ToLower(clip(serial)) }

// clip bounds what a probe calls a disk.
func clip(s string) string { return text.Clip(s, maxText) }

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
			texts = append(texts, "disk "+DisksText(disks)+" "+of.one)
		default:
			texts = append(texts, "disks "+DisksText(disks)+" "+of.all)
		}
	}
	return strings.Join(texts, "; ")
}

// acceptText says how to accept missing disks.
func (s *server) acceptText(missing []model.MissingDisk) string {
	var names []string
	for _, m := range missing {
		names = append(names, cmp.Or(m.Serial, m.Name))
	}
	value := strings.Join(names, ", ")
	if len(missing) > maxNamed || strings.Contains(value, "#") || strings.Count(value, ",") != len(missing)-1 {
		value = model.DisksAsReported
	}
	return fmt.Sprintf("annotation %s: %q on Server %s accepts that, and has it wiped "+
		"again", model.AnnotationDisksAccepted, s.newAcceptance(value), s.name)
}

// newAcceptance is a value of the annotation that accepts something anew.
func (s *server) newAcceptance(value string) string {
	for n := 1; WasHandled(s.rec, AskedDisks, value); n++ {
		what, _, _ := strings.Cut(value, "#")
		value = fmt.Sprintf("%s#%d", what, n+1)
	}
	return value
}

// DisksText names disks, the first of them.
func DisksText(disks []model.MissingDisk) string {
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
