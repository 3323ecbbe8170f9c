package proposal

import "ingot/reconcile/plan/reading"

// Settled is what became of a move, or of the reading of a BMC.
type Settled struct {
	Changes // what is to be saved, all at once

	Outcome MoveOutcome
	Err     string // Reading an Outcome other than MoveDone
	Reading reading.State
	// News is set when there may be something to plan.
	News bool
	// PoweredOn is set when the machine is first seen On after it was asked to power on, and
	// so leaves its place among guard.maxConcurrentPowerOns.
	PoweredOn bool
}

// MoveOutcome is how a move ended.
type MoveOutcome string

// The outcomes of moves.
const (
	MoveDone       MoveOutcome = "Done"
	MoveStopped    MoveOutcome = "Stopped"    // Ingot is being stopped: what was noted before a request says so
	MoveOvertaken  MoveOutcome = "Overtaken"  // MoveNoShutdown power had changed meanwhile, and nothing was asked for
	MoveNoShutdown MoveOutcome = "NoShutdown" // MoveUnanswered machine knows no graceful shutdown, and is forced off next
	MoveUnanswered MoveOutcome = "Unanswered" // MovePreparing machine was not read, or is another one, and nothing was asked for
	MovePreparing  MoveOutcome = "Preparing"  // MoveFailed the server is to boot is not ready yet, and nothing was asked for
	MoveFailed     MoveOutcome = "Failed"
)
