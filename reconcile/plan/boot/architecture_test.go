package boot_test

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/proposal"
)

func TestTheArchitectureOfAServer(t *testing.T) {
	cpu := func(architecture, set string) model.Processor {
		return model.Processor{Type: "CPU", Architecture: architecture, InstructionSet: set}
	}
	tests := map[string]struct {
		processors []model.Processor
		firmware   *model.BootFirmware
		probed     []string // what the probe's processor can do
		only       []string // boot.architectures
		want       string
	}{
		"nothing is known of it":                 {want: "amd64 (assumed: neither its BMC nor DHCP nor a probe says what it is)"},
		"nothing is known, and there is but one": {only: []string{"arm64"}, want: "arm64 (assumed: neither its BMC nor DHCP nor a probe says what it is)"},
		"x86-64 by its instruction set":          {processors: []model.Processor{cpu("x86", "x86-64")}, want: "amd64 (by its processors)"},
		"x86 without an instruction set":         {processors: []model.Processor{cpu("x86", "")}, want: "amd64 (by its processors)"},
		"ARM by its instruction set":             {processors: []model.Processor{cpu("ARM", "ARM-A64")}, want: "arm64 (by its processors)"},
		"ARM without an instruction set":         {processors: []model.Processor{cpu("ARM", "")}, want: "arm64 (by its processors)"},
		"as Linux spells it":                     {processors: []model.Processor{cpu("AArch64", "")}, want: "arm64 (by its processors)"},
		"as Go spells it":                        {processors: []model.Processor{cpu("", "arm64")}, want: "arm64 (by its processors)"},
		"as Linux spells x86-64":                 {processors: []model.Processor{cpu("x86_64", "")}, want: "amd64 (by its processors)"},
		"RISC-V":                                 {processors: []model.Processor{cpu("RISC-V", "RV64")}, want: "riscv64 (by its processors)"},
		"a processor without a type":             {processors: []model.Processor{{Architecture: "ARM"}}, want: "arm64 (by its processors)"},
		"a graphics card of another architecture": {
			processors: []model.Processor{{Type: "GPU", Architecture: "ARM"}, cpu("x86", "x86-64")}, want: "amd64 (by its processors)",
		},
		"a network card's processor alone": {
			processors: []model.Processor{{Type: "DPU", Architecture: "ARM"}},
			want:       "amd64 (assumed: neither its BMC nor DHCP nor a probe says what it is)",
		},
		"two processors, one of which is silent": {processors: []model.Processor{cpu("", ""), cpu("ARM", "ARM-A64")}, want: "arm64 (by its processors)"},
		"what the maker alone knows is not known": {
			processors: []model.Processor{cpu("OEM", "OEM")}, firmware: &model.BootFirmware{Architecture: "arm64"}, want: "arm64 (by DHCP)",
		},
		"Redfish is believed before DHCP": {
			processors: []model.Processor{cpu("x86", "")}, firmware: &model.BootFirmware{Architecture: "arm64"}, want: "amd64 (by its processors)",
		},
		"DHCP is believed before the probe":        {firmware: &model.BootFirmware{Architecture: "amd64"}, probed: []string{"asimd"}, want: "amd64 (by DHCP)"},
		"firmware that does not say what it is":    {firmware: &model.BootFirmware{}, probed: []string{"fp", "asimd"}, want: "arm64 (by its probe)"},
		"the probe's processor knows long mode":    {probed: []string{"fpu", "lm"}, want: "amd64 (by its probe)"},
		"the probe's processor says nothing of it": {probed: []string{"fpu"}, want: "amd64 (assumed: neither its BMC nor DHCP nor a probe says what it is)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(1, 0)
			const name = "bmc00000-system-0"
			in.Policy.Architectures = tc.only
			in.Observed.ServerFacts[name].Inventory = &model.Inventory{Processors: tc.processors}
			in.Observed.Progress[name] = &model.Progress{Ticket: "an older one", Firmware: tc.firmware}
			in.Observed.Probes[name] = &model.ProbeReport{Data: model.ProbeData{CPU: []model.ProbeCPU{{Capabilities: tc.probed}}}}
			p, _ := boot.Arm(plantest.ServerOf(in, name).ToArm(model.PurposeDiscovery, proposal.Boot{}))
			armed := p.Do[0].(proposal.Arm).Boot
			if got := (boot.Architecture{Name: armed.Architecture, By: armed.Ticket.ArchitectureBy}).String(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAnImageThatTheServersFirmwareCannotStart(t *testing.T) {
	layer := &model.Layer{Digest: "sha256:1", Size: 1}
	kernel := model.PinnedImage{Ref: "os:1", Kernel: layer, Initrd: layer}
	uki := model.PinnedImage{Ref: "os:1", UKI: layer}
	pxe, httpOnly := []string{"None", "Pxe", "UefiHttp"}, []string{"None", "UefiHttp", "Hdd"}
	tests := map[string]struct {
		image    model.PinnedImage
		targets  []string
		loaders  []string
		firmware *model.BootFirmware
		script   bool // the claim brings its own
		want     string
	}{
		"a kernel by PXE":                                                 {image: kernel, targets: pxe, loaders: []string{}},
		"a kernel, and nothing is known":                                  {image: kernel},
		"a UKI, and nothing is known":                                     {image: uki},
		"a UKI by HTTP alone":                                             {image: uki, targets: httpOnly, loaders: []string{}},
		"a kernel by HTTP alone through iPXE":                             {image: kernel, targets: httpOnly, loaders: []string{"amd64"}},
		"a kernel by HTTP alone, and what loaders there are is not known": {image: kernel, targets: httpOnly},
		"a kernel by HTTP alone without iPXE": {
			image: kernel, targets: httpOnly, loaders: []string{"arm64"},
			want: "image os:1 has no UKI layer, and the server boots from the network by UEFI HTTP boot alone, " +
				"for which boot.loaderDirs has no iPXE of amd64 that could start a kernel",
		},
		"a UKI on UEFI":    {image: uki, firmware: &model.BootFirmware{Architecture: "amd64", UEFI: true}},
		"a kernel on BIOS": {image: kernel, firmware: &model.BootFirmware{Architecture: "amd64"}},
		"a script on BIOS": {image: uki, firmware: &model.BootFirmware{Architecture: "amd64"}, script: true},
		"a UKI and a kernel on BIOS": {
			image: model.PinnedImage{Ref: "os:1", Kernel: layer, Initrd: layer, UKI: layer}, firmware: &model.BootFirmware{Architecture: "amd64"},
		},
		"a UKI on BIOS": {
			image: uki, firmware: &model.BootFirmware{Architecture: "amd64"},
			want: "image os:1 has no kernel and initramfs layers but a UKI, " +
				"and the server's firmware is BIOS, as it told DHCP, and starts no UKI; " +
				"switch it to UEFI, or add kernel and initramfs",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(1, 0)
			const name = "bmc00000-system-0"
			in.Policy.LoaderArchitectures = tc.loaders
			in.Observed.ServerFacts[name].Inventory = &model.Inventory{BootTargets: tc.targets}
			in.Observed.Progress[name] = &model.Progress{Ticket: "an older one", Firmware: tc.firmware}
			b := proposal.Boot{Image: "os:1"}
			if tc.script {
				b.Secret = map[string]model.Sensitive{"ipxe-script": model.NewSensitive("#!ipxe")}
			}
			got := ""
			p, _ := boot.Arm(plantest.ServerOf(in, name).ToArm(model.PurposeClaim, b))
			if err := p.Do[0].(proposal.Arm).Boot.Needs.Unmet(&tc.image); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
