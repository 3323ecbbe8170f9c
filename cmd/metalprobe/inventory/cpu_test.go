package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestCPUs(t *testing.T) {
	for name, test := range map[string]struct {
		cpuinfo string
		want    []model.ProbeCPU
	}{
		"amd64": {
			"processor\t: 0\nmodel name\t: Xeon\nflags\t\t: fpu lm\n\nprocessor\t: 1\nflags\t\t: fpu lm\n",
			[]model.ProbeCPU{{Capabilities: []string{"fpu", "lm"}}},
		},
		"arm64":            {"processor\t: 0\nFeatures\t: fp asimd\n", []model.ProbeCPU{{Capabilities: []string{"fp", "asimd"}}}},
		"without features": {"processor\t: 0\n:::\n", []model.ProbeCPU{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, (tree{"proc/cpuinfo": test.cpuinfo}).host(t).cpus()); diff != "" {
				t.Errorf("processors (-want +got):\n%s", diff)
			}
		})
	}
}
