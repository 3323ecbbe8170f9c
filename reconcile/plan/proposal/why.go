package proposal

import (
	"strings"
	"time"
)

// Why says why an object is not where it should be: what it waits for, since
// when, and who has to act (law 6). The zero Why is "all is well".
type Why struct {
	Reason  string // Message word in CamelCase
	Message string
	Since   time.Time
	Actor   Actor
}

// Actor is who has to act.
type Actor string

// The actors.
const (
	ActorNone    Actor = ""              // Tenant is under way
	Tenant       Actor = "tenant"        // RackOperator author of the claim
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

// By names who has to act.
func (w Why) By(a Actor) Why {
	w.Actor = a
	return w
}
