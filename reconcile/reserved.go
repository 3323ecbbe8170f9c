package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"ingot/model"
)

// reserved serves a server's claim: it installs what the claim asks for once,
// and from then on keeps the power as the claim says, booting from disk.
func (s *server) reserved() Step {
	switch {
	case s.rec.Release != nil:
		return s.releasing()
	case s.claim == nil:
		return s.rest(s.withheld())
	case s.fleet.in.Policy.MirrorFirst && s.fleet.in.Mirrored[s.name] != s.rec.Claim:
		return s.rest(s.why("WaitingForStatusBranch", "waiting for the binding to stand on the status branch, for the store is not durable"))
	}
	s.startReprovision()
	if s.claim.Spec.Power == model.PowerOff {
		st, done := s.off(s.fleet.in.Policy.PowerOffGrace)
		if !done {
			return st
		}
		return s.restOrSave(Why{})
	}
	if s.rec.Installed == "" {
		return s.install()
	}
	return s.keepRunning()
}

// keepRunning heals the power of an installed server (law 1: from its disk).
func (s *server) keepRunning() Step {
	if s.power() == model.PowerOff {
		if t := s.rec.Ticket; t != nil && t.Always && t.MayBoot(s.progress()) {
			return s.netBoot(nil)
		}
		return s.diskBoot()
	}
	return s.restOrSave(s.pendingReprovision())
}

// restOrSave rests, unless the record was changed on the way and is to be saved.
func (s *server) restOrSave(why Why) Step {
	if s.fresh {
		return s.stay()
	}
	return s.rest(why)
}

// install brings the claimed image onto the server, once.
func (s *server) install() Step {
	p, t := s.fleet.in.Policy, s.rec.Ticket
	boot, why := s.claimBoot()
	under := s.opened(model.PurposeClaim) && t.Claim == s.rec.Claim
	state := t.State(s.progress())
	booted := s.fleet.in.Observed.BootStates[s.name]
	switch {
	case under && booted != nil && booted.Ticket == t.ID,
		under && state == model.TicketIgnitionServed && !s.now().Before(s.progress().IgnitionAt.Add(p.BootGrace)):
		return s.installed()
	case under && state == model.TicketIgnitionServed && s.power() == model.PowerOff:
		return s.diskBoot() // what it installs may have powered it off
	case under && state == model.TicketIgnitionServed:
		st := s.rest(s.why(WaitingForBoot, "waiting for the server to report that it has booted, "+s.lastStage()))
		return st.wakeBy(s.progress().IgnitionAt.Add(p.BootGrace))
	case why.Reason != "":
		return s.rest(why)
	case !under, state == model.TicketArmed && t.Digest != bootDigest(boot):
		st, done := s.off(p.PowerOffGrace)
		if !done {
			return st
		}
		return s.arm(model.PurposeClaim, boot)
	case s.power() == model.PowerOff:
		return s.netBoot(nil)
	}
	return s.awaitBoot()
}

// awaitBoot waits for a server that was powered on to ask for what its ticket
// offers, and tries again when it never does: nothing was served, so nothing
// that it holds is the claim's.
func (s *server) awaitBoot() Step {
	p, from := s.fleet.in.Policy, s.rec.Ticket.ArmedAt
	asked := s.rec.Asked
	if asked != nil && asked.At.After(from) {
		from = asked.At
	}
	why := s.why(WaitingForBoot, "waiting for the server to boot, "+s.lastStage())
	forcing := asked != nil && asked.Want == model.PowerOff && !s.reached()
	due := from.Add(p.BootTimeout)
	switch {
	case forcing:
		st, _ := s.off(0)
		return st
	case s.rec.Attempts+1 >= p.BootAttempts && !s.now().Before(due):
		return s.rest(s.whySince("BootFailed", fmt.Sprintf("powered on %d times, and %s; look at its console and boot order",
			s.rec.Attempts+1, s.lastStage()), RackOperator))
	case !s.now().Before(due):
		s.edit().Attempts++
		st, _ := s.off(0)
		return st
	}
	return s.rest(why).wakeBy(due)
}

// installed ends the ticket as Booted.
func (s *server) installed() Step {
	rec := s.edit()
	rec.Installed, rec.Reprovision, rec.Attempts = rec.Ticket.Digest, "", 0
	s.end(model.TicketBooted)
	if rec.BootRung == RungContinuous && !rec.Ticket.Always {
		return s.stay(ClearBoot{})
	}
	return s.stay()
}

// startReprovision lets a decided reprovision begin when its turn has come.
func (s *server) startReprovision() {
	if s.rec.Reprovision == "" || s.rec.Installed == "" || s.fleet.reprovisions <= 0 {
		return
	}
	s.fleet.reprovisions--
	s.edit().Installed = ""
	s.end(model.TicketSpent)
	t := *s.rec.Ticket
	t.Always = false
	s.rec.Ticket = &t
}

// pendingReprovision says that the claim asks for something else than what the
// server runs, which is left alone.
func (s *server) pendingReprovision() Why {
	if s.rec.Reprovision != "" {
		return s.why("ReprovisionQueued", "waiting for other servers to be reprovisioned (guard.maxConcurrentReprovisions)")
	}
	if s.outdated() {
		return s.whySince(PendingReprovision, fmt.Sprintf("image or Ignition changed since it was installed; give ServerClaim %s a new value of annotation %s to have it reinstalled",
			s.rec.Claim, model.AnnotationReprovision), Tenant)
	}
	return Why{}
}

// PendingReprovision is the reason of a claim whose image or Ignition changed.
const PendingReprovision = "PendingReprovision"

// outdated reports whether the claim asks for something else than was installed.
func (s *server) outdated() bool {
	boot, why := s.claimBoot()
	return s.rec.Installed != "" && why.Reason == "" && bootDigest(boot) != s.rec.Installed
}

// claimBoot is what the claim has its server boot, or why that is not known.
func (s *server) claimBoot() (Boot, Why) {
	ign, format, why := claimIgnition(s.fleet.in.Desired, s.claim)
	boot := Boot{Image: s.claim.Spec.Image, Ignition: ign, IgnitionFormat: format}
	boot.Ticket.Always = s.claim.Annotations[model.AnnotationBoot] == "always"
	why.Since = s.rec.Since
	return boot, why
}

// claimIgnition finds the Ignition that a claim names, in its own namespace
// (C14), or says why it cannot be had.
func claimIgnition(d *model.Desired, c *model.ServerClaim) (ign model.Sensitive, format string, why Why) {
	ref := c.Spec.IgnitionSecretRef
	if ref == nil {
		return model.Sensitive{}, "", Why{}
	}
	name := model.Named[model.ObjectName](c.Namespace, ref.Name)
	secret := d.Secrets[name]
	switch {
	case secret == nil:
		return ign, "", Why{Reason: "SecretMissing", Message: fmt.Sprintf("Secret %s is not in Git", name), Actor: Tenant}
	case secret.Values["ignition"].IsZero():
		return ign, "", Why{Reason: "SecretMissing", Message: fmt.Sprintf("Secret %s has no key ignition", name), Actor: Tenant}
	}
	return secret.Values["ignition"], secret.Values["format"].Reveal(), Why{}
}

// bootDigest identifies what is booted: the image as it was asked for, and the
// Ignition. The image's own digest is pinned in the ticket, so a tag that moves
// does not ask for anything new.
func bootDigest(b Boot) string {
	sum := sha256.Sum256([]byte(b.Image + "\x00" + b.Ignition.Reveal() + "\x00" + b.IgnitionFormat))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// withheld says why a server whose claim is gone is not released.
func (s *server) withheld() Why {
	switch {
	case s.fleet.held[s.name]:
		return s.whySince("GuardHeld", "the guard holds its release back until a commit approves it; see "+model.ReportRevision, RackOperator)
	case s.fleet.in.Desired.Incomplete:
		return s.whySince("SourceIncomplete", "its claim is not in Git, but a file that cannot be read may hold it; see "+model.ReportProblems, Tenant)
	}
	return s.whySince("ClaimQuarantined", "its claim stands in Git but cannot be used; see "+model.ReportProblems, Tenant)
}

// decideRelease takes the decision to release, which needs no BMC: the boot
// ticket is revoked at once, whatever else the server waits for.
func (s *server) decideRelease() (Step, bool) {
	switch {
	case s.rec.State != model.StateReserved || s.fleet.observeOnly.Reason != "" || s.rec.Restored:
		return Step{}, false
	case s.rec.Release != nil && s.claim != nil && s.rec.Installed != "":
		s.edit().Release = nil // the claim is back before anything was done
		return s.stay(), true
	case s.rec.Release != nil || !s.fleet.toRelease[s.name]:
		return Step{}, false
	}
	rec := s.edit()
	rec.Release = &model.Release{Revision: s.fleet.in.Desired.Revision, At: s.now(), Claim: rec.Claim}
	s.end(model.TicketSpent)
	if rec.Ticket != nil {
		t := *rec.Ticket
		t.Always = false
		rec.Ticket = &t
	}
	rec.NotBefore, rec.Failures, rec.LastError = time.Time{}, 0, ""
	return s.stay(), true
}

// releasing powers the server off and hands it on.
func (s *server) releasing() Step {
	st, done := s.off(s.fleet.in.Policy.PowerOffGrace)
	if !done {
		return st
	}
	rec := s.edit()
	rec.Installed, rec.Reprovision, rec.Attempts = "", "", 0
	if s.spec != nil && s.spec.Spec.ReclaimPolicy == model.ReclaimRetain {
		rec.Installed = "retained"
		return s.enter(model.StateReleased)
	}
	rec.Claim = ""
	return s.enter(model.StateCleanup)
}

// cleanup wipes the server's disks and waits for the outcome of each.
func (s *server) cleanup() Step {
	p, mode := s.fleet.in.Policy, s.cleanupMode()
	image := p.CleanupImage
	if image == "" {
		image = p.DiscoveryImage
	}
	report := s.fleet.in.Observed.Wipes[s.name]
	ours := report != nil && s.opened(model.PurposeCleanup) && report.Ticket == s.rec.Ticket.ID
	deadline := s.rec.Since.Add(p.CleanupTimeout[mode])
	switch {
	case mode == model.CleanupNone:
		return s.cleaned(nil)
	case ours && failedDisks(report.Disks) != "":
		s.edit().Wiped = report.Disks
		st := s.fail("CleanupFailed", "wipe failed on "+failedDisks(report.Disks)+"; mend it and set annotation "+
			model.AnnotationOperation+": "+model.OperationRetry+"#1 on Server "+string(s.name))
		st.Move.Do = []Action{SetPower{model.ResetGracefulOff}}
		s.rec.Asked = &model.PowerAsked{Reset: model.ResetGracefulOff, Want: model.PowerOff, At: s.now()}
		return st
	case ours:
		return s.cleaned(report.Disks)
	case image == "":
		return s.rest(s.why(NoDiscoveryImage, "neither cleanup.image nor discovery.image is set in Ingot's configuration").by(RackOperator))
	case !s.now().Before(deadline):
		return s.fail("CleanupFailed", "no wipe result within "+p.CleanupTimeout[mode].String()+", "+s.lastStage())
	case s.settling():
		return s.look(s.nextLook(), s.why(WaitingForPower, "waiting for the server to power on"))
	case s.opened(model.PurposeCleanup) && s.power() == model.PowerOn:
		return s.rest(s.why("Wiping", "waiting for the wipe of its disks, "+s.lastStage())).wakeBy(deadline)
	case s.opened(model.PurposeCleanup) && s.rec.Ticket.MayBoot(s.progress()):
		return s.netBoot(nil)
	case s.power() == model.PowerOn:
		st, _ := s.off(p.PowerOffGrace)
		return st
	}
	b := Boot{Image: image}
	b.Ticket.CleanupMode = mode
	return s.arm(model.PurposeCleanup, b)
}

// cleaned powers off, and then the server is Available again.
func (s *server) cleaned(disks []model.DiskWipe) Step {
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	rec := s.edit()
	rec.Wiped, rec.Release, rec.Attempts = disks, nil, 0
	s.end(model.TicketBooted)
	return s.enter(model.StateAvailable)
}

// cleanupMode is how the server's disks are wiped.
func (s *server) cleanupMode() string {
	if m := s.annotation(model.AnnotationCleanup); m != "" {
		return m
	}
	return s.fleet.in.Policy.CleanupMode
}

// failedDisks names the disks that were not wiped, by serial number; "" = none.
func failedDisks(disks []model.DiskWipe) string {
	names := ""
	for _, d := range disks {
		if d.Result != model.WipeFailed {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += fmt.Sprintf("%s (serial %s): %s", d.Name, d.Serial, d.Error)
	}
	return names
}

// BootOf finds what a ticket boots in the desired state, for when what was kept
// for it is lost. It is false when Git no longer holds what the ticket was armed
// for.
func BootOf(d *model.Desired, t *model.Ticket) (Boot, bool) {
	if t.Purpose != model.PurposeClaim {
		return Boot{Ticket: *t, Image: t.Image.Ref, Architecture: t.Image.Architecture}, true
	}
	c := d.Claims[t.Claim]
	if c == nil {
		return Boot{}, false
	}
	ign, format, why := claimIgnition(d, c)
	b := Boot{Ticket: *t, Image: c.Spec.Image, Architecture: t.Image.Architecture, Ignition: ign, IgnitionFormat: format}
	return b, why.Reason == "" && bootDigest(b) == t.Digest
}
