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
	// Heals is set when the move does nothing but restore the power of a bound server: it needs no
	// approval.
	Heals bool
	// Routine is set for a look that nothing waits for: unless it finds something
	// new, there is nothing to plan after it.
	Routine bool

	was known
}
