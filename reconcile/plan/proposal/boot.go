package proposal

import (
	"fmt"

	"ingot/model"
)

// Boot is what a ticket is armed for.
type Boot struct {
	Ticket       model.Ticket // complete but for Image
	Image        string       // OCI reference
	Architecture string       // amd64, arm64
	// Secret is what the claim's Secret holds, by key: Ignition, cloud-init's
	// documents or an iPXE script. Not to be changed; nil = the claim names none.
	Secret          map[string]model.Sensitive
	SecretObject    *model.Secret // the object that Secret is of
	Namespace       string        // the claim's; "" = it is for no claim
	KernelArguments string        // added to those that every boot has

	// What follows counts where Image is a disk image, which cannot be told by its name alone:
	// whoever arms the ticket finds out.
	//
	// Hints are the values of model.AnnotationRootDevice, of the Server and of its claim, and
	// rootDevice is the claim's. Seed is how the configuration reaches the system, seed is
	// what the claim says of that.
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

// Needs is what an image must have for its server to start it: each is "" for no such
// need, or a clause that says why.
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

// Firmware is what DHCP learned of the server's firmware when it last booted from the
// network, nil if nothing.
func Firmware(s *Server) *model.BootFirmware {
	if p := s.Observed.Progress[s.Name]; p != nil {
		return p.Firmware
	}
	return nil
}
