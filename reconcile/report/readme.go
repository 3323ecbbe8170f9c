package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan"
)

// maxRows is how many claims and servers the page lists; the folders hold all.
const maxRows = 500

// readme is the fleet at a glance, as Markdown.
func (v *view) readme() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Fleet\n\nRevision `%s`", v.in.Desired.Revision.Short())
	if by := v.in.Desired.VerifiedBy; by != "" {
		fmt.Fprintf(&b, ", signed by %s", plain(by))
	}
	if s := v.in.Desired.Source; s.Reason != "" {
		fmt.Fprintf(&b, ", **%s**: %s", s.Reason, plain(s.Message))
	}
	b.WriteString("\n\n")
	v.readmeCounts(&b)
	v.readmePools(&b)
	v.readmeGuard(&b)
	v.readmeAbsent(&b)
	v.readmeClaims(&b)
	v.readmeServers(&b)
	v.readmeBMCs(&b)
	v.readmeEndpoints(&b)
	return b.String()
}

func (v *view) readmeCounts(b *strings.Builder) {
	counts := make(map[model.ServerState]int)
	for _, s := range v.Servers {
		counts[s.Record.State]++
	}
	parts := []string{"**" + text.Plural(len(v.Servers), "server") + "**"}
	for _, st := range model.ServerStates {
		if counts[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[st], st))
		}
	}
	bound := 0
	for i := range v.Claims {
		if v.Claims[i].Server != "" {
			bound++
		}
	}
	fmt.Fprintf(b, "%s. **%s**, %d bound.", strings.Join(parts, ", "), text.Plural(len(v.in.Desired.Claims), "claim"), bound)
	if n := len(v.problems()); n > 0 {
		fmt.Fprintf(b, " [%s](%s) in the manifests.", text.Plural(n, "problem"), model.ReportProblems)
	}
	if v.ObserveOnly.Reason != "" {
		fmt.Fprintf(b, "\n\n**Observing only**: %s.", v.ObserveOnly.Message)
	}
	b.WriteString("\n\n")
}

// readmePools lists the pools that have no address left.
func (v *view) readmePools(b *strings.Builder) {
	pools := ExhaustedPools(v.in.Pools)
	for _, p := range pools {
		fmt.Fprintf(b, "**DHCP network %s, %s**: %s. Since %s.\n\n", plain(p.Network), p.Subnet, p.Message, p.Since.Format(time.RFC3339))
	}
}

func (v *view) readmeGuard(b *strings.Builder) {
	for i, g := range v.in.Observed.Fleet.Holds {
		if i == 0 {
			b.WriteString("## Waiting for approval\n\n")
		}
		fmt.Fprintf(b, "The guard holds back %s. To approve them, make a commit whose message ends with\n\n    %s\n\n| step | server | claim |\n|---|---|---|\n",
			guardText(&g), plan.ApproveLine(g.Token))
		for _, s := range g.Steps[:min(len(g.Steps), maxRows)] {
			fmt.Fprintf(b, "| %s | %s | %s |\n", s.Action, s.Server, s.Claim)
		}
		b.WriteString("\n")
	}
}

// readmeAbsent lists what is in force though Git lacks it.
func (v *view) readmeAbsent(b *strings.Builder) {
	f := &v.in.Observed.Fleet
	n := len(f.Absent) + f.AbsentMore
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "## Absent without a commit\n\n%s. Put them back, or approve their removal by a commit whose message ends with the line of one of them, or for all of them with\n\n    %s\n\n| object | since | cause | approve |\n|---|---|---|---|\n",
		absentText(n), plan.ApproveLine(f.AbsentToken))
	for _, a := range f.Absent[:min(len(f.Absent), maxRows)] {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", plain(a.Identity.String()), text.Time(a.Since), a.Cause, plan.ApproveLine(a.Token))
	}
	b.WriteString("\n")
}

func (v *view) readmeClaims(b *strings.Builder) {
	if len(v.in.Desired.Claims) == 0 {
		return
	}
	b.WriteString("## Claims\n\n| claim | phase | server | waits for |\n|---|---|---|---|\n")
	for i, c := range v.Claims {
		if i == maxRows {
			fmt.Fprintf(b, "\nand %d more.\n", len(v.Claims)-maxRows)
			break
		}
		phase, why := "Unbound", c.Why
		if s := v.servers[c.Server]; s != nil {
			phase, why = "Bound", v.server(s).waitsFor()
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", c.Name, phase, c.Server, plain(why.Text()))
	}
	b.WriteString("\n")
}

func (v *view) readmeServers(b *strings.Builder) {
	if len(v.Servers) == 0 {
		return
	}
	b.WriteString("## Servers\n\n| server | state | power | claim | waits for |\n|---|---|---|---|---|\n")
	for i, s := range v.Servers {
		if i == maxRows {
			fmt.Fprintf(b, "\nand %d more.\n", len(v.Servers)-maxRows)
			break
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", s.Name, s.Record.State, cmp.Or(string(v.server(&s).facts().Power), "?"), s.Record.Claim, plain(v.server(&s).waitsFor().Text()))
	}
	b.WriteString("\n")
}

// waitsFor is why the server is not where it should be, or else what is awaited while it is.
func (s serverView) waitsFor() plan.Why {
	if s.Why.Reason == "" && s.Approval != nil {
		return *s.Approval
	}
	return s.Why
}

// readmeBMCs lists the BMCs that cannot be used.
func (v *view) readmeBMCs(b *strings.Builder) {
	rows := 0
	for _, m := range v.BMCs {
		why := m.Why
		if why.Reason == "" || rows == maxRows {
			continue
		}
		if rows == 0 {
			b.WriteString("## BMCs that cannot be used\n\n| BMC | reason | message |\n|---|---|---|\n")
		}
		rows++
		fmt.Fprintf(b, "| %s | %s | %s |\n", m.Name, why.Reason, plain(why.Text()))
	}
}

// readmeEndpoints lists the devices that somebody has to do something about.
func (v *view) readmeEndpoints(b *strings.Builder) {
	rows := 0
	for _, e := range v.Endpoints {
		if e.Why.Actor == plan.ActorNone || rows == maxRows {
			continue
		}
		if rows == 0 {
			b.WriteString("\n## Devices that are not BMCs yet\n\n| endpoint | MAC address | address | reason | message |\n|---|---|---|---|---|\n")
		}
		rows++
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", e.Name, e.MAC, cmp.Or(e.IP, "?"), e.Why.Reason, plain(e.Why.Text()))
	}
}

// plain makes a text from outside fit for one cell of a Markdown table.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch r {
		case '|', '<', '>', '`', '[', ']', '*', '_', '#', '!', '\\':
			return -1
		case '\n', '\r', '\t':
			return ' '
		}
		return r
	}, s)
	return s
}
