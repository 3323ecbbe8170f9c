package ledger

import (
	"time"

	"ingot/model"
)

// Kind is what happened to a machine.
type Kind string

// The kinds of events.
const (
	Found     Kind = "found running" // a person has it run what is on its disk
	PowerOn   Kind = "switched on"
	PowerOff  Kind = "switched off"
	PowerLost Kind = "lost its power"
	Restart   Kind = "restarted" // without losing power
	DiskBoot  Kind = "booted from its disk"
	NetBoot   Kind = "booted a kernel from the network"
	Install   Kind = "installed"
	Wipe      Kind = "wiped"
	Ignition  Kind = "was served Ignition"
)

// Event is one thing that really happened to a machine.
type Event struct {
	At      time.Time
	Machine string // its UUID, in lower case
	Kind    Kind
	// ByHand is set when a person pressed the power button.
	ByHand bool
	// Claim is whose configuration an Install or Ignition was, or whose the machine is that
	// was found running; empty = nobody knows.
	Claim model.ClaimName
	// Left are the serial numbers of the disks that a Wipe left as they were.
	Left []string
}

// Violation is an event that no commit named.
type Violation struct {
	Event Event
	Why   string
}

// String is the violation in one line.
func (v Violation) String() string {
	return v.Event.At.Format("15:04:05.000") + " machine " + v.Event.Machine + " " + string(v.Event.Kind) + ": " + v.Why
}
