package inventory

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestCPUs(t *testing.T) {
	twoSockets := tree{"proc/cpuinfo": ""}
	for n := range 8 { // two packages of two cores of two threads
		pkg, core := n%2, n/2%2
		twoSockets["proc/cpuinfo"] += fmt.Sprintf(
			"processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon Gold\n"+
				"physical id\t: %d\ncore id\t\t: %d\nflags\t\t: fpu\n\n", n, pkg, core)
	}
	sysfs := with(twoSockets)
	for n := range 8 { // the same threads, but sysfs knows of one package and four cores
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", n)
		sysfs[dir+"physical_package_id"] = "0\n"
		sysfs[dir+"thread_siblings_list"] = fmt.Sprintf("%d,%d\n", n%4, n%4+4)
	}
	xeon := func(id int, cores, threads uint32) model.ProbeCPU {
		return model.ProbeCPU{
			ID: id, TotalCores: cores, TotalHardwareThreads: threads,
			Vendor: "GenuineIntel", Model: "Xeon Gold", Capabilities: []string{"fpu"},
		}
	}
	tests := map[string]struct {
		files tree
		want  []model.ProbeCPU
	}{
		"packages and cores from /proc/cpuinfo": {twoSockets, []model.ProbeCPU{xeon(0, 2, 4), xeon(1, 2, 4)}},
		"sysfs counts where it is there":        {sysfs, []model.ProbeCPU{xeon(0, 4, 8)}},
		"an ARM machine without packages and names": {
			tree{
				"proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n" +
					"processor\t: 1\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n",
				"sys/devices/system/cpu/cpu0/topology/physical_package_id": "-1\n",
			},
			[]model.ProbeCPU{{
				TotalCores: 2, TotalHardwareThreads: 2, Vendor: "ARM", Model: "part 0xd0c", Capabilities: []string{"fp", "asimd"},
			}},
		},
		"lines before the first processor and numbers that are none": {
			tree{"proc/cpuinfo": "flags : x\nprocessor : many\nprocessor : 0\n"},
			[]model.ProbeCPU{{TotalCores: 1, TotalHardwareThreads: 1, Capabilities: []string{}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.files.host(t).cpus()); diff != "" {
				t.Errorf("processors (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzThreads(f *testing.F) {
	f.Add("processor : 0\nflags : a b\n\nprocessor : 1\n")
	f.Add("Processor : 0\nprocessor : -1\n:::")
	f.Fuzz(func(t *testing.T, cpuinfo string) {
		total := 0
		for _, cpu := range (tree{"proc/cpuinfo": cpuinfo}).host(t).cpus() {
			total += int(cpu.TotalHardwareThreads)
			if cpu.TotalCores > cpu.TotalHardwareThreads || cpu.TotalCores == 0 {
				t.Errorf("processor %+v", cpu)
			}
		}
		if total > maxEntries {
			t.Errorf("%d threads", total)
		}
	})
}
