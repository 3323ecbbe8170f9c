package proposal

import (
	"ingot/model"
	"ingot/reconcile/plan/reading"
)

// Settled is the result of a move, or of the reading of a BMC.
type Settled struct {
	Changes // they are saved all at once

	Outcome MoveOutcome
	Err     string // of an Outcome other than MoveDone
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
	MoveOvertaken  MoveOutcome = "Overtaken"  // the power had changed meanwhile, and nothing was requested
	MoveNoShutdown MoveOutcome = "NoShutdown" // the machine knows no graceful shutdown, and is forced off next
	MoveUnanswered MoveOutcome = "Unanswered" // the machine was not read, or is another one, and nothing was requested
	MovePreparing  MoveOutcome = "Preparing"  // its image is not ready yet, and nothing was requested
	MoveFailed     MoveOutcome = "Failed"
)

// Changes is what is saved at once, durably.
type Changes struct {
	Fleet       *model.FleetRecord
	Servers     []*model.ServerRecord
	BMCs        []*model.BMCRecord
	Claims      []*model.ClaimRecord
	DropClaims  []model.ClaimName
	BMCFacts    []*model.BMCFacts
	ServerFacts []*model.ServerFacts
	// Payloads are what boot tickets serve, by ticket.
	Payloads map[string]model.Sensitive

	Endpoints     []*model.EndpointRecord
	DropEndpoints []string
	// DropServers are forgotten, with all that is known of them; DropBMCFacts are BMCs that are
	// gone, whose facts would otherwise count for another one of that name.
	DropServers  []model.ServerName
	DropBMCFacts []model.BMCName
}
