package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// Why says why an object is not where it should be: what it waits for, since
// when, and who has to act (law 6). The zero Why is "all is well".
type Why struct {
	Reason  string // one word in CamelCase
	Message string
	Since   time.Time
	Actor   Actor
}

// Actor is who has to act.
type Actor string

// The actors.
const (
	ActorNone    Actor = ""              // it is under way
	Tenant       Actor = "tenant"        // the author of the claim
	RackOperator Actor = "rack operator" // the person who runs the machines
)

// ApproveLine is what a commit message ends with to have something let happen.
func ApproveLine(token string) string { return "Ingot-Approve: " + token }

// Text is the message with who has to act.
func (w Why) Text() string {
	if w.Actor == ActorNone {
		return w.Message
	}
	return w.Message + toAct + string(w.Actor) + ")"
}

const toAct = " (to act: "

// HasActor reports whether the text of a Why names somebody who has to act.
func HasActor(text string) bool { return strings.Contains(text, toAct) }

// by names who has to act.
func (w Why) by(a Actor) Why {
	w.Actor = a
	return w
}

// why is a reason that holds since the server's state was entered.
func (s *server) why(reason, message string) Why {
	return s.whySince(reason, message, ActorNone)
}

func (s *server) whySince(reason, message string, a Actor) Why {
	return Why{Reason: reason, Message: message, Since: s.rec.Life.Since, Actor: a}
}

// failing says what went wrong with the last move.
func (s *server) failing() Why {
	return s.whySince(model.ReasonFailing, s.rec.Life.LastError+"; it is tried again", RackOperator)
}

// tellingReasons are the reasons of failed readings that say more than that there was no
// answer, and ask for something else to be done.
var tellingReasons = []model.Reason{
	model.ReasonAuthenticationFailed, model.ReasonCertificateChanged, model.ReasonHalfAnswer,
	model.ReasonIdentityMismatch, model.ReasonIdentityUnknown,
}

// ranWhenLastRead reports whether the server was On when it was last read, and why is
// nothing but that it cannot be read now: what runs on it goes on without its BMC.
func (s *server) ranWhenLastRead(why Why) bool {
	if s.power() != model.PowerOn || why.Reason == "" {
		return false
	}
	if s.blocked.Reason != "" {
		b := s.bmc
		ofBMC := b != nil && why == b.why && (why.Reason == b.rec.Reason || why.Reason == model.ReasonAuthenticationFailed)
		return why == s.blocked && (why.Reason == model.ReasonSystemUnreadable || ofBMC)
	}
	return s.reading.Failures > 0 && !s.reading.mistaken() && why == s.unreachable()
}

// unreachable says why the BMC gives no answer, or none that is of use.
func (s *server) unreachable() Why {
	why := Why{Reason: model.ReasonBMCUnreachable, Message: s.reading.Err, Since: s.reading.Since, Actor: RackOperator}
	if slices.Contains(tellingReasons, s.reading.Reason) {
		why.Reason = s.reading.Reason
	}
	return why
}

// discoveryFailure says that discovery was given up.
func (s *server) discoveryFailure() string {
	return fmt.Sprintf("no report after %d attempts, %s; %s; fix it and set annotation %s: %s#1 on Server %s",
		s.rec.Boot.Attempts, s.rec.Life.LastError, s.hint(), model.AnnotationOperation, model.OperationRetry, s.name)
}
