package main

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/report"
)

// The exit codes of "ingot status --exit-code", beside exitFine.
const (
	exitActs     exitStatus = 5 // action is needed
	exitUnderWay exitStatus = 6 // in progress
)

// verdict is exitActs, exitUnderWay, or nil if nothing waits. For a whole fleet, its own
// troubles count as well.
func verdict(docs *report.Documents, whole bool) error {
	acts, waits := whole && fleetActs(docs.Fleet), false
	for _, d := range listed(docs) {
		o := d.Overview()
		if o.First().Reason == model.ReasonDecommissioned {
			continue
		}
		acts = acts || o.Summary.State == string(model.StateError) || o.NeedsAction()
		waits = waits || len(o.Waiting) > 0
	}
	switch {
	case acts:
		return exitActs
	case waits:
		return exitUnderWay
	}
	return nil
}

// fleetActs reports whether action is needed for the fleet as a whole.
func fleetActs(f *report.Fleet) bool {
	wrong := func(p model.Problem) bool { return p.Severity == model.SeverityError }
	return len(f.Holds) > 0 || f.Trouble != nil || slices.ContainsFunc(f.Problems, wrong)
}

// listed are the documents that have a line in the status: servers, claims and BMCs.
func listed(docs *report.Documents) []*report.Document {
	return slices.Concat(docs.List(report.Servers), docs.ClaimsInGit(), docs.List(report.BMCs))
}
