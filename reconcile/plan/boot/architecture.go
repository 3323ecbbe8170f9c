package boot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// Architecture is a server's architecture as OCI has it, and what says so.
type Architecture struct {
	Name string
	By   string // "" = nothing does, it is assumed
}

func (a Architecture) String() string {
	if a.By == "" {
		return a.Name + " (assumed: neither its BMC nor DHCP nor a probe says what it is)"
	}
	return a.Name + " (by " + a.By + ")"
}

// architecture is the server's: as Redfish has its processors, else as DHCP does, else as its probe does.
func architecture(s *server) Architecture {
	if name := processorArchitecture(s.Facts.Inventory); name != "" {
		return Architecture{name, "its processors"}
	}
	if f := proposal.Firmware(s); f != nil && f.Architecture != "" {
		return Architecture{f.Architecture, "DHCP"}
	}
	if p := s.Observed.Probes[s.Name]; p != nil {
		for _, c := range p.Data.CPU { // by the names that its kernel has for the features of the processors
			switch {
			case slices.Contains(c.Capabilities, "lm"): // long mode
				return Architecture{"amd64", "its probe"}
			case slices.Contains(c.Capabilities, "asimd"):
				return Architecture{"arm64", "its probe"}
			}
		}
	}
	name := "amd64"
	if only := s.Policy.Architectures; len(only) == 1 {
		name = only[0]
	}
	return Architecture{Name: name}
}

// method is how the server boots from the network: by PXE, unless UEFI HTTP boot is all that its BMC has.
func method(s *server) model.BootMethod {
	has := func(m model.BootMethod) bool { return slices.Contains(s.Facts.Inventory.BootTargets, string(m)) }
	if s.Facts.Inventory != nil && has(model.BootUEFIHTTP) && !has(model.BootPXE) {
		return model.BootUEFIHTTP
	}
	return model.BootPXE
}

// needs is what the image must have for the server to start it, as far as is known now.
func needs(s *server, b *proposal.Boot) (n proposal.Needs) {
	loaders := s.Policy.LoaderArchitectures
	if method(s) == model.BootUEFIHTTP && loaders != nil && !slices.Contains(loaders, b.Architecture) {
		n.UKI = fmt.Sprintf("the server boots from the network by UEFI HTTP boot alone, for which boot.loaderDirs has no iPXE of %s that could start a kernel", b.Architecture)
	}
	if f := proposal.Firmware(s); f != nil && !f.UEFI && !b.OwnScript() {
		n.Kernel = "the server's firmware is BIOS, as it told DHCP, and starts no UKI; switch it to UEFI, or add kernel and initramfs"
	}
	return n
}

// processorArchitecture is that of the first CPU that has one. Other cards have processors too.
func processorArchitecture(inv *model.Inventory) string {
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

func spelled(name string) string { return spellings[separators.Replace(strings.ToLower(name))] }
