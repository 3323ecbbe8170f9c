package plan

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// A Move is what to do with one server now.
type Move struct {
	Target model.SystemTarget

	Do   []proposal.Action   // in order, stopping at the first that fails
	Then *model.ServerRecord // saved once all of Do succeeded
	// Heals is set when the move does nothing but bring what is bound back to the power
	// that it had: that waits for nobody.
	Heals bool
	// Routine is set for a look that nothing waits for: unless it finds something
	// new, there is nothing to plan after it.
	Routine bool

	was known
}
