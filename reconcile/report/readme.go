package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/text"
)

// Limits of the page. Git hosts show about 500 KiB of Markdown; with all sections full it has
// half of that.
const (
	maxRows       = 300      // of one table
	maxShownTable = 60 << 10 // bytes of the rows of claims, and of servers
	maxShownPart  = 20 << 10 // bytes of the rows of another table
)

// readme is the fleet at a glance, as Markdown. Nothing in it changes by time alone.
func (d *Documents) readme(observing string) string {
	var b strings.Builder
	b.WriteString("# Fleet\n\n")
	d.Fleet.writeRevision(&b, observing)
	d.writeCounts(&b)
	for _, pool := range d.Fleet.Pools {
		fmt.Fprintf(&b, "**DHCP network %s, %s**: %s. Since %s.\n\n", cell(pool.Network), cell(pool.Subnet), cell(pool.Message), text.Time(pool.Since))
	}
	d.Fleet.writeHolds(&b)
	d.Fleet.writeProblems(&b)
	servers := func(s Summary) []string { return []string{cmp.Or(string(s.Power), "?"), claimLink(s.Claim)} }
	claims := func(s Summary) []string {
		return []string{serverLink(s.Server), cell(s.AddressText()), code(s.Login)}
	}
	addresses := func(s Summary) []string { return []string{cell(cmp.Or(strings.Join(s.Addresses, ", "), "?"))} }
	table{"Claims", "claim", []string{"server", "addresses", "log in"}, claims, maxShownTable}.write(&b, d.ClaimsInGit())
	table{"Servers", "server", []string{"power", "claim"}, servers, maxShownTable}.write(&b, d.List(Servers))
	unusable := func(o *Document) bool { return len(o.Overview().Waiting) > 0 }
	table{"BMCs that need attention", "BMC", []string{"address"}, addresses, maxShownPart}.write(&b, filtered(d.List(BMCs), unusable))
	unknown := func(o *Document) bool { return o.Overview().NeedsAction() }
	table{"Devices that are not BMCs yet", "endpoint", []string{"address"}, addresses, maxShownPart}.write(&b, filtered(d.List(Endpoints), unknown))
	d.writeRacks(&b)
	return b.String()
}

// ClaimsInGit are the ServerClaims, and the ServerBootConfigurations in Git.
func (d *Documents) ClaimsInGit() []*Document {
	return slices.Concat(d.List(Claims), filtered(d.List(BootConfigurations), (*Document).InGit))
}

func filtered(all []*Document, keep func(*Document) bool) (out []*Document) {
	for _, d := range all {
		if keep(d) {
			out = append(out, d)
		}
	}
	return out
}

// writeRevision writes what is in force, and what is wrong with the branch as a whole.
func (f *Fleet) writeRevision(b *strings.Builder, observing string) {
	applied := cmp.Or(f.Applied, f.Observed)
	fmt.Fprintf(b, "Revision in force: %s", code(string(applied)))
	if f.Observed != applied {
		fmt.Fprintf(b, ", next: %s", code(string(f.Observed)))
	}
	if f.Verified != nil {
		fmt.Fprintf(b, ", signed by %s", cell(f.Verified.SignedBy))
	}
	if t := f.Trouble; t != nil {
		fmt.Fprintf(b, ". **%s**: %s", cell(t.Reason), cell(t.Message))
		if !t.Since.IsZero() {
			b.WriteString(", since " + text.Time(t.Since))
		}
	}
	b.WriteString(".\n\n")
	if observing != "" {
		fmt.Fprintf(b, "**Observing only**: %s.\n\n", cell(observing))
	}
}

func (d *Documents) writeCounts(b *strings.Builder) {
	servers, claims := d.List(Servers), d.ClaimsInGit()
	parts := []string{"**" + text.Plural(len(servers), "server") + "**"}
	for _, st := range model.ServerStates {
		if n := d.Fleet.Counts.Servers[st]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, st))
		}
	}
	bound := len(filtered(claims, func(o *Document) bool { return o.Overview().Summary.Server != "" }))
	fmt.Fprintf(b, "%s. **%s**, %d bound.\n\n", strings.Join(parts, ", "), text.Plural(len(claims), "claim"), bound)
}

func (f *Fleet) writeHolds(b *strings.Builder) {
	r := room{maxShownPart}
	for i, h := range f.Holds {
		if i == 0 {
			b.WriteString("## Waiting for approval\n\n")
		}
		fmt.Fprintf(b, "**%s**", cell(h.Subject))
		if !h.Since.IsZero() {
			b.WriteString(" since " + text.Time(h.Since))
		}
		fmt.Fprintf(b, ": %s. To approve them, make a commit whose message ends with\n\n    %s\n\n", cell(h.Message), h.Approve)
		if h.Revert != "" {
			fmt.Fprintf(b, "To refuse them:\n\n    %s\n\n", h.Revert)
		} else if h.isOfAbsences() {
			b.WriteString("To keep them, put them back. Each can be approved alone.\n\n")
		}
		head, alone := []string{"server", "what happens"}, h.isOfAbsences()
		if alone {
			head = append(head, "approve alone")
		}
		b.WriteString(tableHead(head...))
		shown := 0
		for _, e := range h.Effects[:min(len(h.Effects), maxRows)] {
			row := []string{serverLink(e.Server), cell(e.Text)}
			if alone {
				row = append(row, code(e.Approve))
			}
			line := tableRow(row...)
			if !r.takes(len(line)) {
				break
			}
			b.WriteString(line)
			shown++
		}
		b.WriteString("\n" + leftOutOf(len(h.Effects)-shown+h.LeftOut, model.ReportFleet))
	}
	if f.HoldsLeftOut > 0 {
		fmt.Fprintf(b, "%s more wait for approval: section `decided` of [%[2]s](%[2]s) has the tokens.\n\n", text.Plural(f.HoldsLeftOut, "list"), model.ReportFleet)
	}
}

// isOfAbsences reports whether each effect can be approved alone, as those of absent objects.
func (h *Hold) isOfAbsences() bool { return len(h.Effects) > 0 && h.Effects[0].Approve != "" }

// leftOutOf says how many more there are, and which file has them.
func leftOutOf(n int, path string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("Left out are %d more: see [%s](%s).\n\n", n, path, path)
}

// writeProblems lists what is wrong in the manifests, errors first.
func (f *Fleet) writeProblems(b *strings.Builder) {
	all := slices.Clone(f.Problems)
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, bySeverity)
	fmt.Fprintf(b, "## Problems in the manifests\n\n%s", tableHead("where", "severity", "object", "field", "problem"))
	r, shown := room{maxShownPart}, 0
	for _, wrong := range all[:min(len(all), maxRows)] {
		line := tableRow(cell(problemAt(wrong)), cell(string(wrong.Severity)), cell(wrong.Object), cell(wrong.Field), cell(wrong.Message))
		if !r.takes(len(line)) {
			break
		}
		b.WriteString(line)
		shown++
	}
	b.WriteString("\n" + leftOutOf(len(all)-shown+f.ProblemsLeftOut, model.ReportFleet))
}

// problemAt is where a problem is: file:line:column.
func problemAt(p model.Problem) string {
	p.Object, p.Field, p.Message, p.Severity = "", "", "", ""
	return p.String()
}

// writeRacks shows the pictures of the racks, or says how to get one.
func (d *Documents) writeRacks(b *strings.Builder) {
	pictures, leftOut := picturesOf(tilesOf(d.List(Servers)))
	switch {
	case len(d.List(Servers)) == 0:
		return
	case len(pictures) == 0:
		b.WriteString("## Racks\n\nThere is no picture of the racks: no server has the label `rack`. A BMC hands its labels on to its servers; " +
			"`location`, `shelf` and `height` say more.\n")
		return
	}
	b.WriteString("## Racks\n\n")
	for i, pic := range pictures {
		if i < maxEmbedded {
			fmt.Fprintf(b, "[![%s](%s)](%s)\n\n", cell(pic.title()), pic.path, pic.path)
			continue
		}
		fmt.Fprintf(b, "- [%s](%s)\n", cell(pic.title()), pic.path)
	}
	if leftOut > 0 {
		fmt.Fprintf(b, "\n%s more, of which there is no picture.\n", text.Plural(leftOut, "rack"))
	}
}

func claimLink(name model.ClaimName) string {
	if name == "" {
		return ""
	}
	return link(string(name), ClaimPath(name))
}

func serverLink(name model.ServerName) string {
	if name == "" {
		return ""
	}
	return link(string(name), Servers.Path(string(name)))
}

// table is one of objects: those that need action come first, then those that wait, as many as
// there is room for.
type table struct {
	title, noun string
	titles      []string
	columns     func(Summary) []string
	room        int // in bytes
}

func (t table) write(b *strings.Builder, all []*Document) {
	if len(all) == 0 {
		return
	}
	b.WriteString("## " + t.title + "\n\n" + tableHead(slices.Concat([]string{t.noun, "state"}, t.titles, []string{"waits for", "since", "to act"})...))
	var byUrgency [3][]*Document // action needed, waiting, in order
	for _, d := range all {
		u := 2
		if o := d.Overview(); o.NeedsAction() {
			u = 0
		} else if len(o.Waiting) > 0 {
			u = 1
		}
		byUrgency[u] = append(byUrgency[u], d)
	}
	left, shown := t.room, 0
	var leftOut []string
	for u, noun := range []string{"need action", "wait", "wait for nothing"} {
		for i, d := range byUrgency[u] {
			row := t.row(d)
			if shown == maxRows || len(row) > left {
				left = 0 // the rows behind it do not overtake it
				leftOut = append(leftOut, fmt.Sprintf("%d that %s", len(byUrgency[u])-i, noun))
				break
			}
			shown++
			left -= len(row)
			b.WriteString(row)
		}
	}
	b.WriteString("\n")
	if len(leftOut) > 0 {
		folder := string(all[0].Folder()) + "/"
		b.WriteString("Left out are " + strings.Join(leftOut, ", ") + ": see [" + folder + "](" + folder + ").\n\n")
	}
}

func (t table) row(d *Document) string {
	o := d.Overview()
	w, since := o.First(), o.Summary.Since
	if w.Reason != "" {
		since = w.Since
	}
	at := ""
	if !since.IsZero() {
		at = text.Time(since)
	}
	name := link(d.Name(), d.Path())
	return tableRow(slices.Concat([]string{name, cell(o.Summary.State)}, t.columns(o.Summary), []string{cell(w.Text()), at, cell(string(w.Actor))})...)
}
