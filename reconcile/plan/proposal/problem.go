package proposal

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
)

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

// failedDiskWhy says why the probe did not bring the disk image onto the disk.
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
	why.Message = fmt.Sprintf("given up on installing %s, which failed at stage %s: %s; it is powered off: correct that in Git, or set "+
		"annotation %s: %s on Server %s once it is fixed", p.Image, p.Stage, p.Message, model.AnnotationOperation, NewRetry(s), s.Name)
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
