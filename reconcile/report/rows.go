package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// urgency is who an object waits for.
type urgency int

// The urgencies, the most urgent first.
const (
	needsSomebody urgency = iota // a person has to act
	waits                        // it goes on by itself
	inOrder                      // it waits for nothing
	urgencies     = iota
)

// row is an object's line of the page.
type row struct {
	urgency urgency
	text    string
}

// rowOf is the line of the page for the document at a path, one without text if it has none.
func rowOf(path string, d *model.Document) row {
	o, ok := d.Object.(*Document)
	if !ok {
		return row{urgency: inOrder}
	}
	switch st := o.Status.(type) {
	case ServerStatus:
		s := serverSummary(o, st)
		w := waitingOf(st.Conditions, s.Why, s.Since)
		return w.row(link(string(s.Name), path), string(s.State), cmp.Or(string(s.Power), "?"), claimLink(s.Claim))
	case ClaimStatus:
		return claimRow(path, claimSummary(o, st), st.Conditions)
	case BootConfigurationStatus:
		if of, inGit := requested(o, st); inGit {
			return claimRow(path, claimSummary(o, of), st.Conditions)
		}
	case BMCStatus:
		b := bmcSummary(o, st)
		return waitingOf(st.Conditions, b.Why, b.Since).row(link(string(b.Name), path), b.State, cell(b.Address))
	}
	return row{urgency: inOrder}
}

func claimRow(path string, c ClaimSummary, conds conditions) row {
	server := ""
	if c.Server != "" {
		server = link(string(c.Server), serverFolder+string(c.Server)+".yaml")
	}
	return waitingOf(conds, c.Why, c.Since).row(link(string(c.Name), path), string(c.State), server)
}

func claimLink(name model.ClaimName) string {
	if name == "" {
		return ""
	}
	return link(string(name), ClaimPath(name))
}

// waiting is what an object waits for, since when, and who has to act.
type waiting struct {
	why, actor string
	since      time.Time
}

// waitingOf finds among conditions the one that a summary's why is of. Without a why it is
// since when the object is as it is.
func waitingOf(conds conditions, why string, since time.Time) waiting {
	w := waiting{since: since}
	if why == "" {
		return w
	}
	w.why, w.actor = splitActor(why)
	if at := slices.IndexFunc(conds, func(c metav1.Condition) bool { return saying(c) == why }); at >= 0 {
		w.since = conds[at].LastTransitionTime.Time
		w.why = cmp.Or(w.why, conds[at].Reason)
	}
	return w
}

// splitActor parts what plan.Why.Text put together.
func splitActor(text string) (why, actor string) {
	why, actor, _ = strings.Cut(text, " (to act: ")
	return why, strings.TrimSuffix(actor, ")")
}

func (w waiting) urgency() urgency {
	switch {
	case w.why == "":
		return inOrder
	case w.actor == "":
		return waits
	}
	return needsSomebody
}

// row is the line of an object: what it is, and what it waits for.
func (w waiting) row(cells ...string) row {
	since := ""
	if !w.since.IsZero() {
		since = text.Time(w.since)
	}
	return row{w.urgency(), tableRow(append(cells, cell(w.why), since, cell(w.actor))...)}
}

// waitingFor are the titles of what each row ends with.
var waitingFor = []string{"waits for", "since", "to act"}

// whyRow is the line of something that is not shown as a condition.
func whyRow(why proposal.Why, cells ...string) row {
	return waiting{why.Message, string(why.Actor), why.Since}.row(cells...)
}

// list is a table of the page: those rows that wait come first, as many as there is room for.
type list struct {
	title  string
	titles []string
	folder string // where all of them are
	room   int    // in bytes
}

func (l list) write(b *strings.Builder, rows []row) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("## " + l.title + "\n\n" + tableHead(append(slices.Clone(l.titles), waitingFor...)...))
	left, shown := l.room, 0
	var leftOut [urgencies]int
	for u := range urgency(urgencies) {
		for _, r := range rows {
			switch {
			case r.urgency != u:
			case shown == maxRows, len(r.text) > left:
				leftOut[u]++
				left = 0 // those behind it do not overtake it
			default:
				shown++
				left -= len(r.text)
				b.WriteString(r.text)
			}
		}
	}
	b.WriteString("\n" + l.leftOut(leftOut))
}

// leftOut says how many rows are not shown, and where they are.
func (l list) leftOut(n [urgencies]int) string {
	var parts []string
	for u, what := range [urgencies]string{"wait for somebody", "wait", "wait for nothing"} {
		if n[u] > 0 {
			parts = append(parts, fmt.Sprintf("%d that %s", n[u], what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Left out are " + strings.Join(parts, ", ") + ": see [" + l.folder + "](" + l.folder + ").\n\n"
}
