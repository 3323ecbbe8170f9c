package netboot

import (
	"fmt"

	"ingot/model"
)

// Arch is the architecture of a client's firmware, as DHCP options 93 (RFC 4578
// §2.1) and 61 (RFC 5970 §3.3) number it. The numbers and names are those of
// IANA's registry "Processor Architecture Types".
type Arch uint16

// The architectures.
const (
	ArchBIOS           Arch = 0  // x86 BIOS
	ArchIA32           Arch = 6  // x86 UEFI
	ArchX64            Arch = 7  // x64 UEFI
	ArchEBC            Arch = 9  // EBC; firmware for x64 sends it too, for RFC 4578 had the two exchanged
	ArchARM32          Arch = 10 // ARM 32-bit UEFI
	ArchARM64          Arch = 11 // ARM 64-bit UEFI
	ArchIA32HTTP       Arch = 15
	ArchX64HTTP        Arch = 16
	ArchEBCHTTP        Arch = 17
	ArchARM32HTTP      Arch = 18
	ArchARM64HTTP      Arch = 19
	ArchBIOSHTTP       Arch = 20
	ArchRISCV32        Arch = 25
	ArchRISCV32HTTP    Arch = 26
	ArchRISCV64        Arch = 27
	ArchRISCV64HTTP    Arch = 28
	ArchLoongArch64    Arch = 39
	ArchLoong64HTTP    Arch = 40
	ArchARMRaspberryPi Arch = 41 // the boot ROM of a Raspberry Pi

	// ArchUnknown is that of a client that says nothing of it.
	ArchUnknown Arch = 0xffff
)

// archs are the architectures that IANA has numbered. One without platform boots
// nothing that Ingot has: it is only named.
var archs = map[Arch]struct {
	name string
	*platform
}{
	ArchBIOS:           {"x86 BIOS", &bios},
	1:                  {"NEC/PC98", nil},
	2:                  {"Itanium", nil},
	3:                  {"DEC Alpha", nil},
	4:                  {"Arc x86", nil},
	5:                  {"Intel Lean Client", nil},
	ArchIA32:           {"x86 UEFI", &ia32},
	ArchX64:            {"x64 UEFI", &x64},
	8:                  {"EFI Xscale", nil},
	ArchEBC:            {"EBC", &x64},
	ArchARM32:          {"ARM 32-bit UEFI", &arm32},
	ArchARM64:          {"ARM 64-bit UEFI", &arm64},
	12:                 {"PowerPC Open Firmware", nil},
	13:                 {"PowerPC ePAPR", nil},
	14:                 {"POWER OPAL v3", nil},
	ArchIA32HTTP:       {"x86 UEFI boot from HTTP", &ia32},
	ArchX64HTTP:        {"x64 UEFI boot from HTTP", &x64},
	ArchEBCHTTP:        {"EBC boot from HTTP", &x64},
	ArchARM32HTTP:      {"ARM UEFI 32 boot from HTTP", &arm32},
	ArchARM64HTTP:      {"ARM UEFI 64 boot from HTTP", &arm64},
	ArchBIOSHTTP:       {"PC/AT BIOS boot from HTTP", &bios},
	21:                 {"ARM 32 U-Boot", nil},
	22:                 {"ARM 64 U-Boot", nil},
	23:                 {"ARM U-Boot 32 boot from HTTP", nil},
	24:                 {"ARM U-Boot 64 boot from HTTP", nil},
	ArchRISCV32:        {"RISC-V 32-bit UEFI", &riscv32},
	ArchRISCV32HTTP:    {"RISC-V 32-bit UEFI boot from HTTP", &riscv32},
	ArchRISCV64:        {"RISC-V 64-bit UEFI", &riscv64},
	ArchRISCV64HTTP:    {"RISC-V 64-bit UEFI boot from HTTP", &riscv64},
	29:                 {"RISC-V 128-bit UEFI", nil},
	30:                 {"RISC-V 128-bit UEFI boot from HTTP", nil},
	31:                 {"s390 Basic", nil},
	32:                 {"s390 Extended", nil},
	33:                 {"MIPS 32-bit UEFI", nil},
	34:                 {"MIPS 64-bit UEFI", nil},
	35:                 {"Sunway 32-bit UEFI", nil},
	36:                 {"Sunway 64-bit UEFI", nil},
	37:                 {"LoongArch 32-bit UEFI", nil},
	38:                 {"LoongArch 32-bit UEFI boot from HTTP", nil},
	ArchLoongArch64:    {"LoongArch 64-bit UEFI", &loong64},
	ArchLoong64HTTP:    {"LoongArch 64-bit UEFI boot from HTTP", &loong64},
	ArchARMRaspberryPi: {"ARM rpiboot", &arm64},
}

// String returns the registry's name.
func (a Arch) String() string {
	if known, ok := archs[a]; ok {
		return known.name
	}
	if a == ArchUnknown {
		return "unknown"
	}
	return fmt.Sprintf("architecture %d", uint16(a))
}

// Firmware is the kind of firmware of machines with architecture a; false when Ingot
// does not know it.
func (a Arch) Firmware() (model.BootFirmware, bool) {
	of := archs[a].platform
	for _, p := range platforms {
		if p.platform == of {
			return model.BootFirmware{Architecture: p.machine, UEFI: of != &bios}, true
		}
	}
	return model.BootFirmware{}, false
}

// Known reports whether Ingot has a name for a boot loader that runs on a.
func (a Arch) Known() bool { return archs[a].platform != nil }
