package proposal

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"ingot/model"
)

// Why says why an object is not where it should be (law 9). It is zero if nothing is wrong.
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

// Refuse is the command that takes a revision back whose steps wait for an approval.
func Refuse(r model.Revision) string { return fmt.Sprintf("git revert %.12s", r.Commit()) }

// Text is the message with who has to act.
func (w Why) Text() string {
	if w.Actor == ActorNone {
		return w.Message
	}
	return w.Message + toAct + string(w.Actor) + ")"
}

const toAct = " (to act: "

// HasActor reports whether the text of a Why names an Actor.
func HasActor(text string) bool { return strings.Contains(text, toAct) }

// By names who has to act.
func (w Why) By(a Actor) Why {
	w.Actor = a
	return w
}

// Some is a why where there is one.
func Some(why Why) *Why {
	if why.Reason == "" {
		return nil
	}
	return new(why) // a copy, so that only this takes memory
}

// TokenLength is of the tokens that people approve by.
const TokenLength = 26

// Token makes a token of n letters and digits for what, from a seed that cannot be guessed.
func Token(seed, what string, n int) string {
	sum := sha256.Sum256([]byte(seed + "\x00" + what))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:n])
}
