package report

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
)

// maxSubject is how long the first line of a commit message may be.
const maxSubject = 72

// Story tells what happened from one published report to the next. The zero Story knows
// of none. It is not for concurrent use.
type Story struct {
	servers map[model.ServerName]shownServer
	files   map[string]*model.Document
}

type shownServer struct {
	state model.ServerState
	claim model.ClaimName
}

// Describe sets the subject and the body of a report's commit: the events since the last
// published report, the weightiest first.
func (t *Story) Describe(d *model.Desired, result *plan.Result, r *model.Report) {
	all := t.transitions(result)
	moved := make(map[string]bool, len(all))
	for _, n := range all {
		moved[n.name] = true
	}
	for _, n := range newsOf(t.files, r.Documents, d) {
		if !n.server || !moved[n.name] {
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, byWeight)
	r.Subject, r.Body = cmp.Or(subjectOf(all), cut("revision "+r.Revision.Short()+": in force", maxSubject)), lines(all)
	if len(r.Body) == 1 && r.Subject == r.Body[0] {
		r.Body = nil
	}
}

// byWeight sorts the weightiest news to the front.
func byWeight(a, b news) int { return cmp.Compare(a.weight, b.weight) }

// manyWaiting is from how many claims without a server on a report that is waited for
// leaves out what has become of them.
const manyWaiting = 100

// Hurry has a report that is waited for leave many claims as the last published one
// shows them, and returns how many: those without a server, of which nothing is news but
// how many servers are in which state. That changes with each server, and for all of them.
func (t *Story) Hurry(r *model.Report) int {
	var same []string
	for path, now := range r.Documents {
		if old := t.files[path]; old != now && strings.HasPrefix(path, string(Claims)+"/") && waitsAsBefore(old, now) {
			same = append(same, path)
		}
	}
	if len(same) < manyWaiting {
		return 0
	}
	r.Documents = maps.Clone(r.Documents)
	for _, path := range same {
		r.Documents[path] = t.files[path]
	}
	return len(same)
}

// waitsAsBefore reports whether two documents show a claim without a server, for the same
// reason.
func waitsAsBefore(old, now *model.Document) bool {
	if old == nil {
		return false
	}
	was, is := old.Object.(*Document), now.Object.(*Document)
	before, _ := was.Status.(ClaimStatus)
	after, _ := is.Status.(ClaimStatus)
	sameState := func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	}
	return before.Server == "" && after.Server == "" && slices.EqualFunc(before.Conditions, after.Conditions, sameState) &&
		reflect.DeepEqual(was.Spec, is.Spec) && reflect.DeepEqual(was.Metadata, is.Metadata) && reflect.DeepEqual(was.Decided, is.Decided)
}

// Published notes that a report is on the status branch.
func (t *Story) Published(result *plan.Result, r *model.Report) {
	t.files, t.servers = r.Documents, make(map[model.ServerName]shownServer, len(result.Servers))
	for _, s := range result.Servers {
		t.servers[s.Name] = shownServer{s.Record.Life.State, s.Record.Claim.Name}
	}
}

// transitions says which servers changed their state or claim.
func (t *Story) transitions(result *plan.Result) []news {
	var all []news
	for _, s := range result.Servers {
		old, known := t.servers[s.Name]
		if known && old == (shownServer{s.Record.Life.State, s.Record.Claim.Name}) {
			continue
		}
		n := news{string(s.Name), outcome{weighsState, string(s.Record.Life.State)}, true}
		if known {
			n.text = fmt.Sprintf("%s → %s", old.state, s.Record.Life.State)
		}
		if s.Record.Life.State == model.StateError {
			n.weight = weighsTrouble
			n.text += failureText(s.Record.Life.Reason)
		}
		switch {
		case s.Record.Claim.Name != "":
			n.text += " for " + string(s.Record.Claim.Name)
		case old.claim != "":
			n.text += ", was " + string(old.claim)
		}
		all = append(all, n)
	}
	return all
}

// failureText says in brackets why a server is in state Error.
func failureText(reason string) string {
	switch reason {
	case "":
		return ""
	case model.ReasonCleanupFailed:
		reason = "wipe failed"
	}
	return " (" + reason + ")"
}

func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
