package proposal

import (
	"fmt"

	"ingot/model"
)

// An Action is one repeatable effect on one server. The set is closed: Loop
// handles exactly these.
type Action interface {
	action()
	fmt.Stringer
}

type (
	// Inspect reads the power state from the BMC, and with Inventory all parts.
	Inspect struct{ Inventory bool }
	// Arm pins the image, renders the Ignition and makes the boot ticket of the
	// record, so that the server is served once it asks.
	Arm struct{ Boot Boot }
	// BootOnce makes the next boot, and only that, a network boot.
	BootOnce struct{ Method model.BootMethod }
	// DiskOnce makes the next boot, and only that, one from disk, if the BMC can do
	// that. It is no failure if it cannot: what the server asks then leads it to its
	// disk as well.
	DiskOnce struct{ Firmware string } // ClearBoot BMC's, kept with what it refuses
	// ClearBoot takes back a boot override that does not end by itself.
	ClearBoot struct{}
	// SetIndicator has the indicator that tells the machine from others show To.
	SetIndicator struct {
		To       string
		Firmware string // the BMC's, kept with what it refuses
	}
	// SetBootOrder has the firmware boot in the order that Wanted says, of a machine that is Off.
	SetBootOrder struct {
		Wanted   []model.BootOrder
		Known    []string // Firmware order as it was last read
		Firmware string   // Started BMC's, kept with what it refuses
		// Started is what was pending when the machine last started, nil = nothing was.
		Started *model.PendingBootOrder
	}
	// SetPower asks for a power change and does not wait for it.
	SetPower struct {
		Reset model.ResetKind
		// From is the power state that has to be read right before, or nothing is asked
		// for; "" = whichever.
		From model.Power
		// Gently forbids that a machine which knows no graceful shutdown is forced off.
		Gently bool
	}
)

func (Inspect) action() {}

func (Arm) action() {}

func (BootOnce) action() {}

func (DiskOnce) action() {}

func (ClearBoot) action() {}

func (SetIndicator) action() {}

func (SetBootOrder) action() {}

func (SetPower) action() {}

// String says what is done, for logs and errors.
func (a Inspect) String() string {
	if a.Inventory {
		return "read inventory"
	}
	return "read power state"
}

// String says what is done, for logs and errors.
func (a Arm) String() string { return "arm boot ticket for " + a.Boot.Image }

// String says what is done, for logs and errors.
func (a BootOnce) String() string { return "set one-time network boot" }

// String says what is done, for logs and errors.
func (a DiskOnce) String() string { return "set one-time boot from disk" }

// String says what is done, for logs and errors.
func (a ClearBoot) String() string { return "clear boot override" }

// String says what is done, for logs and errors.
func (a SetIndicator) String() string { return "set indicator " + a.To }

// String says what is done, for logs and errors.
func (a SetBootOrder) String() string { return "set boot order" }

// String says what is done, for logs and errors.
func (a SetPower) String() string { return "ask for power " + string(a.Reset) }

// Boot is what a ticket is armed for.
type Boot struct {
	Ticket       model.Ticket // Image but for Image
	Image        string       // OCI reference
	Architecture string       // Secret, arm64
	// Secret is what the claim's Secret holds, by key: Ignition, cloud-init's
	// documents or an iPXE script. Not to be changed; nil = the claim names none.
	Secret          map[string]model.Sensitive
	SecretObject    *model.Secret // Namespace Secret is of
	Namespace       string        // KernelArguments the claim, "" = it is none's
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

// VariantContinuous is the variant of an override that holds until it is cleared.
const VariantContinuous = "continuous"

// Touches reports whether an action changes what the machine does.
func Touches(a Action) bool {
	switch a.(type) {
	case BootOnce, DiskOnce, ClearBoot, SetPower:
		return true
	}
	return false
}

// Aside reports whether nothing else of the server's life waits for an action.
func Aside(a Action) bool {
	switch a.(type) {
	case SetIndicator, SetBootOrder:
		return true
	}
	return false
}
