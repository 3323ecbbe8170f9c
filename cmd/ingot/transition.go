package main

import (
	"fmt"
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

// change is from what to what.
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

// transitions returns what changed between two summaries: servers first, then
// claims, then claims that are gone.
func transitions(before, after report.Summary, at time.Duration) []transition {
	old := make(map[subject]string)
	for _, s := range before.Servers {
		old[subject{"server", string(s.Name)}] = string(s.State)
	}
	for _, c := range before.Claims {
		old[subject{"claim", string(c.Name)}] = string(c.State)
	}
	var all []transition
	note := func(of subject, to, note string) {
		if from := old[of]; from != to {
			all = append(all, transition{After: at, Kind: of.kind, Name: of.name, From: from, To: to, Note: note})
		}
		delete(old, of)
	}
	for _, s := range after.Servers {
		note(subject{"server", string(s.Name)}, string(s.State), prefixed("for ", string(s.Claim)))
	}
	for _, c := range after.Claims {
		note(subject{"claim", string(c.Name)}, string(c.State), prefixed("on ", string(c.Server)))
	}
	for _, c := range before.Claims {
		of := subject{"claim", string(c.Name)}
		if from, gone := old[of]; gone {
			all = append(all, transition{After: at, Kind: of.kind, Name: of.name, From: from})
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
