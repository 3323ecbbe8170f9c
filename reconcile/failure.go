package reconcile

import (
	"errors"

	"ingot/model"
	"ingot/reconcile/plan"
)

// Undone is an error of BMCs.Reset after which it is certain that the request was not
// carried out. After any other error nobody knows.
type Undone interface {
	error
	NotCarriedOut() bool
}

// Reasoner is an error of BMCs or Boots that knows its condition reason, such as
// AuthenticationFailed or NotFound.
type Reasoner interface {
	error
	Reason() model.Reason
}

// errNotSaved is returned where an effect was not begun, for it could not be recorded
// first.
var errNotSaved = errors.New("not asked for, because it cannot be recorded before")

// failure is an error as a plan judges it, nil for none; stopped is set when it came of
// Ingot being stopped.
func failure(err error, stopped bool) *plan.Failure {
	if err == nil {
		return nil
	}
	f := &plan.Failure{Text: err.Error()}
	if r, ok := errors.AsType[Reasoner](err); ok {
		f.Reason = r.Reason()
	}
	undone, ok := errors.AsType[Undone](err)
	switch {
	case stopped:
		f.Kind = plan.FailureStopped
	case errors.Is(err, errNotSaved):
		f.Kind = plan.FailureUnrecorded
	case ok && undone.NotCarriedOut():
		f.Kind = plan.FailureUndone
	}
	return f
}
