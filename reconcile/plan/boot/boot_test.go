package boot_test

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/proposal"
)

func TestTheArchitectureOfAServer(t *testing.T) {
	cpu := func(architecture, set string) model.Processor {
		return model.Processor{Type: "CPU", Architecture: architecture, InstructionSet: set}
	}
	amd, arm := cpu("x86", "x86-64"), cpu("ARM", "ARM-A64")
	byDHCP := func(architecture string) *model.BootFirmware { return &model.BootFirmware{Architecture: architecture} }
	const assumed = "(assumed: neither its BMC nor DHCP nor a probe says what it is)"
	for name, tc := range map[string]struct {
		processors []model.Processor
		firmware   *model.BootFirmware
		probed     []string          // what the probe's processor can do
		others     []model.Processor // of another server
		want       string
	}{
		"nothing is known of it":                   {want: "amd64 " + assumed},
		"nothing is known, and the other is ARM":   {others: []model.Processor{arm}, want: "arm64 " + assumed},
		"x86-64 by its instruction set":            {processors: []model.Processor{amd}, want: "amd64 (by its processors)"},
		"x86 without an instruction set":           {processors: []model.Processor{cpu("x86", "")}, want: "amd64 (by its processors)"},
		"ARM by its instruction set":               {processors: []model.Processor{arm}, want: "arm64 (by its processors)"},
		"ARM without an instruction set":           {processors: []model.Processor{cpu("ARM", "")}, want: "arm64 (by its processors)"},
		"as Linux spells it":                       {processors: []model.Processor{cpu("AArch64", "")}, want: "arm64 (by its processors)"},
		"as Go spells it":                          {processors: []model.Processor{cpu("", "arm64")}, want: "arm64 (by its processors)"},
		"as Linux spells x86-64":                   {processors: []model.Processor{cpu("x86_64", "")}, want: "amd64 (by its processors)"},
		"RISC-V":                                   {processors: []model.Processor{cpu("RISC-V", "RV64")}, want: "riscv64 (by its processors)"},
		"a processor without a type":               {processors: []model.Processor{{Architecture: "ARM"}}, want: "arm64 (by its processors)"},
		"a graphics card of another one":           {processors: []model.Processor{{Type: "GPU", Architecture: "ARM"}, amd}, want: "amd64 (by its processors)"},
		"a network card's processor alone":         {processors: []model.Processor{{Type: "DPU", Architecture: "ARM"}}, want: "amd64 " + assumed},
		"two processors, one of which is silent":   {processors: []model.Processor{cpu("", ""), arm}, want: "arm64 (by its processors)"},
		"what the maker alone knows":               {processors: []model.Processor{cpu("OEM", "OEM")}, firmware: byDHCP("arm64"), want: "arm64 (by DHCP)"},
		"Redfish is believed before DHCP":          {processors: []model.Processor{amd}, firmware: byDHCP("arm64"), want: "amd64 (by its processors)"},
		"DHCP is believed before the probe":        {firmware: byDHCP("amd64"), probed: []string{"asimd"}, want: "amd64 (by DHCP)"},
		"firmware that does not say what it is":    {firmware: &model.BootFirmware{}, probed: []string{"fp", "asimd"}, want: "arm64 (by its probe)"},
		"the probe's processor knows long mode":    {probed: []string{"fpu", "lm"}, want: "amd64 (by its probe)"},
		"the probe's processor says nothing of it": {probed: []string{"fpu"}, want: "amd64 " + assumed},
	} {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(2, 0)
			const name = "bmc00000-system-0"
			in.Observed.ServerFacts["bmc00001-system-0"].Inventory = &model.Inventory{Processors: tc.others}
			in.Observed.ServerFacts[name].Inventory = &model.Inventory{Processors: tc.processors}
			in.Observed.Progress[name] = &model.Progress{Ticket: "an older one", Firmware: tc.firmware}
			in.Observed.Probes[name] = &model.ProbeReport{Data: model.ProbeData{CPU: []model.ProbeCPU{{Capabilities: tc.probed}}}}
			p, _ := boot.Arm(plantest.ServerOf(in, name).ToArm(model.PurposeDiscovery, proposal.Boot{}))
			armed := p.Do[0].(proposal.Arm).Boot
			if got := (proposal.Architecture{Name: armed.Architecture, By: armed.Ticket.ArchitectureBy}).String(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAnImageThatTheServersFirmwareCannotStart(t *testing.T) {
	layer := &model.Layer{Digest: "sha256:1", Size: 1}
	kernel := model.PinnedImage{Ref: "os:1", Kernel: layer, Initrd: layer}
	uki, both := model.PinnedImage{Ref: "os:1", UKI: layer}, model.PinnedImage{Ref: "os:1", Kernel: layer, Initrd: layer, UKI: layer}
	bios := &model.BootFirmware{Architecture: "amd64"}
	pxe, httpOnly := []string{"None", "Pxe", "UefiHttp"}, []string{"None", "UefiHttp", "Hdd"}
	for name, tc := range map[string]struct {
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
		"a UKI on UEFI":              {image: uki, firmware: &model.BootFirmware{Architecture: "amd64", UEFI: true}},
		"a kernel on BIOS":           {image: kernel, firmware: bios},
		"a script on BIOS":           {image: uki, firmware: bios, script: true},
		"a UKI and a kernel on BIOS": {image: both, firmware: bios},
		"a UKI on BIOS": {
			image: uki, firmware: bios,
			want: "image os:1 has no kernel and initramfs layers but a UKI, " +
				"and the server's firmware is BIOS, by its DHCP request, and starts no UKI; " +
				"switch it to UEFI, or add kernel and initramfs",
		},
	} {
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

func TestWhichTicketsAreStolen(t *testing.T) {
	type uses = []model.TicketUse
	const served, replay = model.TicketRefusal(""), model.RefusedReplay
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	own := func(what model.TicketThing, r model.TicketRefusal, minute int) model.TicketUse {
		return model.TicketUse{What: what, Client: "192.0.2.1", MAC: "02:00:00:00:00:01", Own: true, Refusal: r, First: at(minute), Last: at(minute)}
	}
	thief := func(what model.TicketThing, minute int) model.TicketUse {
		return model.TicketUse{What: what, Client: "192.0.2.66", MAC: "02:00:00:00:00:66", First: at(minute), Last: at(minute)}
	}
	unknown := func(what model.TicketThing, r model.TicketRefusal, minute int) model.TicketUse {
		return model.TicketUse{What: what, Client: "192.0.2.9", Refusal: r, First: at(minute), Last: at(minute)}
	}
	refused := model.TicketUse{What: model.ThingIgnition, MAC: "02:00:00:00:00:66", Refusal: model.RefusedAddress, First: at(2)}
	script, ignition, cloud := model.ThingScript, model.ThingIgnition, model.ThingCloudInit
	image, file := model.ThingImage, model.ThingBootFile
	full := make([]model.TicketUse, model.MaxTicketUses-2)
	for i := range full {
		full[i] = own(model.ThingReport, model.RefusedToken, i)
	}
	for name, tc := range map[string]struct {
		uses   uses
		config model.TicketThing
		want   bool
	}{
		"its server asks after a thief got its Ignition": {uses: uses{thief(script, 1), thief(ignition, 2), own(script, replay, 3)}, want: true},
		"its firmware asks DHCP":                         {uses: uses{thief(ignition, 2), own(file, replay, 3)}, want: true},
		"cloud-init data are Ignition":                   {uses: uses{thief(cloud, 2), own(script, replay, 3)}, want: true},
		"a script is, where there is nothing else":       {uses: uses{thief(script, 2), own(script, replay, 3)}, config: script, want: true},
		"and only there":                                 {uses: uses{thief(script, 2), own(script, replay, 3)}},
		"its server took it alone":                       {uses: uses{own(script, served, 1), own(ignition, served, 2), own(script, replay, 9)}},
		"its server asked before":                        {uses: uses{own(script, replay, 1), thief(ignition, 2)}},
		"its server has not asked":                       {uses: uses{thief(script, 1), thief(ignition, 2)}},
		"an unknown client asks":                         {uses: uses{thief(ignition, 2), unknown(script, replay, 3)}},
		"another machine asks":                           {uses: uses{thief(ignition, 2), {What: script, MAC: "02:00:00:00:00:77", Refusal: replay, Last: at(3)}}},
		"it was given to a machine that may be its server, at another address": {uses: uses{unknown(ignition, served, 2), own(script, replay, 3)}},
		"its server was given it, too":                                         {uses: uses{thief(ignition, 2), own(ignition, served, 3), own(script, replay, 9)}},
		"its server was given its script, and may go on with that":             {uses: uses{own(script, served, 1), thief(ignition, 2), own(script, replay, 9)}},
		"its server was given its kernel":                                      {uses: uses{own(image, served, 1), thief(ignition, 2), own(script, replay, 9)}},
		"a client that may be its server was":                                  {uses: uses{unknown(image, served, 1), thief(ignition, 2), own(script, replay, 9)}},
		"its server is refused for another reason, and may be served yet":      {uses: uses{thief(ignition, 2), own(script, model.RefusedAddress, 3)}},
		"the other machine was refused":                                        {uses: uses{refused, own(script, replay, 3)}},
		"the list of uses is full":                                             {uses: append(full, thief(ignition, 2), own(script, replay, 3))},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := plantest.Ticketed(model.StateDiscovery, model.PurposeDiscovery)
			rec.Boot.Ticket.Config = tc.config
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", Uses: tc.uses}
			p, got := boot.Theft(plantest.ServerOf(in, rec.Name))
			if got != tc.want || got && p.Of.Record.Boot.Theft.Client != "192.0.2.66" {
				t.Errorf("stolen: %t, want %t", got, tc.want)
			}
		})
	}
}
