package window

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Key identifies a step, whenever it was requested.
type Key struct {
	action string
	server model.ServerName
	claim  model.ClaimName
	value  string
}

// KeyOf returns what identifies a step.
func KeyOf(d model.Disruption) Key { return Key{d.Action, d.Server, d.Claim, d.Value} }

// windowKind is what has a limit of its own.
type windowKind int

const (
	takesServer windowKind = iota // its user loses the server, or what is on it
	takesPower                    // its user loses its power for a while
	windowKinds
)

func kindOf(d model.Disruption) windowKind {
	switch d.Action {
	case proposal.StepPowerOff, proposal.StepOperation, proposal.StepDiscover:
		return takesPower
	}
	return takesServer
}

// countKey is what counts once within the window: that a server is released and then
// wiped is one disruption.
type countKey struct {
	kind   windowKind
	server model.ServerName
	claim  model.ClaimName
}

func countOf(d model.Disruption) countKey { return countKey{kindOf(d), d.Server, d.Claim} }

// namespaceOf is the namespace whose limit a step counts for.
func namespaceOf(d model.Disruption) string {
	if d.Claim == "" {
		return ""
	}
	namespace, _ := model.SplitName(d.Claim)
	return namespace
}
