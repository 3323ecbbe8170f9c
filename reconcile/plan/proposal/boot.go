package proposal

import (
	"fmt"
	"time"

	"ingot/model"
)

// Boot is what a ticket is armed for.
type Boot struct {
	Ticket       model.Ticket // complete but for Image
	Image        string       // OCI reference
	Architecture string       // amd64, arm64
	// Secret is what the claim's Secret holds, by key. Not to be changed; nil = the claim names none.
	Secret          map[string]model.Sensitive
	SecretObject    *model.Secret // the object that Secret is of
	Namespace       string        // the claim's; "" = it is for no claim
	KernelArguments string        // added to those that every boot has

	// The next ones count for a disk image, which is found out when the ticket is armed.
	//
	// Hints are the values of model.AnnotationRootDevice, of the Server and of its claim, and
	// RootDevice is the claim's. Seed is how the configuration reaches the system, by ClaimSeed.
	Hints                 []string
	Seed                  model.SeedKind
	RootDevice, ClaimSeed string
	// ProbeImage is the OCI reference of the probe that writes the disk; "" = none is known.
	ProbeImage string
	// Previous is the disk that holds the claim's last install, or a part of it; nil = none does.
	Previous *model.RootDisk
	// MayOverwrite is set if the claim lets what is on another disk be overwritten.
	MayOverwrite bool
	// Doubtful is set if the last probe found that what it was sent of the image is something else.
	Doubtful bool
	// Firmware is what DHCP heard of the server's, nil = nothing.
	Firmware *model.BootFirmware
	// Disks are those that a probe reported last.
	Disks []model.ProbeDisk
	// SecureBoot is set if the server's firmware is known to check signatures.
	SecureBoot bool
	// Needs is what Image must have for the server to start it.
	Needs Needs
}

// Config is what configures the machine where that is not Ignition.
func (b *Boot) Config() model.TicketThing {
	switch {
	case !b.Secret["user-data"].IsZero():
		return model.ThingCloudInit
	case b.OwnScript() && b.Secret["ignition"].IsZero():
		return model.ThingScript
	}
	return ""
}

// OwnScript reports whether the claim brings an iPXE script in place of Ingot's.
func (b *Boot) OwnScript() bool { return !b.Secret["ipxe-script"].IsZero() }

// Needs is what an image must have for its server to start it, each as a clause that says why, or "".
type Needs struct {
	UKI    string // the firmware starts nothing but a UKI
	Kernel string // the firmware starts no UKI
}

// Unmet is why an image cannot be started, nil when nothing is known against it.
func (n Needs) Unmet(image *model.PinnedImage) *Failure {
	switch {
	case n.UKI != "" && image.UKI == nil:
		return &Failure{FailureUndone, model.ReasonBootMethodMismatch, fmt.Sprintf("image %s has no UKI layer, and %s", image.Ref, n.UKI)}
	case n.Kernel != "" && (image.Kernel == nil || image.Initrd == nil):
		return &Failure{FailureUndone, model.ReasonBootMethodMismatch, fmt.Sprintf("image %s has no kernel and initramfs layers but a UKI, and %s", image.Ref, n.Kernel)}
	}
	return nil
}

// Firmware is what DHCP learned of the server's firmware, nil if nothing.
func Firmware(s *Server) *model.BootFirmware {
	if p := s.Observed.Progress[s.Name]; p != nil {
		return p.Firmware
	}
	return nil
}

// usual is how long a boot usually takes from a stage to the next.
var usual = map[model.BootStage]time.Duration{
	model.StageArmed: 5 * time.Minute, model.StageDHCP: time.Minute, model.StageTFTP: time.Minute, model.StageHTTPBoot: time.Minute,
	model.StageScript: time.Minute, model.StageKernel: time.Minute, model.StageInitrd: 2 * time.Minute, model.StageIgnition: 2 * time.Minute,
}

// UsualStage is how long the present stage of a boot usually takes, and when it has taken three times that. The
// self-test after a power-on takes as long as it took this server the last time.
func UsualStage(s *Server) (length time.Duration, slow time.Time) {
	stage, from := model.StageArmed, time.Time{}
	if steps := s.Trace().Steps(); len(steps) > 0 {
		stage, from = steps[len(steps)-1].Stage, steps[len(steps)-1].At
	}
	if a := s.Record.Power.Asked; a != nil && a.At.After(from) {
		from = a.At
	}
	length = usual[stage]
	if stage == model.StageArmed {
		length = max(length, s.Record.Boot.BootsAfter)
	}
	return length, s.NotedAt(from).Add(3 * length)
}

// Earlier is the earlier of two times; a zero time does not count.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
