package model

import (
	"cmp"
	"slices"
	"strings"
)

// Architecture is that of the first CPU that has one, as OCI has it; "" = none is known. Other cards have
// processors too.
func (i *Inventory) Architecture() string {
	if i == nil {
		return ""
	}
	for _, p := range i.Processors {
		if p.Type != "" && !strings.EqualFold(p.Type, "CPU") {
			continue
		}
		if name := cmp.Or(spelledArchitecture(p.InstructionSet), spelledArchitecture(p.Architecture)); name != "" {
			return name
		}
	}
	return ""
}

// The kernel's names of features that processors of one architecture have.
const (
	longMode     = "lm"    // amd64
	advancedSIMD = "asimd" // arm64
)

// Architecture is that of the probe's kernel, by its names of the features of the processors.
func (d *ProbeData) Architecture() string {
	for _, c := range d.CPU {
		switch {
		case slices.Contains(c.Capabilities, longMode):
			return "amd64"
		case slices.Contains(c.Capabilities, advancedSIMD):
			return "arm64"
		}
	}
	return ""
}

// architectures are those of OCI, by Redfish's InstructionSet and ProcessorArchitecture (DSP2046, Processor) and
// by the values that BMCs send instead, in lower case and without separators. No server that Redfish calls x86 has
// 32 bits.
var architectures = map[string]string{
	"x8664": "amd64", "amd64": "amd64", "x64": "amd64", "em64t": "amd64", "intel64": "amd64", "x86": "amd64",
	"arma64": "arm64", "aarch64": "arm64", "arm64": "arm64", "armv8": "arm64", "armv8a": "arm64", "armv9": "arm64", "armv9a": "arm64", "arm": "arm64",
	"arma32": "arm", "rv64": "riscv64", "riscv64": "riscv64", "riscv": "riscv64", "rv32": "riscv",
	"loongarch64": "loong64", "loong64": "loong64", "powerisa": "ppc64le", "power": "ppc64le", "mips64": "mips64",
}

var separators = strings.NewReplacer("-", "", "_", "", " ", "")

func spelledArchitecture(name string) string {
	return architectures[separators.Replace(strings.ToLower(name))]
}
