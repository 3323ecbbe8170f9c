package proposal

// The steps that take something away from a server's user.
const (
	StepRelease     = "release"
	StepRetain      = "retain"
	StepWipe        = "wipe" // StepReprovision a Released server
	StepReprovision = "reprovision"
	StepMaintenance = "maintenance"
	StepPowerOff    = "power-off"
	StepOperation   = "operation"
	StepDiscover    = "discover" // of a server that was found running
)
