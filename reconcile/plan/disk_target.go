package plan

import (
	"cmp"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// target fills in what of a boot is about the disk that a disk image is written to.
func (s *server) target(b *proposal.Boot) {
	p := &s.fleet.in.Policy
	b.Hints = hints(s.spec, b.RootDevice)
	b.ProbeImage = cmp.Or(p.DiscoveryImage, p.CleanupImage)
	b.Firmware = s.firmware()
	b.Disks = s.presentDisks()
	b.Doubtful = proposal.FailedDisk(s.rec.Boot.Problem) && s.rec.Boot.Problem.Reason == model.ReasonDigestMismatch
	overwrite := s.overwriteAsked()
	b.Previous, b.MayOverwrite = s.previousDisk(b), overwrite != ""
	b.Ticket.Target = &model.InstallTarget{RootDevice: b.RootDevice, Hints: b.Hints, Previous: b.Previous, Overwrite: overwrite}
}

// presentDisks are the disks that the server is known to have now, as its discovery reported
// them; nil if others may be in it since: then its probe says what speaks against an install.
func (s *server) presentDisks() []model.ProbeDisk {
	probe := s.fleet.in.Observed.Probes[s.name]
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
	if slices.ContainsFunc(s.rec.Disks.Known, isReplaced) || slices.ContainsFunc(s.rec.Disks.Wiped, isNew) || len(s.rec.Disks.Wiped) > 0 && len(s.rec.Disks.Wiped) != len(reported) {
		return nil
	}
	return reported
}

// hints are what the server's manifest and the claim say of the disk: both have to hold.
func hints(server *model.Server, rootDevice string) []string {
	var all []string
	if server != nil && server.Annotations[model.AnnotationRootDevice] != "" {
		all = append(all, server.Annotations[model.AnnotationRootDevice])
	}
	if rootDevice != "" {
		all = append(all, rootDevice)
	}
	return all
}

// overwriteAsked is the value of the claim's annotation that lets what is on the disk be
// overwritten, "" if there is none, or it has been made use of.
func (s *server) overwriteAsked() string {
	if s.claim == nil {
		return ""
	}
	v := s.claim.Annotations[model.AnnotationOverwrite]
	if v == "" || proposal.WasHandled(s.rec, proposal.AskedOverwrite, v) {
		return ""
	}
	return v
}

// previousDisk is the disk that holds what was installed for the claim, or a part of it: the
// same is taken again, with what is on it, unless the claim says now which one it is to be.
func (s *server) previousDisk(b *proposal.Boot) *model.RootDisk {
	d := s.rec.Install.RootDisk
	if d == nil || d.RootDevice != b.RootDevice {
		return nil
	}
	return &d.RootDisk
}
