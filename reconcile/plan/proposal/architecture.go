package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ingot/model"
)

// ProcessorArchitecture is that of the first processor that says so. Graphics and
// network cards have processors too, of architectures of their own.
func ProcessorArchitecture(inv *model.Inventory) string {
	if inv == nil {
		return ""
	}
	for _, p := range inv.Processors {
		if p.Type != "" && !strings.EqualFold(p.Type, "CPU") {
			continue
		}
		if name := cmp.Or(spelled(p.InstructionSet), spelled(p.Architecture)); name != "" {
			return name
		}
	}
	return ""
}

// spellings are architectures as OCI has them, by Redfish's InstructionSet and
// ProcessorArchitecture (DSP2046, Processor) and by what BMCs send in their place, in
// lower case and without separators. No server that Redfish calls x86 has 32 bits.
var spellings = map[string]string{
	"x8664": "amd64", "amd64": "amd64", "x64": "amd64", "em64t": "amd64", "intel64": "amd64", "x86": "amd64",
	"arma64": "arm64", "aarch64": "arm64", "arm64": "arm64", "armv8": "arm64", "armv8a": "arm64", "armv9": "arm64", "armv9a": "arm64", "arm": "arm64",
	"arma32": "arm", "rv64": "riscv64", "riscv64": "riscv64", "riscv": "riscv64", "rv32": "riscv",
	"loongarch64": "loong64", "loong64": "loong64", "powerisa": "ppc64le", "power": "ppc64le", "mips64": "mips64",
}

var separators = strings.NewReplacer("-", "", "_", "", " ", "")

func spelled(name string) string {
	return spellings[separators.Replace(strings.ToLower(name))]
}

// ProbedArchitecture tells an architecture by the names that its kernel has for what
// the processors can do.
func ProbedArchitecture(cpus []model.ProbeCPU) string {
	for _, c := range cpus {
		switch {
		case slices.Contains(c.Capabilities, "lm"): // long mode
			return "amd64"
		case slices.Contains(c.Capabilities, "asimd"):
			return "arm64"
		}
	}
	return ""
}

// Needs is what an image must have for its server to start it: each is "" for no such
// need, or a clause that says why.
type Needs struct {
	UKI    string // Kernel starts nothing but a UKI
	Kernel string // firmware starts no UKI
}

// Unmet is why an image cannot be started, nil when nothing is known against it.
func (n Needs) Unmet(image *model.PinnedImage) *Failure {
	switch {
	case n.UKI != "" && image.UKI == nil:
		return &Failure{FailureUndone, model.ReasonBootMethodMismatch, fmt.Sprintf("image %s has no UKI layer, and %s", image.Ref, n.UKI)}
	case n.Kernel != "" && (image.Kernel == nil || image.Initrd == nil):
		return &Failure{FailureUndone, model.ReasonBootMethodMismatch, fmt.Sprintf("image %s has no kernel and initramfs layers but a UKI, and %s", image.Ref, n.Kernel)}
	}
	return nil
}
