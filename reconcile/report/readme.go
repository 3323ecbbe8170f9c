package report

import (
	"fmt"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// Limits of the page. Forges show about 500 KiB of Markdown; with all sections full it has
// half of that.
const (
	maxRows       = 300      // of one table
	maxShownTable = 60 << 10 // bytes of the rows of claims, and of servers
	maxShownPart  = 20 << 10 // bytes of the rows of another table
)

// page is what the README of the status branch is made of.
type page struct {
	*view
	claims, servers, bmcs []row
	pictures              []picture
	picturesLeftOut       int // racks
}

// reset makes the page that of another report. Its rows keep their room.
func (p *page) reset(v *view) {
	p.view = v
	p.claims, p.servers, p.bmcs = p.claims[:0], p.servers[:0], p.bmcs[:0]
}

// readme is the fleet at a glance, as Markdown. Nothing in it changes by time alone.
func (p *page) readme() string {
	var b strings.Builder
	b.WriteString("# Fleet\n\n")
	for _, badge := range badges {
		fmt.Fprintf(&b, "[![%s](%s)](%s)\n", badge.alt, badge.path, badge.leads)
	}
	b.WriteString("\n")
	p.readmeRevision(&b)
	p.readmeCounts(&b)
	p.readmePools(&b)
	p.readmeGuard(&b)
	p.readmeAbsent(&b)
	p.readmeProblems(&b)
	list{"Claims", []string{"claim", "state", "server"}, claimFolder, maxShownTable}.write(&b, p.claims)
	list{"Servers", []string{"server", "state", "power", "claim"}, serverFolder, maxShownTable}.write(&b, p.servers)
	list{"BMCs that cannot be used", []string{"BMC", "state", "address"}, "bmcs/", maxShownPart}.write(&b, p.bmcs)
	devices := list{"Devices that are not BMCs yet", []string{"endpoint", "MAC address", "address", "reason"}, "endpoints/", maxShownPart}
	devices.write(&b, p.endpointRows())
	p.readmeRacks(&b)
	return b.String()
}

// readmeRevision says what is in force, and what is wrong with the branch as a whole.
func (p *page) readmeRevision(b *strings.Builder) {
	applied, read := p.in.Observed.Fleet.Applied.Revision(), p.in.Desired.Revision
	if applied == "" {
		applied = read
	}
	fmt.Fprintf(b, "Revision in force: %s", code(string(applied)))
	if read != applied {
		fmt.Fprintf(b, ", next: %s", code(string(read)))
	}
	if by := p.in.Desired.VerifiedBy; by != "" {
		fmt.Fprintf(b, ", signed by %s", cell(by))
	}
	if s := p.in.Desired.Source; s.Reason != "" {
		fmt.Fprintf(b, ". **%s**: %s", cell(s.Reason), cell(s.Message))
		if !s.Since.IsZero() {
			b.WriteString(", since " + text.Time(s.Since))
		}
	}
	b.WriteString(".\n\n")
	if p.ObserveOnly.Reason != "" {
		fmt.Fprintf(b, "**Observing only**: %s.\n\n", cell(p.ObserveOnly.Message))
	}
}

func (p *page) readmeCounts(b *strings.Builder) {
	counts := p.states()
	parts := []string{"**" + text.Plural(len(p.Servers), "server") + "**"}
	for _, st := range model.ServerStates {
		if counts[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[st], st))
		}
	}
	fmt.Fprintf(b, "%s. **%s**, %d bound.\n\n", strings.Join(parts, ", "), text.Plural(len(p.Claims), "claim"), p.bound())
}

// states counts the servers in each state.
func (v *view) states() map[model.ServerState]int {
	counts := make(map[model.ServerState]int)
	for _, s := range v.Servers {
		counts[s.Record.Life.State]++
	}
	return counts
}

// bound counts the claims that have a server.
func (v *view) bound() (n int) {
	for _, c := range v.Claims {
		if c.Server != "" {
			n++
		}
	}
	return n
}

// readmePools lists the pools that have no address left.
func (p *page) readmePools(b *strings.Builder) {
	for _, pool := range ExhaustedPools(p.in.Pools) {
		fmt.Fprintf(b, "**DHCP network %s, %s**: %s. Since %s.\n\n", cell(pool.Network), cell(pool.Subnet), cell(pool.Message), text.Time(pool.Since))
	}
}

func (p *page) readmeGuard(b *strings.Builder) {
	r := room{maxShownPart}
	for i, g := range p.in.Observed.Fleet.Holds {
		if i == 0 {
			b.WriteString("## Waiting for approval\n\n")
		}
		fmt.Fprintf(b, "Held back since %[2]s: %[1]s. To approve them, make a commit whose message ends with\n\n    %[3]s\n\n",
			cell(guardText(&g)), text.Time(g.Since), proposal.ApproveLine(g.Token))
		b.WriteString(tableHead("step", "server", "claim", "asked for"))
		shown := 0
		for _, s := range g.Steps[:min(len(g.Steps), maxRows)] {
			line := tableRow(cell(s.Action), link(string(s.Server), serverFolder+string(s.Server)+".yaml"), claimLink(s.Claim), cell(s.Value))
			if !r.takes(len(line)) {
				break
			}
			b.WriteString(line)
			shown++
		}
		b.WriteString("\n" + leftOutOf(len(g.Steps)-shown, model.ReportRevision))
	}
}

// leftOutOf says how many more there are, and which file has them.
func leftOutOf(n int, path string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("Left out are %d more: see [%s](%s).\n\n", n, path, path)
}

// readmeAbsent lists what is in force though Git lacks it.
func (p *page) readmeAbsent(b *strings.Builder) {
	f := &p.in.Observed.Fleet
	n := len(f.Absent) + f.AbsentMore
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "## Absent without a commit\n\n%s. Put them back, or approve their removal by a commit whose message ends with the line of one of them, or for all of them with\n\n    %s\n\n%s",
		absentText(n), proposal.ApproveLine(f.AbsentToken), tableHead("object", "since", "cause", "approve"))
	r, shown := room{maxShownPart}, 0
	for _, a := range f.Absent[:min(len(f.Absent), maxRows)] {
		line := tableRow(cell(a.Identity.String()), text.Time(a.Since), cell(string(a.Cause)), "`"+proposal.ApproveLine(a.Token)+"`")
		if !r.takes(len(line)) {
			break
		}
		b.WriteString(line)
		shown++
	}
	b.WriteString("\n" + leftOutOf(n-shown, model.ReportRevision))
}

// readmeProblems lists what is wrong in the manifests, errors first.
func (p *page) readmeProblems(b *strings.Builder) {
	all := slices.Clone(p.problems())
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, bySeverity)
	fmt.Fprintf(b, "## Problems in the manifests\n\n%s", tableHead("where", "severity", "object", "field", "what is wrong"))
	r, shown := room{maxShownPart}, 0
	for _, wrong := range all[:min(len(all), maxRows)] {
		line := tableRow(cell(problemAt(wrong)), cell(string(wrong.Severity)), cell(wrong.Object), cell(wrong.Field), cell(wrong.Message))
		if !r.takes(len(line)) {
			break
		}
		b.WriteString(line)
		shown++
	}
	b.WriteString("\n" + leftOutOf(len(all)-shown, model.ReportProblems))
}

// problemAt is where a problem is: file:line:column.
func problemAt(p model.Problem) string {
	p.Object, p.Field, p.Message, p.Severity = "", "", "", ""
	return p.String()
}

// endpointRows are the devices that somebody has to do something about.
func (p *page) endpointRows() []row {
	var rows []row
	for _, e := range p.Endpoints {
		if e.Why.Actor == proposal.ActorNone {
			continue
		}
		ip := e.IP
		if ip == "" {
			ip = "?"
		}
		rows = append(rows, whyRow(e.Why, link(e.Name, "endpoints/"+e.Name+".yaml"), cell(e.MAC), cell(ip), cell(e.Why.Reason)))
	}
	return rows
}

// readmeRacks shows the pictures of the racks, or says how to get one.
func (p *page) readmeRacks(b *strings.Builder) {
	switch {
	case len(p.Servers) == 0:
		return
	case len(p.pictures) == 0:
		b.WriteString("## Racks\n\nThere is no picture of the racks: no server has the label `rack`. A BMC hands its labels on to its servers; " +
			"`location`, `shelf` and `height` say more.\n")
		return
	}
	b.WriteString("## Racks\n\n")
	for i, pic := range p.pictures {
		if i < maxEmbedded {
			fmt.Fprintf(b, "[![%s](%s)](%s)\n\n", cell(pic.title()), pic.path, pic.path)
			continue
		}
		fmt.Fprintf(b, "- [%s](%s)\n", cell(pic.title()), pic.path)
	}
	if p.picturesLeftOut > 0 {
		fmt.Fprintf(b, "\n%s more, of which there is no picture.\n", text.Plural(p.picturesLeftOut, "rack"))
	}
}
