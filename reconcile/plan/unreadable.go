package plan

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// noteUnreadable forgets the records that cannot be read once a person says so, or the
// server is known again.
func (f *fleet) noteUnreadable() {
	if f.observeOnly.Reason != "" {
		return
	}
	f.record.Unreadable = slices.DeleteFunc(slices.Clone(f.record.Unreadable), func(u model.UnreadableRecord) bool {
		return f.in.Observed.Servers[u.Server] != nil || slices.Contains(f.in.Desired.Approvals, u.Token)
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
