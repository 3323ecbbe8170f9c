package plan

import (
	"cmp"

	"ingot/model"
)

// target fills in what of a boot is about the disk that a disk image is written to.
func (s *server) target(b *Boot) {
	p := &s.fleet.in.Policy
	b.Hints = b.hints(s.spec)
	b.ProbeImage = cmp.Or(p.DiscoveryImage, p.CleanupImage)
	b.Firmware = s.firmware()
	if probe := s.fleet.in.Observed.Probes[s.name]; probe != nil {
		b.Disks = probe.Data.Storage
	}
	overwrite := s.overwriteAsked()
	b.Previous, b.Overwrite = s.previousDisk(b), overwrite != ""
	b.MayOverwrite = b.Overwrite || s.rec.Blank
	b.Ticket.Target = &model.InstallTarget{
		RootDevice: b.rootDevice, Previous: b.Previous, MayOverwrite: b.MayOverwrite, Overwrite: overwrite,
	}
}

// hints are what the server's manifest and the claim say of the disk: both have to hold.
func (b *Boot) hints(server *model.Server) []string {
	var all []string
	if server != nil && server.Annotations[model.AnnotationRootDevice] != "" {
		all = append(all, server.Annotations[model.AnnotationRootDevice])
	}
	if b.rootDevice != "" {
		all = append(all, b.rootDevice)
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
	if v == "" || WasHandled(s.rec, AskedOverwrite, v) {
		return ""
	}
	return v
}

// previousDisk is the disk that holds what was installed for the claim, or a part of it: the
// same is taken again, with what is on it, unless the claim says now which one it is to be.
func (s *server) previousDisk(b *Boot) *model.RootDisk {
	d := s.rec.RootDisk
	if d == nil || d.RootDevice != b.rootDevice {
		return nil
	}
	return &d.RootDisk
}
