package report

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/plan"
)

// TestEveryReasonSaysWhoHasToActAndWhatToDo demands both for each reason that there is.
func TestEveryReasonSaysWhoHasToActAndWhatToDo(t *testing.T) {
	known := make(map[model.Reason]bool)
	for _, reason := range model.Reasons {
		a, ok := advices[reason]
		if !ok || a.next == "" {
			t.Errorf("nobody knows what to do about %s", reason)
		}
		if a.who == plan.Nobody && a.next != goesOn {
			t.Errorf("%s is nobody's, and yet there is something to do: %s", reason, a.next)
		}
		if known[reason] {
			t.Errorf("%s is listed twice", reason)
		}
		known[reason] = true
	}
	for reason := range advices {
		if !known[reason] {
			t.Errorf("there is no reason %s", reason)
		}
	}
}
