package main

import (
	"fmt"
	"slices"
	"time"

	"ingot/reconcile/report"
)

// transition is one change of a server or a claim that was seen.
type transition struct {
	After time.Duration // since the demo began
	Kind  string        // server or claim
	Name  string
	From  string // empty when it is new
	To    string // empty when it is gone
	Note  string
}

// String returns the transition as a line for a person.
func (t transition) String() string {
	return fmt.Sprintf("%7.1fs  %-6s %-20s %s", t.After.Seconds(), t.Kind, t.Name, t.change())
}

func (t transition) change() (change string) {
	switch {
	case t.From == "":
		change = t.To
	case t.To == "":
		change = t.From + " → gone"
	default:
		change = t.From + " → " + t.To
	}
	if t.Note != "" {
		change += " " + t.Note
	}
	return change
}

// subject is what can change state: a server or a claim.
type subject struct{ kind, name string }

// transitions returns the changed states of servers and claims: servers first, then
// claims, then claims that are gone.
func transitions(before, after *report.Documents, at time.Duration) []transition {
	old := make(map[subject]string)
	of := func(d *report.Document) subject { return subject{d.Folder().Noun(), d.Name()} }
	for _, d := range slices.Concat(before.List(report.Servers), before.ClaimsInGit()) {
		old[of(d)] = d.Overview().Summary.State
	}
	var all []transition
	for _, d := range slices.Concat(after.List(report.Servers), after.ClaimsInGit()) {
		s, is := d.Overview().Summary, of(d)
		if from := old[is]; from != s.State {
			note := prefixed("for ", string(s.Claim)) + prefixed("on ", string(s.Server))
			all = append(all, transition{After: at, Kind: is.kind, Name: is.name, From: from, To: s.State, Note: note})
		}
		delete(old, is)
	}
	for _, d := range before.ClaimsInGit() {
		if from, gone := old[of(d)]; gone {
			all = append(all, transition{After: at, Kind: of(d).kind, Name: of(d).name, From: from})
		}
	}
	return all
}

// prefixed returns s behind prefix, or nothing when s is empty.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
