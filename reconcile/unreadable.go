package reconcile

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
)

// unreadableRecords lists servers of which no copy of the record can be read, each with
// the claim that it serves by claims. The tokens are made of seed, which nobody can guess.
func unreadableRecords(servers []model.ServerName, claims map[model.ServerName]model.ClaimName, now time.Time, seed string) []model.UnreadableRecord {
	all := make([]model.UnreadableRecord, len(servers))
	for i, name := range servers {
		all[i] = model.UnreadableRecord{
			Server: name, Claim: claims[name], Since: now, Token: randomToken(seed, "unreadable\x00"+string(name), tokenLength),
		}
	}
	return all
}

// joinUnreadable adds to a list the servers that another lists too. One that both list
// keeps its token: people may have read it already.
func joinUnreadable(to, from []model.UnreadableRecord) []model.UnreadableRecord {
	listed := make(map[model.ServerName]bool, len(to))
	for _, u := range to {
		listed[u.Server] = true
	}
	all := slices.Clip(to)
	for _, u := range from {
		if !listed[u.Server] {
			all = append(all, u)
		}
	}
	return all
}

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
		lines[i] = fmt.Sprintf("%s (%s)", u.Server, approveLine(u.Token))
	}
	return fmt.Sprintf("system %s is not taken for a new server, for it may be one whose record cannot be read: %s; approve that it is given up", uri, text.List(lines, ", "))
}
