package proposal

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/reading"
)

// An Action is one repeatable effect on one server. The set is closed: Loop handles exactly these.
type Action interface {
	action()
	fmt.Stringer
}

type (
	// Inspect reads the power state from the BMC, and with Inventory all parts.
	Inspect struct{ Inventory bool }
	// Arm pins the image, renders the Ignition and makes the boot ticket, so that the server is served.
	Arm struct{ Boot Boot }
	// BootOnce makes the next boot, and only that, a network boot.
	BootOnce struct{ Method model.BootMethod }
	// DiskOnce makes the next boot, and only that, one from disk. If the BMC cannot do that, that is not a failure: a network
	// boot leads to the disk as well. A refusal is recorded with Firmware, the BMC's version.
	DiskOnce struct{ Firmware string }
	// ClearBoot takes back a boot override that does not end by itself.
	ClearBoot struct{}
	// SetIndicator has the indicator that identifies the machine in its rack show To.
	SetIndicator struct {
		To       string
		Firmware string // as in DiskOnce
	}
	// SetBootOrder has the firmware boot in the order that Wanted says, of a machine that is Off.
	SetBootOrder struct {
		Wanted   []model.BootOrder
		Known    []string // the order as it was last read
		Firmware string   // as in DiskOnce
		// Started is what was pending when the machine last started, nil = nothing was.
		Started *model.PendingBootOrder
	}
	// SetPower asks for a power change and does not wait for it.
	SetPower struct {
		Reset model.ResetKind
		// From is the power state that has to be read right before, or nothing is requested; "" = any.
		From model.Power
		// Gently forbids that a machine which knows no graceful shutdown is forced off.
		Gently bool
	}
)

func (Inspect) action()      {}
func (Arm) action()          {}
func (BootOnce) action()     {}
func (DiskOnce) action()     {}
func (ClearBoot) action()    {}
func (SetIndicator) action() {}
func (SetBootOrder) action() {}
func (SetPower) action()     {}

func (a Inspect) String() string {
	if a.Inventory {
		return "read inventory"
	}
	return "read power state"
}

func (a Arm) String() string          { return "arm boot ticket for " + a.Boot.Image }
func (a BootOnce) String() string     { return "set one-time network boot" }
func (a DiskOnce) String() string     { return "set one-time boot from disk" }
func (a ClearBoot) String() string    { return "clear boot override" }
func (a SetIndicator) String() string { return "set indicator " + a.To }
func (a SetBootOrder) String() string { return "set boot order" }
func (a SetPower) String() string     { return "ask for power " + string(a.Reset) }

// VariantContinuous is the variant of an override that holds until it is cleared.
const VariantContinuous = "continuous"

// Touches reports whether an action changes what the machine does.
func Touches(a Action) bool {
	switch a.(type) {
	case BootOnce, DiskOnce, ClearBoot, SetPower:
		return true
	}
	return false
}

// Aside reports whether nothing else of the server's life waits for an action.
func Aside(a Action) bool {
	switch a.(type) {
	case SetIndicator, SetBootOrder:
		return true
	}
	return false
}

// An Answer is the result of one action of a move, or of the reading of a BMC.
type Answer struct {
	At time.Time // when it came

	Facts  *model.ServerFacts // Inspect: the power state, and the inventory if that was asked for
	POST   bool               // Inspect: the machine's firmware was not through with its test
	Leased time.Time          // Inspect: when one of Move.Addresses had its lease renewed last

	Ticket    model.Ticket         // Arm: with its image pinned
	Payload   model.Sensitive      // Arm: what the ticket serves
	Variant   string               // BootOnce: the way of setting the override that the BMC kept
	Indicator model.Indicator      // SetIndicator: what is shown
	BootOrder model.ShownBootOrder // SetBootOrder: what is shown
	Reset     model.ResetResult    // SetPower: as far as the BMC got, even if that failed

	BMC *model.BMCFacts // the reading of a BMC

	Failed *Failure // nil = it was done
}

// A Failure is why something was not done, or is not known to have been.
type Failure struct {
	Kind   FailureKind
	Reason model.Reason // "" = none is known
	Text   string
}

// FailureKind is what is known of the effect of an action that failed.
type FailureKind int

// The kinds of failure.
const (
	FailureUnsure     FailureKind = iota // it may have had an effect
	FailureUndone                        // it certainly had none
	FailureUnrecorded                    // it was not begun, because that could not be recorded first
	FailureStopped                       // Ingot is being stopped, and nothing is known
)

// Error returns the text.
func (f *Failure) Error() string { return f.Text }

// By is the text of the failure, with the action that failed.
func (f *Failure) By(do Action) string { return fmt.Sprintf("%s: %s", do, f.Text) }

// OtherMachine reports whether it failed because another machine is there than the server's.
func (f *Failure) OtherMachine() bool {
	return f.Reason == model.ReasonIdentityMismatch || f.Reason == model.ReasonIdentityUnknown
}

// LastingReasons are the reasons of failures that will be no other the next time.
var LastingReasons = []model.Reason{
	model.ReasonUnsupported, model.ReasonBootOverrideNotKept, model.ReasonSettingNotKept, model.ReasonBootOptionUnknown,
}

// Lasting reports whether the action must not be tried again.
func (f *Failure) Lasting() bool { return slices.Contains(LastingReasons, f.Reason) }

// Settled is the result of a move, or of the reading of a BMC.
type Settled struct {
	Changes // they are saved all at once

	Outcome MoveOutcome
	Err     string // of an Outcome other than MoveDone
	Reading reading.State
	// News is set when there may be something to plan.
	News bool
	// PoweredOn is set when the machine is first seen On after a power-on, which frees its place.
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
	// DropServers are forgotten. The facts of DropBMCFacts would count for another BMC of that name.
	DropServers  []model.ServerName
	DropBMCFacts []model.BMCName
}
