package plan

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

// String says which architecture it is and why.
func (a Architecture) String() string {
	if a.By == "" {
		return a.Name + " (assumed: neither its BMC nor DHCP nor a probe says what it is)"
	}
	return a.Name + " (by " + a.By + ")"
}

// architecture is the server's architecture: as Redfish has its processors, else as
// its firmware said in DHCP, else as its probe found it.
func (s *server) architecture() Architecture {
	if name := proposal.ProcessorArchitecture(s.facts.Inventory); name != "" {
		return Architecture{name, "its processors"}
	}
	if f := s.firmware(); f != nil && f.Architecture != "" {
		return Architecture{f.Architecture, "DHCP"}
	}
	if p := s.fleet.in.Observed.Probes[s.name]; p != nil {
		if name := proposal.ProbedArchitecture(p.Data.CPU); name != "" {
			return Architecture{name, "its probe"}
		}
	}
	name := "amd64"
	if only := s.fleet.in.Policy.Architectures; len(only) == 1 {
		name = only[0]
	}
	return Architecture{Name: name}
}

// firmware is what DHCP learned of the server's firmware when it last booted from the
// network, nil if nothing.
func (s *server) firmware() *model.BootFirmware {
	if p := s.fleet.in.Observed.Progress[s.name]; p != nil {
		return p.Firmware
	}
	return nil
}

// bootMethod is how the server boots from the network: by PXE, unless UEFI HTTP boot
// is all that its BMC has.
func (s *server) bootMethod() model.BootMethod {
	if inv := s.facts.Inventory; inv != nil && slices.Contains(inv.BootTargets, string(model.BootUEFIHTTP)) &&
		!slices.Contains(inv.BootTargets, string(model.BootPXE)) {
		return model.BootUEFIHTTP
	}
	return model.BootPXE
}

// needs is what the image must have for the server to start it, as far as is known
// before it is tried.
func (s *server) needs(b *proposal.Boot) (n proposal.Needs) {
	loaders := s.fleet.in.Policy.LoaderArchitectures
	if s.bootMethod() == model.BootUEFIHTTP && loaders != nil && !slices.Contains(loaders, b.Architecture) {
		n.UKI = fmt.Sprintf("the server boots from the network by UEFI HTTP boot alone, for which boot.loaderDirs has no iPXE of %s that could start a kernel", b.Architecture)
	}
	if f := s.firmware(); f != nil && !f.UEFI && !b.OwnScript() {
		n.Kernel = "the server's firmware is BIOS, as it told DHCP, and starts no UKI; switch it to UEFI, or add kernel and initramfs"
	}
	return n
}
