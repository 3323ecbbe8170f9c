// Package booting says what a claim has its server boot, and identifies it.
package booting

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// BootOfClaim is what a claim has any server boot, with its image as the claim says, by the Secret in its own namespace (C14), or why that is unknown.
func BootOfClaim(d *model.Desired, c *model.ServerClaim) (proposal.Boot, proposal.Why) {
	boot := proposal.Boot{
		Image: c.Spec.Image, KernelArguments: c.Annotations[model.AnnotationKernelArguments], Namespace: cmp.Or(c.Namespace, model.DefaultNamespace),
		SSHKeys: c.Annotations[model.AnnotationSSHKeys],
		ForDisk: proposal.ForDisk{RootDevice: c.Annotations[model.AnnotationRootDevice], ClaimSeed: c.Annotations[model.AnnotationSeed]},
	}
	boot.Seed = cmp.Or(model.SeedKind(boot.ClaimSeed), model.SeedAuto)
	secret, wrong := d.BootSecret(c)
	switch {
	case wrong != "":
		return boot, proposal.Why{Reason: model.ReasonSecretMissing, Actor: proposal.Tenant, Message: wrong}
	case secret != nil:
		boot.Secret, boot.SecretObject = secret.Values, secret
	}
	return boot, proposal.Why{}
}

// BootDigest identifies what is booted, except for the image's own digest, which the ticket pins (a tag that moves
// requests nothing new), and SSH keys (a changed key must not cause an install). Records hold it only under a key, see DigestKey.
func BootDigest(b proposal.Boot) string {
	secret, text := "", make([]byte, 0, 256)
	if b.SecretObject != nil {
		secret = b.SecretObject.BootSum()
	}
	for _, part := range []string{b.Image, secret, b.KernelArguments, b.RootDevice, b.ClaimSeed} {
		text = append(strconv.AppendInt(text, int64(len(part)), 10), ' ')
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// BootOf finds the boot of a ticket in the desired state, when its payload is lost; false if Git no longer holds it. pinned
// is what the name of the claim's image means for its server, see model.RecordClaim.
func BootOf(d *model.Desired, t *model.Ticket, pinned *model.CatalogImage, key model.DigestKey) (proposal.Boot, bool) {
	c := d.Claims[t.Claim]
	if t.Purpose != model.PurposeClaim || c == nil {
		return proposal.Boot{Ticket: *t, Image: t.Image.Ref, Architecture: t.Image.Architecture}, t.Purpose != model.PurposeClaim
	}
	b, why := BootOfClaim(d, c)
	if pinned != nil && pinned.Name == b.Image {
		b.Image, b.User = pinned.Image, pinned.User
	}
	b.Ticket, b.Architecture = *t, t.Image.Architecture
	if to := t.Target; to != nil {
		b.Hints, b.Previous, b.MayOverwrite = to.Hints, to.Previous, to.Overwrite != ""
	}
	return b, why.Reason == "" && SameBoot(key, t.Digest, t, &b)
}

// Digest is BootDigest under a key, for the namespace of the claim that is booted.
func Digest(key model.DigestKey, b *proposal.Boot) string {
	return key.For(b.Namespace).Sum(BootDigest(*b))
}

// SameBoot reports whether a recorded digest is of a boot. Under a lost key only the images can be compared: a machine
// is not reinstalled when a key changes.
func SameBoot(key model.DigestKey, recorded string, t *model.Ticket, b *proposal.Boot) bool {
	switch {
	case key.Made(recorded):
		return recorded == Digest(key, b)
	case t != nil && t.Purpose == model.PurposeClaim && t.Digest == recorded:
		return t.ImageName() == b.Image
	}
	return true
}

// ClaimBoot is what the claim has the server boot, or why that is not known.
func ClaimBoot(s *proposal.Server) (proposal.Boot, proposal.Why) {
	boot, why := BootOfClaim(s.Desired, s.Claim)
	if named, unknown := proposal.ImageOf(s, s.Claim); named != nil {
		boot.Image, boot.User = named.Image, named.User
	} else if why.Reason == "" {
		why = unknown
	}
	boot.Ticket.Always = s.ClaimAnnotation(model.AnnotationBoot) == "always"
	boot.Ticket.BootedBy = s.ClaimAnnotation(model.AnnotationBooted)
	boot.Hints = hints(s)
	boot.ProbeImage = s.Policy.DiscoveryImage
	boot.Firmware = proposal.Firmware(s)
	boot.Disks = presentDisks(s)
	p := s.Record.Boot.Problem
	boot.Doubtful = proposal.FailedDisk(p) && p.Reason == model.ReasonDigestMismatch
	overwrite := overwriteAsked(s)
	boot.MayOverwrite = overwrite != ""
	if d := s.Record.Install.RootDisk; d != nil && d.RootDevice == boot.RootDevice { // else the claim names another disk now
		boot.Previous = &d.RootDisk
	}
	boot.Ticket.Target = &model.InstallTarget{RootDevice: boot.RootDevice, Hints: boot.Hints, Previous: boot.Previous, Overwrite: overwrite}
	why.Since = s.Record.Life.Since
	return boot, why
}

// OtherTarget reports whether Git says something else of the disk than when a ticket with a disk image was armed.
func OtherTarget(s *proposal.Server, t *model.Ticket) bool {
	if t == nil || t.Target == nil || t.Claim != s.Record.Claim.Name || s.Claim == nil {
		return false
	}
	return t.Target.Overwrite != overwriteAsked(s) || !slices.Equal(t.Target.Hints, hints(s))
}

// Outdated reports whether the claim asks for something else than was installed.
func Outdated(s *proposal.Server) bool {
	if s.Claim == nil || !s.HasInstall() {
		return false
	}
	boot, why := ClaimBoot(s)
	return why.Reason == "" && !SameBoot(s.DigestKey, s.Record.Install.Digest, s.Ticket(), &boot)
}

// presentDisks are the disks that the server is known to have now, nil if others may be in it since its discovery.
func presentDisks(s *proposal.Server) []model.ProbeDisk {
	probe, d := s.Observed.Probes[s.Name], &s.Record.Disks
	if probe == nil {
		return nil
	}
	reported := probe.Data.Storage
	isReplaced := func(d model.Disk) bool { return d.ReplacedBy != "" }
	isNew := func(w model.DiskWipe) bool {
		return !slices.ContainsFunc(reported, func(d model.ProbeDisk) bool {
			return d.Serial == w.Serial && d.WWID == w.WWID && d.SizeBytes == w.SizeBytes
		})
	}
	if slices.ContainsFunc(d.Known, isReplaced) || slices.ContainsFunc(d.Wiped, isNew) || len(d.Wiped) > 0 && len(d.Wiped) != len(reported) {
		return nil
	}
	return reported
}

// hints describe the disk, one by the server's manifest and one by the claim: both have to match.
func hints(s *proposal.Server) (all []string) {
	for _, of := range []string{s.Annotation(model.AnnotationRootDevice), s.ClaimAnnotation(model.AnnotationRootDevice)} {
		if of != "" {
			all = append(all, of)
		}
	}
	return all
}

// overwriteAsked is the unused value of the claim's annotation that lets the disk be overwritten; "" = none.
func overwriteAsked(s *proposal.Server) string {
	if v := s.ClaimAnnotation(model.AnnotationOverwrite); !proposal.WasHandled(s.Record, proposal.AskedOverwrite, v) {
		return v
	}
	return ""
}
