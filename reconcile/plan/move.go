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

// touches reports whether the move changes anything on the machine.
func (m *Move) touches() bool {
	for _, a := range m.Do {
		switch a.(type) {
		case proposal.BootOnce, proposal.DiskOnce, proposal.ClearBoot, proposal.SetPower:
			return true
		}
	}
	return false
}

// aside reports whether an action is one that nothing else of the server's life waits for.
func aside(a proposal.Action) bool {
	switch a.(type) {
	case proposal.SetIndicator, proposal.SetBootOrder:
		return true
	}
	return false
}

// A BMCMove is a reading of one BMC.
type BMCMove struct {
	Target model.BMCTarget
	Then   *model.BMCRecord
	// Known is who has to answer at an address that is new; nil = it does not matter.
	Known *model.BMCFacts
	// Endpoint is the device whose BMC takes or refuses Credential of the MAC prefix
	// database, which is only being tried; "" = none is.
	Endpoint, Credential string

	was knownBMC
}
