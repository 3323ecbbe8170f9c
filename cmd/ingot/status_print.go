package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/report"
)

// printStatus prints tables and, if whole is set, the state of the fleet as a whole.
func printStatus(c *console, docs *report.Documents, whole bool, now time.Time) {
	if whole {
		printSource(c, docs, now)
	}
	text := func(s string) cell { return textCell(orDash(s)) }
	addresses := func(s report.Summary) cell { return text(strings.Join(s.Addresses, ",")) }
	none := func(report.Summary) []cell { return nil }
	printed := false
	for _, t := range []struct {
		docs         []*report.Document
		title        string
		titles, wide []string
		cells, more  func(report.Summary) []cell
	}{
		{docs.List(report.Servers), "SERVER", []string{"POWER", "CLAIM"}, []string{"ADDRESSES", "BMC", "RACK"},
			func(s report.Summary) []cell { return []cell{text(string(s.Power)), text(string(s.Claim))} },
			func(s report.Summary) []cell { return []cell{addresses(s), text(string(s.BMC)), text(s.Rack)} }},
		{docs.ClaimsInGit(), "CLAIM", []string{"SERVER"}, []string{"ADDRESSES", "LOG IN", "IMAGE"},
			func(s report.Summary) []cell { return []cell{text(string(s.Server))} },
			func(s report.Summary) []cell { return []cell{addresses(s), text(s.Login), text(s.Image)} }},
		{docs.List(report.BMCs), "BMC", []string{"ADDRESS"}, nil,
			func(s report.Summary) []cell { return []cell{addresses(s)} }, none},
	} {
		if len(t.docs) == 0 {
			continue
		}
		if whole || printed {
			c.printf("\n")
		}
		printed = true
		titles := slices.Concat([]string{t.title, "STATE"}, t.titles, []string{"SINCE"})
		if c.wide() {
			titles = slices.Concat(titles, t.wide, []string{"LABELS"})
		}
		var rows [][]cell
		for _, d := range t.docs {
			o := d.Overview()
			row := slices.Concat([]cell{textCell(d.Name()), stateCell(o.Summary.State)}, t.cells(o.Summary), []cell{textCell(age(o.Summary.Since, now))})
			if c.wide() {
				row = append(slices.Concat(row, t.more(o.Summary)), textCell(labelsText(d.Metadata.Labels)))
			}
			rows = append(rows, append(row, textCell(waitingText(o.First()))))
		}
		c.printTable(append(titles, "WAITS FOR"), rows)
	}
	if whole {
		printProblems(c, docs.Fleet)
		printHolds(c, docs.Fleet.Holds, now)
	}
}

func waitingText(w report.Waiting) string {
	if w.Actor == "" {
		return w.Text()
	}
	return w.Text() + " (to act: " + string(w.Actor) + ")"
}

func printSource(c *console, docs *report.Documents, now time.Time) {
	f := docs.Fleet
	revision := string(f.Applied)
	if revision == "" {
		revision = "none yet"
	}
	if f.Verified != nil {
		revision += ", signed by " + f.Verified.SignedBy
	}
	c.printf("Revision %s\n", printable(revision))
	if t := f.Trouble; t != nil {
		c.printText(0, 2, printable(fmt.Sprintf("%s for %s: %s", t.Reason, age(t.Since, now), t.Message)), red)
	}
	if t := f.CommitStatus; t != nil {
		c.printText(0, 2, printable(fmt.Sprintf("No commit status is posted for %s: %s", age(t.Since, now), t.Message)), yellow)
	}
	if len(listed(docs)) == 0 {
		c.printf("No servers, claims or BMCs are known.\n")
	}
}

// stateColours are the colours of states. A state without one is printed plain.
var stateColours = map[string]colour{
	string(model.StateAvailable): green, string(model.StateReserved): cyan, string(model.StateError): red,
	string(model.StateDiscovery): yellow, string(model.StateCleanup): yellow, string(model.StateMaintenance): yellow,
	report.ClaimBooted: green, report.ClaimBound: cyan, report.ClaimUnbound: yellow, report.ClaimUnconfirmed: yellow,
	report.BMCEnabled: green, report.BMCPending: yellow,
}

func stateCell(state string) cell { return cell{printable(state), stateColours[state]} }

func (c *console) wide() bool { return c.format == "wide" }

func printProblems(c *console, f *report.Fleet) {
	if len(f.Problems) == 0 {
		return
	}
	c.printf("\n%s\n", c.paint("PROBLEMS", bold))
	for _, p := range f.Problems {
		c.printText(0, 2, printable(p.String()), plain)
	}
	if f.ProblemsLeftOut > 0 {
		c.printf("and %d more, shown once these are corrected\n", f.ProblemsLeftOut)
	}
}

// printHolds prints lists that wait for an approval.
func printHolds(c *console, holds []report.Hold, now time.Time) {
	for _, h := range holds {
		c.printf("\n")
		printWaiting(c, h, now)
		c.printf("Approve: ingot approve --token %s\n     or: a commit whose message ends with the line\n         %s\n", printable(h.Token()), printable(h.Approve))
		if h.Revert != "" {
			c.printf(" Refuse: %s\n", printable(h.Revert))
		}
	}
}

// printWaiting prints what waits, and what happens once it is approved.
func printWaiting(c *console, h report.Hold, now time.Time) {
	since := ""
	if !h.Since.IsZero() {
		since = " for " + age(h.Since, now)
	}
	c.printText(0, 2, printable(fmt.Sprintf("Waiting for approval%s: %s.", since, h.Message)), yellow)
	for _, e := range h.Effects {
		line := e.Text
		if e.Approve != "" && e.Approve != h.Approve {
			line += " (alone: --token " + e.Token() + ")"
		}
		c.printText(2, 4, printable(line), plain)
	}
	if h.LeftOut > 0 {
		c.printf("  and %d more\n", h.LeftOut)
	}
	if !h.Until.IsZero() {
		c.printf("Without an approval this happens at %s.\n", h.Until.Format(time.RFC3339))
	}
}
