package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
)

// missing lists the disks that the report of a wipe does not account for: those that the
// server is known to have had and that are not in it, or only in part, and those that
// the wipe left alone. What is not wiped, the next tenant would find.
func (s *server) missing(reported []model.DiskWipe) []model.MissingDisk {
	all, a := s.disks(), disks.NewAccount(reported)
	var list []model.MissingDisk
	add := func(d model.Disk, saw bool) {
		m := model.MissingDisk{Name: disks.Clip(d.Name), Serial: disks.Clip(d.Serial), Model: disks.Clip(d.Model), FromBMC: d.FromBMC, NotWiped: saw}
		if !saw {
			m.ReplacedBy = d.ReplacedBy
		}
		same := func(k model.MissingDisk) bool { return disks.SameMissing(k, m) }
		if len(list) < disks.MaxMissing && !slices.ContainsFunc(list, same) {
			m.Gone = m.ReplacedBy != "" || s.gone(m) || disks.Accepts(s.acceptance(), m)
			list = append(list, m)
		}
	}
	for _, w := range reported {
		if w.Result == model.WipeSkipped && !disks.NeedsNoWipe(w) {
			add(w.Disk(), true)
		}
	}
	for _, d := range all {
		failed := func(w model.DiskWipe) bool { return w.Result == model.WipeFailed && d.Same(w.Disk()) }
		if !a.Covers(d, all) && !slices.ContainsFunc(reported, failed) {
			add(d, slices.ContainsFunc(reported, func(w model.DiskWipe) bool { return d.Same(w.Disk()) }))
		}
	}
	return list
}

// gone reports whether a person has said before that no wipe accounts for a disk.
func (s *server) gone(m model.MissingDisk) bool {
	return slices.ContainsFunc(s.rec.Disks.Missing, func(known model.MissingDisk) bool {
		return known.Gone && known.ReplacedBy == "" && disks.SameMissing(known, m)
	})
}

// acceptText says how to accept missing disks.
func (s *server) acceptText(missing []model.MissingDisk) string {
	var names []string
	for _, m := range missing {
		names = append(names, cmp.Or(m.Serial, m.Name))
	}
	value := strings.Join(names, ", ")
	if len(missing) > disks.MaxNamed || strings.Contains(value, "#") || strings.Count(value, ",") != len(missing)-1 {
		value = model.DisksAsReported
	}
	return fmt.Sprintf("annotation %s: %q on Server %s accepts that, and has it wiped "+
		"again", model.AnnotationDisksAccepted, s.newAcceptance(value), s.name)
}

// newAcceptance is a value of the annotation that accepts something anew.
func (s *server) newAcceptance(value string) string {
	for n := 1; proposal.WasHandled(s.rec, proposal.AskedDisks, value); n++ {
		what, _, _ := strings.Cut(value, "#")
		value = fmt.Sprintf("%s#%d", what, n+1)
	}
	return value
}
