package inventory

import (
	"bufio"
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ingot/model"
)

// thread is one logical processor as /proc/cpuinfo describes it. The keys differ
// from one architecture to the next.
type thread map[string]string

// cpus lists the processor packages.
func (h *Host) cpus() []model.ProbeCPU {
	packages := make(map[int]*model.ProbeCPU)
	cores := make(map[string]bool)
	for number, t := range h.threads() {
		id, core := h.topology(number, t)
		cpu := packages[id]
		if cpu == nil {
			cpu = &model.ProbeCPU{ID: id, Vendor: t.vendor(), Model: t.model(), Capabilities: t.flags()}
			packages[id] = cpu
		}
		cpu.TotalHardwareThreads++
		if !cores[core] {
			cores[core] = true
			cpu.TotalCores++
		}
	}
	list := []model.ProbeCPU{}
	for _, id := range slices.Sorted(maps.Keys(packages)) {
		list = append(list, *packages[id])
	}
	return list
}

// threads returns the logical processors by number.
func (h *Host) threads() map[int]thread {
	const longestLine = 64 << 10
	all := make(map[int]thread)
	var t thread
	lines := bufio.NewScanner(bytes.NewReader(h.read(maxFile, "proc/cpuinfo")))
	lines.Buffer(nil, longestLine)
	for lines.Scan() && len(all) < maxEntries {
		key, value, _ := strings.Cut(lines.Text(), ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "processor" {
			n, err := strconv.Atoi(value)
			if err != nil {
				continue
			}
			t = make(thread)
			all[n] = t
		}
		if t != nil && key != "" {
			t[key] = value
		}
	}
	return all
}

// topology returns the package that a logical processor belongs to, and a name for its
// core that is unique in the machine. sysfs is preferred to /proc/cpuinfo.
func (h *Host) topology(number int, t thread) (packageID int, core string) {
	dir := "sys/devices/system/cpu/cpu" + strconv.Itoa(number) + "/topology"
	packageID, err := strconv.Atoi(first(h.text(dir, "physical_package_id"), t["physical id"]))
	if err != nil || packageID < 0 { // -1 is "not known" on some ARM machines
		packageID = 0
	}
	siblings := first(h.text(dir, "core_cpus_list"), h.text(dir, "thread_siblings_list"))
	if siblings != "" {
		return packageID, siblings
	}
	inPackage := first(t["core id"], "cpu"+strconv.Itoa(number))
	return packageID, strconv.Itoa(packageID) + "/" + inPackage
}

func (t thread) vendor() string {
	return clean(first(t["vendor_id"], armImplementers[t["CPU implementer"]], t["CPU implementer"]))
}

func (t thread) model() string {
	part := t["CPU part"]
	if part != "" {
		part = "part " + part
	}
	return clean(first(t["model name"], t["cpu"], part))
}

func (t thread) flags() []string {
	flags := strings.Fields(first(t["flags"], t["Features"]))
	if flags == nil {
		return []string{}
	}
	return flags[:min(len(flags), maxEntries)]
}

// armImplementers are codes of the Main ID Register (Arm ARM, MIDR_EL1).
var armImplementers = map[string]string{
	"0x41": "ARM", "0x42": "Broadcom", "0x43": "Cavium", "0x46": "Fujitsu", "0x48": "HiSilicon", "0x4e": "NVIDIA",
	"0x50": "APM", "0x51": "Qualcomm", "0x61": "Apple", "0x6d": "Microsoft", "0xc0": "Ampere",
}
