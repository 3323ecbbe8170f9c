package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// operatorsReasons are the reasons of images, and of installs, that whoever wrote the claim
// cannot correct.
var operatorsReasons = []model.Reason{
	model.ReasonArmFailed, model.ReasonRegistryUnreachable, model.ReasonUnauthorized,
	model.ReasonMultipath, model.ReasonDuplicateIdentity, model.ReasonDiskBusy, model.ReasonDiskWriteFailed, model.ReasonDiskLies,
	model.ReasonInstallStalled, model.ReasonInstallFailed,
}

// actorOn is who has to act on a reason for which the server cannot boot.
func (s *server) actorOn(reason model.Reason) Actor {
	chosen := reason == model.ReasonRootDeviceAmbiguous || reason == model.ReasonRootDeviceMissing
	byClaim := s.claim != nil && s.claim.Annotations[model.AnnotationRootDevice] != ""
	switch {
	case s.rec.Claim.Name == "" || slices.Contains(operatorsReasons, reason):
		return RackOperator
	case chosen && !byClaim && s.annotation(model.AnnotationRootDevice) != "":
		return RackOperator // it is the Server that says which disk
	}
	return Tenant
}

// armProblem is the problem of a boot that could not be armed.
func armProblem(old *model.BootProblem, name model.ServerName, do Arm, f *Failure, now time.Time, p Policy) *model.BootProblem {
	b := &do.Boot
	problem := model.BootProblem{
		Digest: b.Ticket.Digest, Architecture: b.Architecture, Image: b.Image, Reason: f.Reason, Message: f.Text, Since: now,
	}
	if f.Reason == "" {
		problem.Reason, problem.Message = model.ReasonArmFailed, f.by(do)
	}
	if concerns(old, b) {
		problem.Failures = old.Failures
		if old.Reason == problem.Reason {
			problem.Since = old.Since
		}
	}
	problem.Failures++
	problem.NotBefore = now.Add(Backoff(name, problem.Failures, p))
	return &problem
}

// concerns reports whether a problem is one of this boot.
func concerns(p *model.BootProblem, b *Boot) bool {
	return p != nil && p.Digest == b.Ticket.Digest && p.Architecture == b.Architecture
}

// FailedBoot reports whether the problem is that the server did not boot, rather
// than that there is nothing that it could boot.
func FailedBoot(p *model.BootProblem) bool {
	return p != nil && (p.Reason == model.ReasonBootTimeout || FailedDisk(p))
}

// trouble is why a boot cannot be had now, and when to look again.
func (s *server) trouble(b Boot) (why Why, until time.Time) {
	if why := s.duplicate(); why.Reason != "" {
		return why, time.Time{}
	}
	if why := s.unsupportedArchitecture(); why.Reason != "" {
		return why, time.Time{}
	}
	p := s.rec.Boot.Problem
	if concerns(p, &b) {
		until = s.fleet.pauseEnd(p.NotBefore, maxBootPause)
		if p.Reason == model.ReasonImagePreparing {
			until = s.reading.PreparedAfter
		}
		if s.now().Before(until) {
			return s.problemWhy(p), until
		}
	}
	return Why{}, time.Time{}
}

// unsupportedArchitecture says that servers of this architecture are not served.
func (s *server) unsupportedArchitecture() Why {
	allowed := s.fleet.in.Policy.Architectures
	if len(allowed) == 0 {
		return Why{}
	}
	arch := s.architecture()
	if slices.Contains(allowed, arch.Name) {
		return Why{}
	}
	return s.whySince(model.ReasonArchitectureNotServed, fmt.Sprintf("it is %s, and boot.architectures has only %s: add %s there and restart Ingot, or take the server's BMC out of Git",
		arch, strings.Join(allowed, ", "), arch.Name), RackOperator)
}

// problemWhy says why the server does not boot what it is to boot.
func (s *server) problemWhy(p *model.BootProblem) Why {
	why := Why{Reason: p.Reason, Since: p.Since, Actor: RackOperator}
	switch {
	case FailedDisk(p):
		return s.failedDiskWhy(p)
	case p.Reason == model.ReasonImagePreparing:
		return preparingWhy(p)
	case FailedBoot(p) && s.givenUp():
		why.Reason = model.ReasonBootFailed
		why.Message = fmt.Sprintf("given up on booting %s: %s; it is left as it is, fix it and set annotation %s: %s#1 on Server %s",
			p.Image, p.Message, model.AnnotationOperation, model.OperationRetry, s.name)
	case FailedBoot(p):
		why.Message = p.Message + "; it is tried again"
	default:
		why.Actor = s.actorOn(p.Reason)
		left := "it is not powered on for that"
		if s.rec.Install.Digest != "" {
			left = "it keeps running what it has"
		}
		why.Message = fmt.Sprintf("%s; %s, and it is tried again", p.Message, left)
	}
	return why
}

// bootTrouble is why the server cannot be armed for what it is to boot, "" when it is
// armed, or nothing is known against it.
func (s *server) bootTrouble() Why {
	p := s.rec.Boot.Problem
	switch {
	case p != nil && !FailedBoot(p):
		return s.problemWhy(p)
	case s.toArm():
		return s.unsupportedArchitecture()
	}
	return Why{}
}

// toArm reports whether the next thing that the server does is to be armed.
func (s *server) toArm() bool {
	if s.rec.Boot.Ticket.Open() {
		return false
	}
	return s.rec.Life.State == model.StateReserved && s.claim != nil && s.rec.Install.Digest == "" && s.claim.Spec.Power != model.PowerOff
}
