package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// operatorsReasons are the reasons of images, and of installs, that whoever wrote the claim
// cannot correct.
var operatorsReasons = []model.Reason{
	model.ReasonArmFailed, model.ReasonRegistryUnreachable, model.ReasonUnauthorized,
	model.ReasonMultipath, model.ReasonDuplicateIdentity, model.ReasonDiskBusy, model.ReasonDiskWriteFailed, model.ReasonDiskLies,
	model.ReasonInstallStalled, model.ReasonInstallFailed,
}

// actorOn is who has to act on a reason for which the server cannot boot.
func (s *server) actorOn(reason model.Reason) proposal.Actor {
	chosen := reason == model.ReasonRootDeviceAmbiguous || reason == model.ReasonRootDeviceMissing
	byClaim := s.claim != nil && s.claim.Annotations[model.AnnotationRootDevice] != ""
	switch {
	case s.rec.Claim.Name == "" || slices.Contains(operatorsReasons, reason):
		return proposal.RackOperator
	case chosen && !byClaim && s.annotation(model.AnnotationRootDevice) != "":
		return proposal.RackOperator // it is the Server that says which disk
	}
	return proposal.Tenant
}

// armProblem is the problem of a boot that could not be armed.
func armProblem(old *model.BootProblem, name model.ServerName, do proposal.Arm, f *proposal.Failure, now time.Time, p proposal.Policy) *model.BootProblem {
	b := &do.Boot
	problem := model.BootProblem{
		Digest: b.Ticket.Digest, Architecture: b.Architecture, Image: b.Image, Reason: f.Reason, Message: f.Text, Since: now,
	}
	if f.Reason == "" {
		problem.Reason, problem.Message = model.ReasonArmFailed, f.By(do)
	}
	if proposal.Concerns(old, b) {
		problem.Failures = old.Failures
		if old.Reason == problem.Reason {
			problem.Since = old.Since
		}
	}
	problem.Failures++
	problem.NotBefore = now.Add(proposal.Backoff(name, problem.Failures, p))
	return &problem
}

// trouble is why a boot cannot be had now, and when to look again.
func (s *server) trouble(b proposal.Boot) (why proposal.Why, until time.Time) {
	if why := s.duplicate(); why.Reason != "" {
		return why, time.Time{}
	}
	if why := s.unsupportedArchitecture(); why.Reason != "" {
		return why, time.Time{}
	}
	p := s.rec.Boot.Problem
	if proposal.Concerns(p, &b) {
		until = s.fleet.pauseEnd(p.NotBefore, proposal.MaxBootPause)
		if p.Reason == model.ReasonImagePreparing {
			until = s.reading.PreparedAfter
		}
		if s.now().Before(until) {
			return s.problemWhy(p), until
		}
	}
	return proposal.Why{}, time.Time{}
}

// unsupportedArchitecture says that servers of this architecture are not served.
func (s *server) unsupportedArchitecture() proposal.Why {
	allowed := s.fleet.in.Policy.Architectures
	if len(allowed) == 0 {
		return proposal.Why{}
	}
	arch := s.architecture()
	if slices.Contains(allowed, arch.Name) {
		return proposal.Why{}
	}
	return s.whySince(model.ReasonArchitectureNotServed, fmt.Sprintf("it is %s, and boot.architectures has only %s: add %s there and restart Ingot, or take the server's BMC out of Git",
		arch, strings.Join(allowed, ", "), arch.Name), proposal.RackOperator)
}

// problemWhy says why the server does not boot what it is to boot.
func (s *server) problemWhy(p *model.BootProblem) proposal.Why {
	why := proposal.Why{Reason: p.Reason, Since: p.Since, Actor: proposal.RackOperator}
	switch {
	case proposal.FailedDisk(p):
		return s.failedDiskWhy(p)
	case p.Reason == model.ReasonImagePreparing:
		return preparingWhy(p)
	case proposal.FailedBoot(p) && s.givenUp():
		why.Reason = model.ReasonBootFailed
		why.Message = fmt.Sprintf("given up on booting %s: %s; it is left as it is, fix it and set annotation %s: %s#1 on Server %s",
			p.Image, p.Message, model.AnnotationOperation, model.OperationRetry, s.name)
	case proposal.FailedBoot(p):
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
func (s *server) bootTrouble() proposal.Why {
	p := s.rec.Boot.Problem
	switch {
	case p != nil && !proposal.FailedBoot(p):
		return s.problemWhy(p)
	case s.toArm():
		return s.unsupportedArchitecture()
	}
	return proposal.Why{}
}

// toArm reports whether the next thing that the server does is to be armed.
func (s *server) toArm() bool {
	if s.rec.Boot.Ticket.Open() {
		return false
	}
	return s.rec.Life.State == model.StateReserved && s.claim != nil && s.rec.Install.Digest == "" && s.claim.Spec.Power != model.PowerOff
}
