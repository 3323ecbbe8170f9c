package model

// Power is a power state as Redfish gives it (DSP0266, ComputerSystem.PowerState).
type Power string

// The power states. The empty string is "not read yet".
const (
	PowerOn          Power = "On"
	PowerOff         Power = "Off"
	PowerPaused      Power = "Paused"
	PowerPoweringOn  Power = "PoweringOn"
	PowerPoweringOff Power = "PoweringOff"
	PowerUnknown     Power = "Unknown"
)

// Settled reports whether the state is one that a machine rests in.
func (p Power) Settled() bool { return p == PowerOn || p == PowerOff }

// ResetKind is a request that changes power. The BMC client maps it to a Redfish
// ResetType that the machine allows.
type ResetKind string

// The reset kinds.
const (
	ResetOn              ResetKind = "On"
	ResetGracefulOff     ResetKind = "GracefulShutdown"
	ResetForceOff        ResetKind = "ForceOff"
	ResetGracefulRestart ResetKind = "GracefulRestart"
	ResetForceRestart    ResetKind = "ForceRestart"
	ResetPowerCycle      ResetKind = "PowerCycle"
)
