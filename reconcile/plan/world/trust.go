package world

import (
	"cmp"
	"fmt"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// observeIfOutdated has nothing done while the revision in force is one kept over a
// restart that is not the one last acted upon: it may lack claims that are bound.
func (f *World) observeIfOutdated() {
	if why := cmp.Or(f.In.ObserveOnly, f.In.HealOnly); why != "" {
		f.ObserveOnly = proposal.Why{Reason: model.ReasonObserveOnly, Message: why, Since: f.In.Started, Actor: proposal.RackOperator}
	}
	if f.Outdated() {
		f.ObserveOnly = proposal.Why{
			Reason: model.ReasonRevisionOutdated, Message: fmt.Sprintf("Git has not been read since the restart, and the stored revision is older than "+
				"%s, which was applied last", f.Record.Applied.Revision().Short()),
			Since: f.Record.At, Actor: proposal.RackOperator,
		}
	}
}

// Outdated reports whether the revision in force is one kept over a restart that is
// not the one last acted upon.
func (f *World) Outdated() bool {
	applied := f.In.Observed.Fleet.Applied.Revision()
	return f.In.Desired.KeptOverRestart && applied != "" && applied != f.In.Desired.Revision
}

// noteRevision counts revisions: claims are served in the order of the count.
func (f *World) noteRevision() {
	if f.Record.Applied == f.In.Desired.Applied() || f.ObserveOnly.Reason != "" || f.renameWaits() {
		return
	}
	f.Record.Applied, f.Record.Tips, f.Record.At = f.In.Desired.Applied(), f.In.Desired.Tips, f.In.Now
	f.Record.Sequence++
}

// DeletionUntrusted reports whether a claim that Desired lacks may still be in Git.
func (f *World) DeletionUntrusted(name model.ClaimName) bool {
	return f.In.Desired.IsQuarantined(name.Identity())
}

// noteUnreadable forgets the records that cannot be read once a person says so, or the
// server is known again.
func (f *World) noteUnreadable() {
	if f.ObserveOnly.Reason != "" {
		return
	}
	f.Record.Unreadable = slices.DeleteFunc(slices.Clone(f.Record.Unreadable), func(u model.UnreadableRecord) bool {
		return f.In.Observed.Servers[u.Server] != nil || slices.Contains(f.In.Desired.Approvals, u.Token)
	})
}

// unreadableText says why a system is not taken for a new server.
func unreadableText(uri string, all []model.UnreadableRecord) string {
	lines := make([]string, len(all))
	for i, u := range all {
		lines[i] = fmt.Sprintf("%s (%s)", u.Server, proposal.ApproveLine(u.Token))
	}
	return fmt.Sprintf("system %s is not taken for a new server, for it may be one whose record cannot be read: %s; approve that it is "+
		"given up", uri, text.List(lines, ", "))
}
