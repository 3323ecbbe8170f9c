package proposal

import (
	"fmt"

	"ingot/model"
)

// An Action is one repeatable effect on one server. The set is closed: Loop handles exactly these.
type Action interface {
	action()
	fmt.Stringer
}

type (
	// Inspect reads the power state from the BMC, and with Inventory all parts.
	Inspect struct{ Inventory bool }
	// Arm pins the image, renders the Ignition and makes the boot ticket, so that the server is served.
	Arm struct{ Boot Boot }
	// BootOnce makes the next boot, and only that, a network boot.
	BootOnce struct{ Method model.BootMethod }
	// DiskOnce makes the next boot, and only that, one from disk. If the BMC cannot do that, that is not a failure: a network
	// boot leads to the disk as well. A refusal is recorded with Firmware, the BMC's version.
	DiskOnce struct{ Firmware string }
	// ClearBoot takes back a boot override that does not end by itself.
	ClearBoot struct{}
	// SetIndicator has the indicator that identifies the machine in its rack show To.
	SetIndicator struct {
		To       string
		Firmware string // as in DiskOnce
	}
	// SetBootOrder has the firmware boot in the order that Wanted says, of a machine that is Off.
	SetBootOrder struct {
		Wanted   []model.BootOrder
		Known    []string // the order as it was last read
		Firmware string   // as in DiskOnce
		// Started is what was pending when the machine last started, nil = nothing was.
		Started *model.PendingBootOrder
	}
	// SetPower asks for a power change and does not wait for it.
	SetPower struct {
		Reset model.ResetKind
		// From is the power state that has to be read right before, or nothing is requested; "" = any.
		From model.Power
		// Gently forbids that a machine which knows no graceful shutdown is forced off.
		Gently bool
	}
)

func (Inspect) action()      {}
func (Arm) action()          {}
func (BootOnce) action()     {}
func (DiskOnce) action()     {}
func (ClearBoot) action()    {}
func (SetIndicator) action() {}
func (SetBootOrder) action() {}
func (SetPower) action()     {}

func (a Inspect) String() string {
	if a.Inventory {
		return "read inventory"
	}
	return "read power state"
}

func (a Arm) String() string          { return "arm boot ticket for " + a.Boot.Image }
func (a BootOnce) String() string     { return "set one-time network boot" }
func (a DiskOnce) String() string     { return "set one-time boot from disk" }
func (a ClearBoot) String() string    { return "clear boot override" }
func (a SetIndicator) String() string { return "set indicator " + a.To }
func (a SetBootOrder) String() string { return "set boot order" }
func (a SetPower) String() string     { return "ask for power " + string(a.Reset) }

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
