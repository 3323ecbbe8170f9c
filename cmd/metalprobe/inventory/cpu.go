package inventory

import (
	"strings"

	"ingot/model"
)

// cpus returns the features of the first processor, which show the architecture. The key depends on it.
func (h *Host) cpus() []model.ProbeCPU {
	for line := range h.lines("proc/cpuinfo") {
		key, value, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); key == "flags" || key == "Features" {
			features := strings.Fields(value)
			return []model.ProbeCPU{{Capabilities: features[:min(len(features), maxEntries)]}}
		}
	}
	return []model.ProbeCPU{}
}
