package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
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
		return s.keepAbsent()
	}
	if why := s.fleet.unready(s.claim); why.Reason == model.ReasonIgnored {
		return s.rest(s.whySince(why.Reason, why.Message, why.Actor))
	}
	if st, ok := s.wantPower(); ok {
		return st
	}
	if s.rec.WantPower == model.PowerOff {
		return s.keepOff()
	}
	if st, ok := s.startReprovision(); ok {
		return st
	}
	if installUnknown(s.rec) {
		return s.awaitInstall()
	}
	if s.rec.Installed == "" {
		return s.install()
	}
	return s.keepRunning()
}

// keepOff keeps the server off. What was armed is of no use meanwhile.
func (s *server) keepOff() Step {
	st, done := s.off(s.fleet.in.Policy.PowerOffGrace)
	if !done {
		return st
	}
	if s.opened(model.PurposeClaim) && s.rec.Ticket.State(s.progress()) != model.TicketIgnitionServed {
		s.end(model.TicketSpent)
	}
	return s.restOrSave(Why{})
}

// keepRunning heals the power of an installed server (law 1: from its disk).
func (s *server) keepRunning() Step {
	if s.unconfirmed() && s.confirmed() {
		return s.installed()
	}
	if s.power() == model.PowerOff {
		if t := s.rec.Ticket; t != nil && t.Always && t.MayBoot(s.progress()) {
			return heals(s.netBoot(nil))
		}
		return heals(s.diskBoot())
	}
	why := s.pendingReprovision()
	if s.unconfirmed() && why.Reason == "" {
		return s.restOrSave(s.unconfirmedWhy()).wakeBy(s.quietEnd())
	}
	return s.restOrSave(why)
}

// keepAbsent keeps a server as it was whose claim Git lacks, though no commit took it
// away.
func (s *server) keepAbsent() Step {
	if s.rec.WantPower == model.PowerOn && s.power() == model.PowerOff && (s.rec.Installed != "" || installUnknown(s.rec)) {
		return heals(s.diskBoot())
	}
	return s.rest(s.withheld())
}

// restOrSave rests, unless the record was changed on the way and is to be saved.
func (s *server) restOrSave(why Why) Step {
	if s.fresh {
		return s.stay()
	}
	return s.rest(why)
}

// startReprovision lets a decided reprovision begin when its turn has come: first
// the new boot is armed, and only once that is there is the server taken from what it
// runs.
func (s *server) startReprovision() (Step, bool) {
	if s.rec.Reprovision == "" || s.rec.Installed == "" && !installUnknown(s.rec) || s.fleet.reprovisions <= 0 {
		return Step{}, false
	}
	boot, why := s.claimBoot()
	switch {
	case why.Reason != "" || s.reprovisionTrouble().Reason != "":
		return Step{}, false // what it runs is kept running meanwhile
	case s.fresh:
		return s.stay(), true // the decision stands on record before anything is done
	}
	s.fleet.reprovisions--
	s.forgetThefts() // it may run what it was served after them
	if s.holds(model.PurposeClaim) && s.rec.Ticket.Claim == s.rec.Claim && s.rec.Ticket.Digest == s.digest(&boot) {
		rec := s.edit()
		rec.Installed, rec.Unconfirmed, rec.Doubt = "", time.Time{}, nil
		return Step{}, false
	}
	boot.Ticket.AwaitingOff = true
	return s.arm(model.PurposeClaim, boot), true
}

// reprovisionTrouble says why the server cannot be reprovisioned now.
func (s *server) reprovisionTrouble() Why {
	boot, why := s.claimBoot()
	if s.rec.Reprovision == "" || why.Reason != "" {
		return why
	}
	s.complete(model.PurposeClaim, &boot)
	why, _ = s.trouble(boot)
	return why
}

// pendingReprovision says that the claim asks for something else than what the
// server runs, which is left alone.
func (s *server) pendingReprovision() Why {
	if why := s.reprovisionTrouble(); s.rec.Reprovision != "" && why.Reason != "" {
		return why
	}
	if s.rec.Reprovision != "" {
		return s.why(model.ReasonReprovisionQueued, "waiting for other servers to be reprovisioned (guard.maxConcurrentReprovisions)")
	}
	if s.outdated() {
		return s.whySince(model.ReasonPendingReprovision, fmt.Sprintf("image, Secret or kernel arguments changed since it was installed; give ServerClaim %s a new value of annotation %s to have it reinstalled",
			s.rec.Claim, model.AnnotationReprovision), Tenant)
	}
	return Why{}
}

// outdated reports whether the claim asks for something else than was installed.
func (s *server) outdated() bool {
	boot, why := s.claimBoot()
	return s.rec.Installed != "" && why.Reason == "" && !s.runs(&boot)
}

// claimBoot is what the claim has its server boot, or why that is not known.
func (s *server) claimBoot() (Boot, Why) {
	boot, why := bootOfClaim(s.fleet.in.Desired, s.claim)
	boot.Ticket.Always = s.claim.Annotations[model.AnnotationBoot] == "always"
	boot.Ticket.BootedBy = s.bootedBy()
	why.Since = s.rec.Since
	return boot, why
}

// bootKeys are the keys of a claim's Secret that tell how its server boots.
var bootKeys = []string{"ignition", "format", "user-data", "meta-data", "vendor-data", "network-config", "ipxe-script"}

// bootOfClaim is what a claim has any server boot, by the Secret that it names in its
// own namespace (C14), or why that cannot be had.
func bootOfClaim(d *model.Desired, c *model.ServerClaim) (Boot, Why) {
	boot := Boot{Image: c.Spec.Image, KernelArguments: c.Annotations[model.AnnotationKernelArguments]}
	boot.namespace, _ = model.SplitName(c.ClaimName())
	ref := c.Spec.IgnitionSecretRef
	if ref == nil {
		return boot, Why{}
	}
	name := model.Named[model.ObjectName](c.Namespace, ref.Name)
	secret := d.Secrets[name]
	if secret == nil {
		return boot, Why{Reason: model.ReasonSecretMissing, Message: fmt.Sprintf("Secret %s is not in Git", name), Actor: Tenant}
	}
	if secret.Tenant != c.Tenant {
		return boot, Why{Reason: model.ReasonSecretMissing, Message: fmt.Sprintf("Secret %s is not the claim's own: it stands below another path of git.tenants", name), Actor: Tenant}
	}
	for _, key := range []string{"ignition", "user-data", "ipxe-script"} {
		if !secret.Values[key].IsZero() {
			boot.Secret, boot.secret = secret.Values, secret
			return boot, Why{}
		}
	}
	return boot, Why{Reason: model.ReasonSecretMissing, Message: fmt.Sprintf("Secret %s has no key ignition, and neither user-data nor ipxe-script", name), Actor: Tenant}
}

// bootDigest identifies what is booted: the image as it was asked for, the Secret and
// the kernel arguments. The image's own digest is pinned in the ticket, so a tag that
// moves does not ask for anything new. Records hold it under a key alone, see DigestKey.
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
func BootOf(d *model.Desired, t *model.Ticket, key model.DigestKey) (Boot, bool) {
	if t.Purpose != model.PurposeClaim {
		return Boot{Ticket: *t, Image: t.Image.Ref, Architecture: t.Image.Architecture}, true
	}
	c := d.Claims[t.Claim]
	if c == nil {
		return Boot{}, false
	}
	b, why := bootOfClaim(d, c)
	b.Ticket, b.Architecture = *t, t.Image.Architecture
	return b, why.Reason == "" && sameBoot(key, t.Digest, t, &b)
}
