package bmc

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"ingot/model"
)

func TestDisksAreToldByTheirPaths(t *testing.T) {
	for path, want := range map[string]bool{
		`HD(15,GPT,4d1a4b1e-ffc0-4256-ab8d-2fb7ad5f6b2a,0x2800,0x35000)/\EFI\ubuntu\shimx64.efi`: true,
		"PciRoot(0x2)/Pci(0x4,0x0)/Pci(0x0,0x0)/NVMe(0x1,01-00-00-0A-0A-43-50-00)":               true,
		"PciRoot(0x0)/Pci(0x1F,0x2)/Sata(0x0,0xFFFF,0x0)":                                        true,
		"Acpi(PNP0A03,0)/Pci(1F|1)/Ata(Primary,Master)/HD(Part3, Sig1)":                          true,
		"PciRoot(0x0)/Pci(0x1,0x0)/Scsi(0x0,0x0)":                                                true,
		"PciRoot(0x0)/Pci(0x14,0x0)/USB(0x7,0x0)":                                                false,
		"PciRoot(0x1)/Pci(0x0,0x0)/MAC(525400120001,0x1)/IPv4(0.0.0.0)":                          false,
		"Fv(2b0f)/FvFile(HDSomething)":                                                           false,
		"":                                                                                       false,
	} {
		if got := (bootOption{UefiDevicePath: path}).isDisk(); got != want {
			t.Errorf("%s is a disk: %v", path, got)
		}
	}
}

// A blade that is swapped while the boot options are read gets neither an option switched on nor
// an override.
func TestABootFromDiskOfAMachineThatIsSwappedMeanwhile(t *testing.T) {
	f := orderFake(t)
	target := f.system1()
	target.UUID = uuidOf1
	f.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, sysURI+"/BootOptions") {
			f.change(func() { f.resources[sysURI]["UUID"] = "4c4c4544-0059-3110-8035-b4c04f4d4232" })
		}
		return false
	})
	_, err := newPool(t, Options{}).BootOnce(t.Context(), target, model.BootDisk)
	if n := counted(f.requests(), "PATCH"); !errors.Is(err, ErrOtherMachine) || n != 0 {
		t.Errorf("%d writes, %v; want none, %v", n, err, ErrOtherMachine)
	}
}
