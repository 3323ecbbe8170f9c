package window

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// EffectText says what a disruption does to its server.
func EffectText(d model.Disruption) string {
	server, claim := "server "+string(d.Server), "claim "+string(d.Claim)
	switch d.Action {
	case proposal.StepRelease:
		return server + " is taken from " + claim + ", powered off, wiped and free for others"
	case proposal.StepRetain:
		return server + " is taken from " + claim + " and powered off; its disks stay as they are"
	case proposal.StepWipe:
		return server + ", which " + claim + " had, is wiped and free for others"
	case proposal.StepReprovision:
		return server + " is installed anew for " + claim + ": what is on its disks is lost"
	case proposal.StepMaintenance:
		return server + " of " + claim + " is taken out of service by ServerMaintenance " + d.Value
	case proposal.StepPowerOff:
		if by := MaintenanceOf(d); by != "" {
			return server + " of " + claim + ", which is out of service, is powered off by ServerMaintenance " + by
		}
		return server + " is powered off, as " + claim + " asks for"
	case proposal.StepOperation:
		return server + " of " + claim + " has its operation: " + d.Value
	case proposal.StepDiscover:
		return "what runs on " + server + " is asked to shut down, and the server is discovered"
	}
	return server + " of " + claim + ": " + d.Action
}

// MaintenanceOf is the ServerMaintenance, or OperationPark, that has a server powered off; "" if its claim has, or
// for another step.
func MaintenanceOf(d model.Disruption) string {
	if d.Action != proposal.StepPowerOff || d.Value == string(model.PowerOff) {
		return ""
	}
	return d.Value
}
