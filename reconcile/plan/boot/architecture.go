package boot

import (
	"fmt"
	"slices"

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
	if name := s.Facts.Inventory.Architecture(); name != "" {
		return Architecture{name, "its processors"}
	}
	if f := proposal.Firmware(s); f != nil && f.Architecture != "" {
		return Architecture{f.Architecture, "DHCP"}
	}
	if p := s.Observed.Probes[s.Name]; p != nil {
		if name := p.Data.Architecture(); name != "" {
			return Architecture{name, "its probe"}
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
