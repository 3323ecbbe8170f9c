package main

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
)

// printSummary prints tables and, if whole is set, what concerns the fleet as a whole.
func printSummary(c *console, s report.Summary, whole bool, now time.Time) {
	if whole {
		printSource(c, s, now)
	}
	tables := []struct {
		titles, wide []string
		rows         [][]cell
	}{
		{[]string{"SERVER", "STATE", "POWER", "CLAIM", "SINCE", "WHY"}, []string{"BMC", "RACK", "LABELS"}, serverRows(s.Servers, c.wide(), now)},
		{[]string{"CLAIM", "STATE", "SERVER", "SINCE", "WHY"}, []string{"IMAGE", "LABELS"}, claimRows(s.Claims, c.wide(), now)},
		{[]string{"BMC", "STATE", "ADDRESS", "SINCE", "WHY"}, []string{"LABELS"}, bmcRows(s.BMCs, c.wide(), now)},
	}
	for i, t := range tables {
		if len(t.rows) > 0 && (whole || i > 0 && len(tables[i-1].rows) > 0) {
			c.printf("\n")
		}
		if c.wide() {
			t.titles = beforeLast(t.titles, t.wide)
		}
		c.printTable(t.titles, t.rows)
	}
	printProblems(c, s.Problems)
	printGuard(c, s.Guard, now)
	printAbsent(c, s.Absent, now)
}

func printSource(c *console, s report.Summary, now time.Time) {
	revision := string(s.Revision)
	if revision == "" {
		revision = "none yet"
	}
	if s.SignedBy != "" {
		revision += ", signed by " + s.SignedBy
	}
	c.printf("Revision %s\n", printable(revision))
	if s.Source != nil && s.Source.Reason != "" {
		c.printText(0, 2, printable(fmt.Sprintf("%s for %s: %s", s.Source.Reason, age(s.Source.Since, now), s.Source.Message)), red)
	}
	if t := s.CommitStatus; t != nil {
		c.printText(0, 2, printable(fmt.Sprintf("No commit status is posted for %s: %s", age(t.Since, now), t.Message)), yellow)
	}
	if len(s.Servers)+len(s.Claims)+len(s.BMCs) == 0 {
		c.printf("No servers, claims or BMCs are known.\n")
	}
}

// stateColours are the colours of states. A state without one is printed plain.
var stateColours = map[string]colour{
	string(model.StateAvailable): green, string(model.StateReserved): cyan, string(model.StateError): red,
	string(model.StateDiscovery): yellow, string(model.StateCleanup): yellow, string(model.StateMaintenance): yellow,
	string(report.ClaimBooted): green, string(report.ClaimBound): cyan, string(report.ClaimUnbound): yellow,
	string(report.ClaimUnconfirmed): yellow,
	"Enabled":                       green, "Pending": yellow,
}

func stateCell(state string) cell { return cell{printable(state), stateColours[state]} }

// wide reports whether tables have more columns.
func (c *console) wide() bool { return c.format == "wide" }

// beforeLast puts more before the last: why something waits is the longest, and folded.
func beforeLast[E any](all, more []E) []E { return slices.Insert(all, len(all)-1, more...) }

func serverRows(servers []report.ServerSummary, wide bool, now time.Time) [][]cell {
	var rows [][]cell
	for _, s := range servers {
		row := []cell{
			textCell(string(s.Name)), stateCell(string(s.State)), textCell(orDash(string(s.Power))),
			textCell(orDash(string(s.Claim))), textCell(age(s.Since, now)), textCell(s.Why),
		}
		if wide {
			row = beforeLast(row, []cell{textCell(orDash(string(s.BMC))), textCell(placeText(s.Labels)), textCell(labelsText(s.Labels))})
		}
		rows = append(rows, row)
	}
	return rows
}

func claimRows(claims []report.ClaimSummary, wide bool, now time.Time) [][]cell {
	var rows [][]cell
	for _, s := range claims {
		row := []cell{
			textCell(string(s.Name)), stateCell(string(s.State)), textCell(orDash(string(s.Server))), textCell(age(s.Since, now)), textCell(s.Why),
		}
		if wide {
			row = beforeLast(row, []cell{textCell(orDash(s.Image)), textCell(labelsText(s.Labels))})
		}
		rows = append(rows, row)
	}
	return rows
}

func bmcRows(bmcs []report.BMCSummary, wide bool, now time.Time) [][]cell {
	var rows [][]cell
	for _, s := range bmcs {
		row := []cell{
			textCell(string(s.Name)), stateCell(s.State), textCell(orDash(s.Address)), textCell(age(s.Since, now)), textCell(s.Why),
		}
		if wide {
			row = beforeLast(row, []cell{textCell(labelsText(s.Labels))})
		}
		rows = append(rows, row)
	}
	return rows
}

func printProblems(c *console, problems []model.Problem) {
	if len(problems) == 0 {
		return
	}
	c.printf("\n%s\n", c.paint("PROBLEMS", bold))
	for _, p := range problems {
		c.printText(0, 2, printable(p.String()), plain)
	}
}

func printGuard(c *console, holds []model.GuardHold, now time.Time) {
	for _, g := range holds {
		c.printf("\n")
		c.printText(0, 2, printable(fmt.Sprintf("%s wait for approval since %s, with them %s would go beyond the guard's limit of %d:",
			text.Plural(len(g.Steps), "step"), age(g.Since, now), g.Revision, g.Limit)), yellow)
		for _, step := range g.Steps {
			c.printText(2, 4, printable(fmt.Sprintf("%s %s of claim %s", step.Action, step.Server, step.Claim)), plain)
		}
		if !g.Until.IsZero() {
			c.printf("There is room for them at %s.\n", g.Until.Format(time.RFC3339))
		}
		c.printf("Approve them by ingot approve in a clone, or a commit whose message ends in the line\n  %s\nRefuse them by\n  %s\n",
			printable(proposal.ApproveLine(g.Token)), printable(proposal.Refuse(g.Revision)))
	}
}

// printAbsent lists what is in force though Git lacks it.
func printAbsent(c *console, a *report.AbsentSummary, now time.Time) {
	if a == nil {
		return
	}
	c.printf("\n")
	c.printText(0, 2, fmt.Sprintf("%s in force though Git lacks them or has them otherwise, "+
		"and no commit that follows on the revision applied says so:", text.Plural(len(a.Objects)+a.More, "object")), yellow)
	for _, o := range a.Objects {
		c.printText(2, 4, printable(fmt.Sprintf("%s, since %s, %s, Ingot-Approve: %s", o.Identity, age(o.Since, now), o.Cause, o.Token)), plain)
	}
	c.printf("Put them back, or approve that all of them are removed, by ingot approve in a clone or a commit whose message ends in the line\n  Ingot-Approve: %s\n", printable(a.Token))
}
