package reconcile

import (
	"slices"
	"testing"
	"time"

	"ingot/model"
)

// TestABMCThatLeavesGitIsLoggedOutOf: once, and no other; one that is there is not.
func TestABMCThatLeavesGitIsLoggedOutOf(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		gone := func() []model.BMCName {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.forgotten)
		}
		if got := gone(); len(got) > 0 {
			t.Errorf("%v were logged out of, and all are in Git", got)
		}
		w.commit(func(d *model.Desired) { delete(d.BMCs, "bmc00") })
		pass(time.Hour)
		if got := gone(); !slices.Equal(got, []model.BMCName{"bmc00"}) {
			t.Errorf("%v were logged out of, want bmc00 once", got)
		}
	})
}
