package proposal

import "ingot/model"

// Concerns reports whether a problem is one of this boot.
func Concerns(p *model.BootProblem, b *Boot) bool {
	return p != nil && p.Digest == b.Ticket.Digest && p.Architecture == b.Architecture
}

// FailedBoot reports whether the problem is that the server did not boot, rather
// than that there is nothing that it could boot.
func FailedBoot(p *model.BootProblem) bool {
	return p != nil && (p.Reason == model.ReasonBootTimeout || FailedDisk(p))
}
