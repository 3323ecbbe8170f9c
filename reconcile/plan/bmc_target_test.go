package plan_test

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/plan"
)

// A BMC is reached as its manifest says.
func TestABMCIsReachedAsGitSays(t *testing.T) {
	in := lostPower(1)
	for _, b := range in.Desired.BMCs {
		b.Annotations = map[string]string{model.AnnotationTLSMinimum: "1.0"}
	}
	moves := plan.Plan(in).Moves
	if len(moves) != 1 {
		t.Fatalf("%d moves, want 1", len(moves))
	}
	for name, m := range moves {
		if got := m.Target.BMC.TLSMinimum; got != "1.0" {
			t.Errorf("%s: the lowest version of TLS is %q, want 1.0", name, got)
		}
	}
}
