package booting

import (
	"cmp"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// ClaimBoot is what the claim has the server boot, or why that is not known.
func ClaimBoot(s *proposal.Server) (proposal.Boot, proposal.Why) {
	boot, why := BootOfClaim(s.Desired, s.Claim)
	boot.Ticket.Always = s.ClaimAnnotation(model.AnnotationBoot) == "always"
	boot.Ticket.BootedBy = s.ClaimAnnotation(model.AnnotationBooted)
	boot.Hints = hints(s.Manifest, boot.RootDevice)
	boot.ProbeImage = cmp.Or(s.Policy.DiscoveryImage, s.Policy.CleanupImage)
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

// OtherTarget reports whether the Server or the claim says something else of the disk than when
// a ticket with a disk image was armed: which one it is, or whether it may be overwritten.
func OtherTarget(s *proposal.Server, t *model.Ticket) bool {
	if t == nil || t.Target == nil || t.Claim != s.Record.Claim.Name || s.Claim == nil {
		return false
	}
	return t.Target.Overwrite != overwriteAsked(s) || !slices.Equal(t.Target.Hints, hints(s.Manifest, s.ClaimAnnotation(model.AnnotationRootDevice)))
}

// Outdated reports whether the claim asks for something else than was installed.
func Outdated(s *proposal.Server) bool {
	if s.Claim == nil || !s.HasInstall() {
		return false
	}
	boot, why := ClaimBoot(s)
	return why.Reason == "" && !SameBoot(s.DigestKey, s.Record.Install.Digest, s.Ticket(), &boot)
}

// presentDisks are the disks that the server is known to have now, nil if others may be in it since its discovery:
// then its probe reports what prevents an install.
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

// overwriteAsked is the unused value of the claim's annotation that lets the disk be overwritten; "" = none.
func overwriteAsked(s *proposal.Server) string {
	if v := s.ClaimAnnotation(model.AnnotationOverwrite); !proposal.WasHandled(s.Record, proposal.AskedOverwrite, v) {
		return v
	}
	return ""
}
