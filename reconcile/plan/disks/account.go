package disks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

const (
	// maxMissing is how many missing disks of a server are remembered: as many as a report may have.
	maxMissing = 1024
	// MaxText is how many bytes identify a disk by its serial number, and are shown of its name and model.
	MaxText = 128
)

func clip(s string) string { return text.Clip(s, MaxText) }

// of are all disks that the server has, or had: a wipe has to account for one that vanished with its data, too.
func of(s *server) []model.Disk {
	all := s.Record.Disks.Known
	if p := s.Observed.Probes[s.Name]; p != nil {
		all = join(all, probed(p.Data.Storage))
	}
	if i := s.Facts.Inventory; i != nil {
		all = join(all, drives(i.Storages))
	}
	return all
}

// Note has the record know all that is known of the server's disks.
func Note(s *server, rec *model.ServerRecord) {
	rec.Disks.Known = of(s.With(rec))
	if p := s.Observed.Probes[s.Name]; p != nil && rec.Disks.KnownAt.IsZero() {
		rec.Disks.KnownAt = p.ReceivedAt
	}
}

// missing lists the disks that a wipe does not account for in whole. The next tenant would find the data on them.
func missing(s *server, reported []model.DiskWipe) (list []model.MissingDisk) {
	all, a, accepted := of(s), newAccount(reported), acceptance(s)
	add := func(d model.Disk, saw bool) {
		m := model.MissingDisk{Name: clip(d.Name), Serial: clip(d.Serial), Model: clip(d.Model), FromBMC: d.FromBMC, NotWiped: saw}
		if !saw {
			m.ReplacedBy = d.ReplacedBy
		}
		same := func(k model.MissingDisk) bool { return sameMissing(k, m) }
		before := func(k model.MissingDisk) bool { return k.Gone && k.ReplacedBy == "" && same(k) }
		if len(list) < maxMissing && !slices.ContainsFunc(list, same) {
			m.Gone = m.ReplacedBy != "" || slices.ContainsFunc(s.Record.Disks.Missing, before) || accepts(accepted, m)
			list = append(list, m)
		}
	}
	for _, w := range reported {
		if w.Result == model.WipeSkipped && !needsNoWipe(w) {
			add(w.Disk(), true)
		}
	}
	for _, d := range all {
		same := func(w model.DiskWipe) bool { return d.Same(w.Disk()) }
		failed := func(w model.DiskWipe) bool { return w.Result == model.WipeFailed && same(w) }
		if !a.covers(d, all) && !slices.ContainsFunc(reported, failed) {
			add(d, slices.ContainsFunc(reported, same))
		}
	}
	return list
}

func sameMissing(a, b model.MissingDisk) bool {
	if a.Serial == "" || b.Serial == "" {
		return a.Serial == b.Serial && a.Name == b.Name
	}
	return model.Disk{Serial: a.Serial, Model: a.Model}.Same(model.Disk{Serial: b.Serial, Model: b.Model})
}

// remembered are the accepted disks that the next release does not list again: those that are gone. A disk that a
// BMC still shows, or a system sees, may hold data of the next tenant.
func remembered(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool {
		return !m.Gone || m.ReplacedBy == "" && (m.FromBMC || m.NotWiped || m.Serial == "")
	})
}

// NotAccepted are the missing disks that were not accepted.
func NotAccepted(missing []model.MissingDisk) []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(missing), func(m model.MissingDisk) bool { return m.Gone })
}

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
	what, _, _ := strings.Cut(value, "#")
	for n := 2; proposal.WasHandled(s.Record, proposal.AskedDisks, value); n++ {
		value = fmt.Sprintf("%s#%d", what, n)
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

func markAccepted(s *server, rec *model.ServerRecord) {
	proposal.MarkHandled(rec, proposal.AskedDisks, s.Annotation(model.AnnotationDisksAccepted))
}

// accepts reports whether an acceptance names a disk: by serial number, or by name if it has none.
func accepts(what string, d model.MissingDisk) bool {
	key := func(serial string) string { return strings.ToLower(clip(serial)) }
	return slices.ContainsFunc(strings.Split(what, ","), func(named string) bool {
		named = key(named)
		return named != "" && (named == key(d.Serial) || d.Serial == "" && named == strings.ToLower(d.Name))
	})
}

// Accept has a server wiped again once a person accepted what its wipe listed as missing.
func Accept(s *server) (p proposal.Proposal, ok bool) {
	what, l := acceptance(s), s.Record.Life
	if what == "" || s.State() != model.StateError || l.Reason != model.ReasonCleanupFailed || l.Back != model.StateCleanup {
		return p, false
	}
	missing, all := accepted(s, what)
	if !all {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) {
		markAccepted(s, rec)
		if len(missing) == 0 {
			noteWiped(rec, rec.Disks.Wiped, s.Now)
		}
		rec.Disks.Missing, rec.Life.Back = missing, ""
	}).Enter(proposal.Act, model.StateCleanup), true
}

// accepted are the missing disks with those marked that a person accepts, and whether that is all that the
// wipe did not account for. That of a server whose disks were not known has to be confirmed.
func accepted(s *server, what string) (missing []model.MissingDisk, all bool) {
	d := &s.Record.Disks
	reported, none := what == model.DisksAsReported, what == model.DisksNone && len(d.Wiped) == 0
	missing = slices.Clone(d.Missing)
	for i, m := range missing {
		missing[i].Gone = m.Gone || reported || none || accepts(what, m)
	}
	confirmed := len(missing) == 0 && unknown(s) && (none || reported && len(d.Wiped) > 0)
	return missing, len(NotAccepted(missing)) == 0 && (confirmed || len(NotAccepted(d.Missing)) > 0)
}

// failure says what a wipe does not account for and what to do about it; "" = it accounts for all disks.
func failure(s *server, reported []model.DiskWipe, missed []model.MissingDisk) string {
	failed, missing := progress.NotWiped(reported), progress.Missing(missed)
	var says []string
	if failed != "" {
		says = append(says, "wipe failed on "+failed+": repair or replace it")
	}
	if missing != "" {
		says = append(says, missing+": look for it")
	}
	switch {
	case says == nil && unknown(s):
		return unknownText(s, reported)
	case says == nil:
		return ""
	}
	says = append(says, proposal.RetryText(s)+" has it wiped again")
	if missing != "" {
		says = append(says, acceptText(s, missed))
	}
	return strings.Join(says, "; ")
}

func unknownText(s *server, reported []model.DiskWipe) string {
	saw, value, so := "no disk", model.DisksNone, "it has none"
	if len(reported) > 0 {
		saw, value, so = progress.Wiped(reported), model.DisksAsReported, "these are all"
	}
	return fmt.Sprintf("the wipe saw %s, and nobody ever said what disks it has: look, and if %s, set annotation %s: %q on Server %s",
		saw, so, model.AnnotationDisksAccepted, newAcceptance(s, value), s.Name)
}

// unknown reports whether there is nothing to compare the report of a wipe with.
func unknown(s *server) bool {
	return len(of(s)) == 0 && s.Record.Disks.KnownAt.IsZero() && s.Observed.Probes[s.Name] == nil
}

func noteWiped(rec *model.ServerRecord, reported []model.DiskWipe, now time.Time) {
	var all []model.Disk
	for _, w := range reported {
		if w.Result == model.WipeDone {
			d := w.Disk()
			all = append(all, Disk(d.Name, d.Serial, d.Model, d.Bytes, d.IDs...))
		}
	}
	rec.Disks.Known = join(rec.Disks.Known, all)
	if rec.Disks.KnownAt.IsZero() {
		rec.Disks.KnownAt = now
	}
}

// noteReplaced notes which drives a ServerMaintenance replaced: those no longer shown, with a new one in their bay.
func noteReplaced(s *server, rec *model.ServerRecord) {
	known, shown := rec.Disks.Known, drives(s.Facts.Inventory.Storages)
	rec.Maintenance.ServicedAt, rec.Disks.Known = time.Time{}, slices.Clone(known)
	for _, old := range known {
		if !old.FromBMC || old.Nameless() || old.Bay == "" || slices.ContainsFunc(shown, old.Same) {
			continue
		}
		by := slices.IndexFunc(shown, func(d model.Disk) bool { return d.Bay == old.Bay && !slices.ContainsFunc(known, d.Same) })
		for i := range rec.Disks.Known { // the probe may have reported it, too
			if by >= 0 && old.Same(rec.Disks.Known[i]) {
				rec.Disks.Known[i].ReplacedBy = shown[by].Serial
			}
		}
	}
}

// servicedLimit is how long a BMC may take to show what a ServerMaintenance changed.
const servicedLimit = 15 * time.Minute

// Serviced looks what a ServerMaintenance changed, before anything else is done.
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
