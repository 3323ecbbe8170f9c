package proposal

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
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
	Until   time.Time // when to look again whether it still holds; zero = on a change
}

// Actor is who has to act.
type Actor = model.Actor

// The actors.
const (
	ActorNone    = model.ActorNone
	Tenant       = model.ActorTenant
	RackOperator = model.ActorRackOperator
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

// operatorsReasons are reasons that the author of the claim cannot correct.
var operatorsReasons = []model.Reason{
	model.ReasonArmFailed, model.ReasonRegistryUnreachable, model.ReasonUnauthorized,
	model.ReasonMultipath, model.ReasonDuplicateIdentity, model.ReasonDiskBusy, model.ReasonDiskWriteFailed, model.ReasonDiskLies,
	model.ReasonInstallStalled, model.ReasonInstallFailed,
}

// actorOn is who has to act on a reason for which the server cannot boot.
func actorOn(s *Server, reason model.Reason) Actor {
	chosen := reason == model.ReasonRootDeviceAmbiguous || reason == model.ReasonRootDeviceMissing
	byClaim := s.ClaimAnnotation(model.AnnotationRootDevice) != ""
	switch {
	case s.Record.Claim.Name == "" || slices.Contains(operatorsReasons, reason):
		return RackOperator
	case chosen && !byClaim && s.Annotation(model.AnnotationRootDevice) != "":
		return RackOperator // it is the Server that says which disk
	}
	return Tenant
}

// IsGivenUp reports whether all attempts to boot the server for its claim were made.
func IsGivenUp(s *Server) bool { return s.Record.Boot.Attempts >= s.Policy.BootAttempts }

// ProblemWhy says why the server does not boot what it should boot.
func ProblemWhy(s *Server, p *model.BootProblem) Why {
	why := Why{Reason: p.Reason, Since: p.Since, Actor: RackOperator}
	switch {
	case FailedDisk(p):
		return failedDiskWhy(s, p)
	case p.Reason == model.ReasonImagePreparing:
		why.Actor = ActorNone
		why.Message = fmt.Sprintf("preparing image %s: %s; it is not powered on before", p.Image, p.Message)
	case FailedBoot(p) && IsGivenUp(s):
		why.Reason = model.ReasonBootFailed
		why.Message = fmt.Sprintf("given up on booting %s: %s; it is left as it is, fix it and set annotation %s: %s#1 on Server %s",
			p.Image, p.Message, model.AnnotationOperation, model.OperationRetry, s.Name)
	case FailedBoot(p):
		why.Message = p.Message + "; it is tried again"
	default:
		why.Actor = actorOn(s, p.Reason)
		left := "it is not powered on for that"
		if s.HasInstall() {
			left = "it keeps running what it has"
		}
		why.Message = fmt.Sprintf("%s; %s, and it is tried again", p.Message, left)
	}
	return why
}

func failedDiskWhy(s *Server, p *model.BootProblem) Why {
	why := Why{Reason: p.Reason, Since: p.Since, Actor: actorOn(s, p.Reason)}
	if !IsGivenUp(s) {
		why.Message = fmt.Sprintf("installing %s failed at stage %s: %s; it is tried again, attempt %d of %d", p.Image, p.Stage, p.Message,
			s.Record.Boot.Attempts+1, s.Policy.BootAttempts)
		return why
	}
	if p.Reason == model.ReasonInstallStalled {
		why.Reason = model.ReasonInstallFailed
	}
	why.Message = fmt.Sprintf("given up on installing %s, which failed at stage %s: %s; it is powered off: correct that in Git, or set %s once "+
		"it is fixed", p.Image, p.Stage, p.Message, RetryText(s))
	return why
}

// MaxBootPause is the longest pause between the tickets of a server that does not boot.
const MaxBootPause = 6 * time.Hour

// Concerns reports whether a problem is one of this boot.
func Concerns(p *model.BootProblem, b *Boot) bool {
	return p != nil && p.Digest == b.Ticket.Digest && p.Architecture == b.Architecture
}

// FailedBoot reports whether the server did not boot, rather than that there is nothing to boot.
func FailedBoot(p *model.BootProblem) bool {
	return p != nil && (p.Reason == model.ReasonBootTimeout || FailedDisk(p))
}
