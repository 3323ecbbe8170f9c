package disks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

// Of are all disks that the server is known to have, or to have had: those of its record,
// those that its probe reported, and the drives that its BMC shows. A disk that vanished
// is still one that a wipe has to account for: what is on it goes with it.
func Of(s *server) []model.Disk {
	all := s.Record.Disks.Known
	if p := s.Observed.Probes[s.Name]; p != nil {
		all = JoinDisks(all, ProbedDisks(p.Data.Storage))
	}
	if i := s.Facts.Inventory; i != nil {
		all = JoinDisks(all, Drives(i.Storages))
	}
	return all
}

// Note has the record know all that is known of the server's disks.
func Note(s *server, rec *model.ServerRecord) {
	rec.Disks.Known = Of(s.With(rec))
	if p := s.Observed.Probes[s.Name]; p != nil && rec.Disks.KnownAt.IsZero() {
		rec.Disks.KnownAt = p.ReceivedAt
	}
}

// missing lists the disks that the report of a wipe does not account for: those that the
// server is known to have had and that are not in it, or only in part, and those that
// the wipe left alone. The next tenant would find the data on them.
func missing(s *server, reported []model.DiskWipe) []model.MissingDisk {
	all, a := Of(s), NewAccount(reported)
	var list []model.MissingDisk
	add := func(d model.Disk, saw bool) {
		m := model.MissingDisk{Name: Clip(d.Name), Serial: Clip(d.Serial), Model: Clip(d.Model), FromBMC: d.FromBMC, NotWiped: saw}
		if !saw {
			m.ReplacedBy = d.ReplacedBy
		}
		same := func(k model.MissingDisk) bool { return SameMissing(k, m) }
		if len(list) < MaxMissing && !slices.ContainsFunc(list, same) {
			m.Gone = m.ReplacedBy != "" || gone(s, m) || Accepts(acceptance(s), m)
			list = append(list, m)
		}
	}
	for _, w := range reported {
		if w.Result == model.WipeSkipped && !NeedsNoWipe(w) {
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
func gone(s *server, m model.MissingDisk) bool {
	return slices.ContainsFunc(s.Record.Disks.Missing, func(known model.MissingDisk) bool {
		return known.Gone && known.ReplacedBy == "" && SameMissing(known, m)
	})
}

// acceptText says how to accept missing disks.
func acceptText(s *server, missing []model.MissingDisk) string {
	var names []string
	for _, m := range missing {
		names = append(names, cmp.Or(m.Serial, m.Name))
	}
	value := strings.Join(names, ", ")
	if len(missing) > progress.MaxNamed || strings.Contains(value, "#") || strings.Count(value, ",") != len(missing)-1 {
		value = model.DisksAsReported
	}
	return fmt.Sprintf("annotation %s: %q on Server %s accepts that, and has it wiped "+
		"again", model.AnnotationDisksAccepted, newAcceptance(s, value), s.Name)
}

// newAcceptance is a value of the annotation that was not used before.
func newAcceptance(s *server, value string) string {
	for n := 1; proposal.WasHandled(s.Record, proposal.AskedDisks, value); n++ {
		what, _, _ := strings.Cut(value, "#")
		value = fmt.Sprintf("%s#%d", what, n+1)
	}
	return value
}

// acceptance names the disks that a new value of the annotation accepts; "" = none.
func acceptance(s *server) string {
	value := s.Annotation(model.AnnotationDisksAccepted)
	if proposal.WasHandled(s.Record, proposal.AskedDisks, value) {
		return ""
	}
	what, _, _ := strings.Cut(value, "#")
	return strings.TrimSpace(what)
}

// Accept has a server wiped again once a person accepted what its wipe did not account
// for: what the wipe listed as missing, and nothing more.
func Accept(s *server) (p proposal.Proposal, ok bool) {
	what := acceptance(s)
	if what == "" || s.State() != model.StateError || s.Record.Life.Reason != model.ReasonCleanupFailed || s.Record.Life.Back != model.StateCleanup {
		return p, false
	}
	missing := acceptedOf(s, what)
	switch {
	case len(NotAccepted(s.Record.Disks.Missing)) == 0 && !acceptsUnknown(s, what):
		return p, false // no disk was listed as missing
	case len(NotAccepted(missing)) > 0:
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) {
		proposal.MarkHandled(rec, proposal.AskedDisks, s.Annotation(model.AnnotationDisksAccepted))
		if len(missing) == 0 {
			noteWiped(rec, rec.Disks.Wiped, s.Now)
		}
		rec.Disks.Missing, rec.Life.Back = missing, ""
	}).Enter(proposal.Act, model.StateCleanup), true
}

// acceptedOf are the disks that are missing, with those marked that a person accepts.
func acceptedOf(s *server, what string) []model.MissingDisk {
	all := what == model.DisksAsReported || what == model.DisksNone && len(s.Record.Disks.Wiped) == 0
	missing := slices.Clone(s.Record.Disks.Missing)
	for i, m := range missing {
		missing[i].Gone = m.Gone || all || Accepts(what, m)
	}
	return missing
}

// acceptsUnknown reports whether a person confirms, for a server whose disks were not known, that
// its wipe saw all of them.
func acceptsUnknown(s *server, what string) bool {
	said := model.DisksAsReported
	if len(s.Record.Disks.Wiped) == 0 {
		said = model.DisksNone
	}
	return what == said && len(s.Record.Disks.Missing) == 0 && unknownDisks(s)
}

// acceptedBefore are the disks that a person accepted and that were not seen since.
func acceptedBefore(s *server) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(s.Record.Disks.Missing), func(m model.MissingDisk) bool { return !m.Gone })
}

// failure says what a wipe does not account for and what to do about it; "" = all
// disks are accounted for.
func failure(s *server, reported []model.DiskWipe, missed []model.MissingDisk) string {
	failed, missing := progress.NotWiped(reported), progress.Missing(missed)
	retry := fmt.Sprintf("annotation %s: %s on Server %s has it wiped again", model.AnnotationOperation, proposal.NewRetry(s), s.Name)
	switch {
	case failed == "" && missing == "" && unknownDisks(s):
		return unknownText(s, reported)
	case failed == "" && missing == "":
		return ""
	case missing == "":
		return fmt.Sprintf("wipe failed on %s: repair or replace it; %s", failed, retry)
	case failed == "":
		return fmt.Sprintf("%s: look for it; %s; %s", missing, retry, acceptText(s, missed))
	}
	return fmt.Sprintf("wipe failed on %s: repair or replace it; %s: look for it; %s; %s", failed, missing, retry, acceptText(s, missed))
}

// unknownText says what a wipe saw of disks of which nothing was known.
func unknownText(s *server, reported []model.DiskWipe) string {
	saw, value, so := "no disk", model.DisksNone, "it has none"
	if len(reported) > 0 {
		saw, value, so = progress.Wiped(reported), model.DisksAsReported, "these are all"
	}
	return fmt.Sprintf("the wipe saw %s, and nobody ever said what disks it has: look, and if %s, set annotation %s: %q on Server %s",
		saw, so, model.AnnotationDisksAccepted, newAcceptance(s, value), s.Name)
}

// unknownDisks reports whether there is nothing to compare the report of a wipe with.
func unknownDisks(s *server) bool {
	return len(Of(s)) == 0 && s.Record.Disks.KnownAt.IsZero() && s.Observed.Probes[s.Name] == nil
}

// noteWiped has the record know what was wiped.
func noteWiped(rec *model.ServerRecord, reported []model.DiskWipe, now time.Time) {
	var all []model.Disk
	for _, w := range reported {
		if w.Result == model.WipeDone {
			d := w.Disk()
			all = append(all, Disk(d.Name, d.Serial, d.Model, d.Bytes, d.IDs...))
		}
	}
	rec.Disks.Known = JoinDisks(rec.Disks.Known, all)
	if rec.Disks.KnownAt.IsZero() {
		rec.Disks.KnownAt = now
	}
}

// noteReplaced notes which drives a ServerMaintenance replaced: the BMC no longer shows
// such a drive, and shows one that was not known in its bay.
func noteReplaced(s *server, rec *model.ServerRecord) {
	rec.Maintenance.ServicedAt = time.Time{}
	known, shown := rec.Disks.Known, Drives(s.Facts.Inventory.Storages)
	rec.Disks.Known = slices.Clone(known)
	for _, old := range known {
		if !old.FromBMC || old.Nameless() || old.Bay == "" || slices.ContainsFunc(shown, old.Same) {
			continue
		}
		i := slices.IndexFunc(shown, func(d model.Disk) bool {
			return d.Bay == old.Bay && !slices.ContainsFunc(known, d.Same)
		})
		for k := range rec.Disks.Known {
			if i >= 0 && old.Same(rec.Disks.Known[k]) {
				rec.Disks.Known[k].ReplacedBy = shown[i].Serial
			}
		}
	}
}

// servicedLimit is how long a BMC may take to show what a ServerMaintenance changed.
const servicedLimit = 15 * time.Minute

// Serviced looks what a ServerMaintenance changed, before anything else is done. Of a
// BMC that does not show it in time nothing counts as changed.
func Serviced(s *server) (p proposal.Proposal, ok bool) {
	at := s.Record.Maintenance.ServicedAt
	switch {
	case at.IsZero():
		return p, false
	case s.Over(at, servicedLimit):
		return s.Change(func(rec *model.ServerRecord) { rec.Maintenance.ServicedAt = time.Time{} }).Stay(proposal.Look), true
	case s.Facts.Inventory == nil || s.Reading.InventoryAt.Before(s.NotedAt(at)):
		return s.Inspect(), true
	}
	return s.Change(func(rec *model.ServerRecord) { noteReplaced(s, rec) }).Stay(proposal.Look), true
}
