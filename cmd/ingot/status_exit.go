package main

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
)

// The exit codes of "ingot status --exit-code", beside exitFine.
const (
	exitActs     exitStatus = 5 // somebody has to act
	exitUnderWay exitStatus = 6 // what is not as Git says is under way
)

// verdict is exitActs, exitUnderWay, or nil when all is as Git says. Of a whole fleet more
// counts than what its objects say.
func verdict(s report.Summary, whole bool) error {
	acts, waits := wholeActs(s) && whole, false
	note := func(state, why string) {
		acts = acts || state == string(model.StateError) || proposal.HasActor(why)
		waits = waits || why != ""
	}
	for _, v := range s.Servers {
		if !v.Decommissioned {
			note(string(v.State), v.Why)
		}
	}
	for _, v := range s.Claims {
		note(string(v.State), v.Why)
	}
	for _, v := range s.BMCs {
		note(v.State, v.Why)
	}
	switch {
	case acts:
		return exitActs
	case waits:
		return exitUnderWay
	}
	return nil
}

// wholeActs reports whether somebody has to act on what is no object's.
func wholeActs(s report.Summary) bool {
	wrong := slices.ContainsFunc(s.Problems, func(p model.Problem) bool { return p.Severity == model.SeverityError })
	return wrong || len(s.Guard) > 0 || s.Absent != nil || s.Source != nil && s.Source.Reason != ""
}
