package bmc

import (
	"fmt"
	"strings"
)

// parts are the values of SystemType (DSP0268, ComputerSystem) of what is within a machine,
// or runs on one.
var parts = map[string]string{
	"dpu":                  "a DPU",
	"os":                   "an operating system",
	"virtual":              "a virtual machine",
	"virtuallypartitioned": "a virtual partition",
}

// noReset is why a system is no server that has no reset action. Some show it once their host has started.
const noReset = "it cannot be reset"

// noServer returns why the system is no server, "" if it is one: something that can be
// reset and is not a part of a machine. GPU baseboards call themselves physical systems, too.
func (s *system) noServer() string {
	kind := strings.ToLower(s.SystemType)
	uuid, _ := usableUUID(s.UUID)
	known := quirkOf(s.Manufacturer, s.Model, "")
	switch part, isPart := parts[kind]; {
	case isPart:
		return "it is " + part
	case s.Actions.Reset == nil:
		return noReset
	case known.part != "":
		return "it is " + known.part
	case kind != "" && kind != "physical" && uuid == "":
		// Composed and partitioned systems are put together out of others.
		return fmt.Sprintf("its SystemType is %s, and it has no UUID that tells it from what it is made of", printable(s.SystemType, 64))
	}
	return ""
}
