package reconcile

import (
	"errors"
	"fmt"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
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

// Preparing is an error of Boots.Arm with reason ImagePreparing that knows how far what is to be
// booted has been prepared: done of total bytes of a stage, total 0 where it is not known.
type Preparing interface {
	Reasoner
	Preparing() (stage string, done, total uint64)
}

// preparedText says how far something has been prepared, by tenths, so that not every step is
// news.
func preparedText(p Preparing) string {
	stage, done, total := p.Preparing()
	if total == 0 {
		return stage
	}
	return fmt.Sprintf("%s, %d %% of %s", stage, min(done/max(total/10, 1), 10)*10, text.Bytes(total))
}

// errNotSaved is returned where an effect was not begun, for it could not be recorded
// first.
var errNotSaved = errors.New("not asked for, because it cannot be recorded before")

// failure is an error as a plan judges it, nil for none; stopped is set when it came of
// Ingot being stopped.
func failure(err error, stopped bool) *proposal.Failure {
	if err == nil {
		return nil
	}
	f := &proposal.Failure{Text: err.Error()}
	if r, ok := errors.AsType[Reasoner](err); ok {
		f.Reason = r.Reason()
	}
	if p, ok := errors.AsType[Preparing](err); ok {
		f.Text = preparedText(p)
	}
	undone, ok := errors.AsType[Undone](err)
	switch {
	case stopped:
		f.Kind = proposal.FailureStopped
	case errors.Is(err, errNotSaved):
		f.Kind = proposal.FailureUnrecorded
	case ok && undone.NotCarriedOut():
		f.Kind = proposal.FailureUndone
	}
	return f
}
