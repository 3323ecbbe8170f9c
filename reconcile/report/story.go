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
	"ingot/model/text"
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

// shownServer is what a report said of a server.
type shownServer struct {
	state model.ServerState
	claim model.ClaimName
}

// Tell fills in the subject and body of a report's commit: what happened since the last
// published report.
func (t *Story) Tell(result *plan.Result, r *model.Report) {
	r.Subject, r.Body = t.transitions(result)
	all := newsOf(t.files, r.Documents)
	if len(r.Body) > 0 {
		all = slices.DeleteFunc(all, func(n news) bool { return n.noun == "server" }) // said already, or of less weight
	} else {
		r.Subject = cut(cmp.Or(subjectOf(all), "revision "+r.Revision.Short()))
	}
	r.Body = append(r.Body, lines(all)...)
	if len(r.Body) == 1 && r.Subject == r.Body[0] {
		r.Body = nil
	}
}

// manyWaiting is from how many claims without a server on a report that is waited for
// leaves out what has become of them.
const manyWaiting = 100

// Hurry has a report that is waited for leave many claims as the last published one
// shows them, and returns how many: those without a server, of which nothing is news but
// how many servers are in which state. That changes with each server, and for all of them.
func (t *Story) Hurry(r *model.Report) int {
	var same []string
	for path, now := range r.Documents {
		if old := t.files[path]; old != now && strings.HasPrefix(path, claimFolder) && waitsAsBefore(old, now) {
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
		reflect.DeepEqual(was.Spec, is.Spec) && reflect.DeepEqual(was.Metadata, is.Metadata) && reflect.DeepEqual(was.Record, is.Record)
}

// Published notes that a report is on the status branch.
func (t *Story) Published(result *plan.Result, r *model.Report) {
	t.files, t.servers = r.Documents, make(map[model.ServerName]shownServer, len(result.Servers))
	for i := range result.Servers {
		s := &result.Servers[i]
		t.servers[s.Name] = shownServer{s.Record.State, s.Record.Claim}
	}
}

// transitions says which servers changed their state or claim.
func (t *Story) transitions(result *plan.Result) (subject string, lines []string) {
	to := make(map[model.ServerState]int)
	for i := range result.Servers {
		s := &result.Servers[i]
		old, known := t.servers[s.Name]
		if known && old == (shownServer{s.Record.State, s.Record.Claim}) {
			continue
		}
		line := fmt.Sprintf("%s: %s", s.Name, s.Record.State)
		if known {
			line = fmt.Sprintf("%s: %s → %s", s.Name, old.state, s.Record.State)
		}
		switch {
		case s.Record.Claim != "":
			line += " for " + string(s.Record.Claim)
		case old.claim != "":
			line += ", was " + string(old.claim)
		}
		lines = append(lines, line)
		to[s.Record.State]++
	}
	if len(lines) == 0 || len(lines) == 1 && len(lines[0]) <= maxSubject {
		return strings.Join(lines, ""), lines
	}
	subject = fmt.Sprintf("%s changed:", text.Plural(len(lines), "server"))
	for _, st := range model.ServerStates {
		if to[st] > 0 {
			subject += fmt.Sprintf(" %d → %s,", to[st], st)
		}
	}
	return cut(subject[:len(subject)-1]), lines
}

func cut(s string) string {
	if r := []rune(s); len(r) > maxSubject {
		return string(r[:maxSubject-1]) + "…"
	}
	return s
}
