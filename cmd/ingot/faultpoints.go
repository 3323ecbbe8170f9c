//go:build faultpoints

package main

// A build for tests is told by these variables at which point to kill itself, see
// ingot/model/fault: they are no settings.
func init() {
	commandLineVariables = append(commandLineVariables, "INGOT_FAULT_LOG", "INGOT_FAULT_KILL")
}
