package booting

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// KeyedDigest is bootDigest under a key, for the namespace of the claim that is booted.
func KeyedDigest(key model.DigestKey, b *proposal.Boot) string {
	return key.For(b.Namespace).Sum(BootDigest(*b))
}

// SameBoot reports whether a digest on record is of a boot. One under a key that is lost
// cannot be compared: then the image says what it can, and the rest is taken to be the
// same, for a machine is not reinstalled because a key changed.
func SameBoot(key model.DigestKey, recorded string, t *model.Ticket, b *proposal.Boot) bool {
	switch {
	case key.Made(recorded):
		return recorded == KeyedDigest(key, b)
	case t != nil && t.Purpose == model.PurposeClaim && t.Digest == recorded:
		return t.ImageName() == b.Image
	}
	return true
}
