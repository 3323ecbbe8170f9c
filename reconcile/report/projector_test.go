package report

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
)

func TestUnchangedDocumentsAreTheSame(t *testing.T) {
	in := plantest.BigFleet(50, 10)
	p := NewProjector()
	first := p.Report(in, plan.Plan(in), 1, model.Holder{})
	var story Story
	story.Published(plan.Plan(in), first)
	fleettest.ChangeRecord(in.Observed, 3, func(r *model.ServerRecord) { r.Life.State = model.StateError; r.Life.Reason = "CleanupFailed" })
	second := p.Report(in, plan.Plan(in), 1, model.Holder{})
	story.Tell(plan.Plan(in), second)
	var changed []string
	for path, d := range second.Documents {
		if first.Documents[path] != d {
			changed = append(changed, path)
		}
	}
	if len(changed) != 6 { // the server, its claim, its rack, the page and two badges
		t.Errorf("%d documents are new: %v", len(changed), changed)
	}
	if want := "bmc00003-system-0: Reserved → Error (wipe failed) for default/c00003 +2"; second.Subject != want {
		t.Errorf("subject %q, want %q", second.Subject, want)
	}
}
