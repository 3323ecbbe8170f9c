// Package booting says what a claim has its server boot, and identifies it.
package booting

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// BootOfClaim is what a claim has any server boot, by the Secret in its own namespace (C14), or why that is unknown.
func BootOfClaim(d *model.Desired, c *model.ServerClaim) (proposal.Boot, proposal.Why) {
	boot := proposal.Boot{
		Image: c.Spec.Image, KernelArguments: c.Annotations[model.AnnotationKernelArguments], Namespace: cmp.Or(c.Namespace, model.DefaultNamespace),
		RootDevice: c.Annotations[model.AnnotationRootDevice], ClaimSeed: c.Annotations[model.AnnotationSeed],
	}
	boot.Seed = cmp.Or(model.SeedKind(boot.ClaimSeed), model.SeedAuto)
	ref := c.Spec.IgnitionSecretRef
	if ref == nil {
		return boot, proposal.Why{}
	}
	why := proposal.Why{Reason: model.ReasonSecretMissing, Actor: proposal.Tenant}
	name := model.Named[model.ObjectName](c.Namespace, ref.Name)
	switch secret := d.Secrets[name]; {
	case secret == nil:
		why.Message = d.SecretMissing(model.Identity{Kind: model.KindSecret, Namespace: boot.Namespace, Name: ref.Name})
	case secret.Tenant != c.Tenant:
		why.Message = fmt.Sprintf("Secret %s is not the claim's own: it stands below another path of git.tenants", name)
	case secret.Values["ignition"].IsZero() && secret.Values["user-data"].IsZero() && secret.Values["ipxe-script"].IsZero():
		why.Message = fmt.Sprintf("Secret %s has no key ignition, and neither user-data nor ipxe-script", name)
	default:
		boot.Secret, boot.SecretObject = secret.Values, secret
		return boot, proposal.Why{}
	}
	return boot, why
}

// BootDigest identifies what is booted, except for the image's own digest, which the ticket pins: a tag that moves
// requests nothing new. Records hold it only under a key, see DigestKey.
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

// BootOf finds the boot of a ticket in the desired state, when its payload is lost; false if Git no longer holds it.
func BootOf(d *model.Desired, t *model.Ticket, key model.DigestKey) (proposal.Boot, bool) {
	c := d.Claims[t.Claim]
	if t.Purpose != model.PurposeClaim || c == nil {
		return proposal.Boot{Ticket: *t, Image: t.Image.Ref, Architecture: t.Image.Architecture}, t.Purpose != model.PurposeClaim
	}
	b, why := BootOfClaim(d, c)
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

// SameBoot reports whether a recorded digest is of a boot. One under a lost key cannot be compared:
// then the images are, and the rest counts as the same, because a machine is not reinstalled when a
// key changes.
func SameBoot(key model.DigestKey, recorded string, t *model.Ticket, b *proposal.Boot) bool {
	switch {
	case key.Made(recorded):
		return recorded == Digest(key, b)
	case t != nil && t.Purpose == model.PurposeClaim && t.Digest == recorded:
		return t.ImageName() == b.Image
	}
	return true
}
