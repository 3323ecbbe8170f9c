package plan

import (
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
)

// acceptance is what a person asks anew to accept of a wipe; "" = nothing.
func (s *server) acceptance() string {
	value := s.annotation(model.AnnotationDisksAccepted)
	if proposal.WasHandled(s.rec, proposal.AskedDisks, value) {
		return ""
	}
	what, _, _ := strings.Cut(value, "#")
	return strings.TrimSpace(what)
}

// accept has a server wiped again once a person accepted what its wipe did not account
// for: what the wipe listed as missing, and nothing more.
func (s *server) accept() (Step, bool) {
	what := s.acceptance()
	if what == "" || s.rec.Life.Reason != model.ReasonCleanupFailed || s.rec.Life.Back != model.StateCleanup {
		return Step{}, false
	}
	missing := s.acceptedOf(what)
	switch {
	case len(disks.NotAccepted(s.rec.Disks.Missing)) == 0 && !s.acceptsUnknown(what):
		return Step{}, false // no disk was listed as missing
	case len(disks.NotAccepted(missing)) > 0:
		return Step{}, false
	}
	rec := s.edit()
	proposal.MarkHandled(rec, proposal.AskedDisks, s.annotation(model.AnnotationDisksAccepted))
	if len(missing) == 0 {
		s.noteWiped(rec.Disks.Wiped)
	}
	rec.Disks.Missing, rec.Life.Back = missing, ""
	return s.enter(model.StateCleanup), true
}

// acceptedOf are the disks that are missing, with those marked that a person accepts.
func (s *server) acceptedOf(what string) []model.MissingDisk {
	all := what == model.DisksAsReported || what == model.DisksNone && len(s.rec.Disks.Wiped) == 0
	missing := slices.Clone(s.rec.Disks.Missing)
	for i, m := range missing {
		missing[i].Gone = m.Gone || all || disks.Accepts(what, m)
	}
	return missing
}

// acceptsUnknown reports whether a person says of a server of which nothing was known
// that what its wipe saw is all.
func (s *server) acceptsUnknown(what string) bool {
	said := model.DisksAsReported
	if len(s.rec.Disks.Wiped) == 0 {
		said = model.DisksNone
	}
	return what == said && len(s.rec.Disks.Missing) == 0 && s.unknownDisks()
}

// acceptedBefore are the disks that a person accepted and that were not seen since.
func (s *server) acceptedBefore() []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(s.rec.Disks.Missing), func(m model.MissingDisk) bool { return !m.Gone })
}
