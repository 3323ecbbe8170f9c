package proposal

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
)

// An Answer is what came of one action of a move, or of the reading of a BMC.
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

// OtherMachine reports whether something failed because another machine is there than
// the server's.
func (f *Failure) OtherMachine() bool {
	return f.Reason == model.ReasonIdentityMismatch || f.Reason == model.ReasonIdentityUnknown
}

// LastingReasons are the reasons of failures that will be no other the next time.
var LastingReasons = []model.Reason{
	model.ReasonUnsupported, model.ReasonBootOverrideNotKept, model.ReasonSettingNotKept, model.ReasonNotFound,
	model.ReasonBootOptionUnknown,
}

// Lasting reports whether the action must not be tried again.
func (f *Failure) Lasting() bool { return slices.Contains(LastingReasons, f.Reason) }
