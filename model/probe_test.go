package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestUsedProbeData(t *testing.T) {
	features := func(names ...string) model.ProbeCPU { return model.ProbeCPU{Capabilities: names} }
	for want, cpus := range map[string][]model.ProbeCPU{
		"amd64": {features("fpu"), features("fpu", "lm", "aes")},
		"arm64": {features("fp", "asimd")},
		"":      {features("fpu")},
	} {
		all := model.ProbeData{
			CPU:     cpus,
			NICs:    []model.ProbeNIC{{MAC: "02:00:00:00:00:01"}},
			Storage: []model.ProbeDisk{{Serial: "S1"}},
		}
		used := all.Used()
		if used.Architecture() != want || !cmp.Equal(used.MACs(), all.MACs()) {
			t.Errorf("architecture %q and MAC addresses %v, want %q and %v", used.Architecture(), used.MACs(), want, all.MACs())
		}
		used.CPU = nil
		if diff := cmp.Diff(model.ProbeData{NICs: all.NICs, Storage: all.Storage}, used); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
