package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

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
	if why := s.fleet.unready(s.claim); why.Reason == "Ignored" {
		return s.rest(s.whySince(why.Reason, why.Message, why.Actor))
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
	case under && state == model.TicketIgnitionServed && t.IgnitionAt.IsZero():
		served := *t
		served.IgnitionAt = s.progress().IgnitionAt
		s.edit().Ticket = &served
		return s.stay()
	case under && booted != nil && booted.Ticket == t.ID,
		under && state == model.TicketIgnitionServed && !s.now().Before(t.IgnitionAt.Add(p.BootGrace)):
		return s.installed()
	case under && state == model.TicketIgnitionServed && s.power() == model.PowerOff:
		return s.diskBoot() // what it installs may have powered it off
	case under && state == model.TicketIgnitionServed:
		st := s.rest(s.why(WaitingForBoot, "waiting for the server to report that it has booted, "+s.lastStage()))
		return st.wakeBy(t.IgnitionAt.Add(p.BootGrace))
	case why.Reason != "":
		return s.rest(why)
	case !under, state == model.TicketArmed && t.Digest != bootDigest(boot):
		st, done := s.off(p.PowerOffGrace)
		if !done {
			return st
		}
		// What is asked for anew by now is part of this install.
		handle(s.edit(), askedReprovision, s.claim.Annotations[model.AnnotationReprovision])
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
		return s.rest(s.whySince("BootFailed", fmt.Sprintf("powered on %d times, and %s; %s",
			s.rec.Attempts+1, s.lastStage(), s.hint()), RackOperator))
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
	if s.rec.Reprovision == "" || s.rec.Installed == "" || s.fleet.reprovisions <= 0 || s.claim.Spec.Power == model.PowerOff {
		return
	}
	if _, why := s.claimBoot(); why.Reason != "" {
		return // what it runs is kept running meanwhile
	}
	s.fleet.reprovisions--
	s.edit().Installed = ""
	s.revoke()
}

// pendingReprovision says that the claim asks for something else than what the
// server runs, which is left alone.
func (s *server) pendingReprovision() Why {
	if s.rec.Reprovision != "" {
		return s.why("ReprovisionQueued", "waiting for other servers to be reprovisioned (guard.maxConcurrentReprovisions)")
	}
	if s.outdated() {
		return s.whySince(PendingReprovision, fmt.Sprintf("image, Secret or kernel arguments changed since it was installed; give ServerClaim %s a new value of annotation %s to have it reinstalled",
			s.rec.Claim, model.AnnotationReprovision), Tenant)
	}
	return Why{}
}

// PendingReprovision is the reason of a claim that asks for another boot than was installed.
const PendingReprovision = "PendingReprovision"

// outdated reports whether the claim asks for something else than was installed.
func (s *server) outdated() bool {
	boot, why := s.claimBoot()
	return s.rec.Installed != "" && why.Reason == "" && bootDigest(boot) != s.rec.Installed
}

// claimBoot is what the claim has its server boot, or why that is not known.
func (s *server) claimBoot() (Boot, Why) {
	boot, why := bootOfClaim(s.fleet.in.Desired, s.claim)
	boot.Ticket.Always = s.claim.Annotations[model.AnnotationBoot] == "always"
	why.Since = s.rec.Since
	return boot, why
}

// bootKeys are the keys of a claim's Secret that tell how its server boots.
var bootKeys = []string{"ignition", "format", "user-data", "meta-data", "vendor-data", "network-config", "ipxe-script"}

// bootOfClaim is what a claim has any server boot, by the Secret that it names in its
// own namespace (C14), or why that cannot be had.
func bootOfClaim(d *model.Desired, c *model.ServerClaim) (Boot, Why) {
	boot := Boot{Image: c.Spec.Image, KernelArguments: c.Annotations[model.AnnotationKernelArguments]}
	ref := c.Spec.IgnitionSecretRef
	if ref == nil {
		return boot, Why{}
	}
	name := model.Named[model.ObjectName](c.Namespace, ref.Name)
	secret := d.Secrets[name]
	if secret == nil {
		return boot, Why{Reason: "SecretMissing", Message: fmt.Sprintf("Secret %s is not in Git", name), Actor: Tenant}
	}
	for _, key := range []string{"ignition", "user-data", "ipxe-script"} {
		if !secret.Values[key].IsZero() {
			boot.Secret = secret.Values
			return boot, Why{}
		}
	}
	return boot, Why{Reason: "SecretMissing", Message: fmt.Sprintf("Secret %s has no key ignition, and neither user-data nor ipxe-script", name), Actor: Tenant}
}

// bootDigest identifies what is booted: the image as it was asked for, the Secret and
// the kernel arguments. The image's own digest is pinned in the ticket, so a tag that
// moves does not ask for anything new.
func bootDigest(b Boot) string {
	h := sha256.New()
	// What is neither Ignition nor there adds nothing: an install of before there was
	// anything else keeps its digest.
	h.Write([]byte(b.Image + "\x00" + b.Secret["ignition"].Reveal() + "\x00" + b.Secret["format"].Reveal()))
	for _, key := range bootKeys[2:] {
		digestMore(h, key, b.Secret[key].Reveal())
	}
	digestMore(h, "kernel-arguments", b.KernelArguments)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func digestMore(h hash.Hash, key, value string) {
	if value != "" {
		fmt.Fprintf(h, "\x00%s\x00%d\x00%s", key, len(value), value)
	}
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
	b, why := bootOfClaim(d, c)
	b.Ticket, b.Architecture = *t, t.Image.Architecture
	return b, why.Reason == "" && bootDigest(b) == t.Digest
}
