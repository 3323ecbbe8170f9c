package proposal

import "ingot/model"

// FailedDisk reports whether the problem is that the probe did not bring the disk image onto the
// disk.
func FailedDisk(p *model.BootProblem) bool { return p != nil && p.Stage != "" }
