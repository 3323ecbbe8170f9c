package model

import (
	"slices"
	"time"
)

// Progress is how far a server has come with a ticket. The boot service alone
// writes it.
type Progress struct {
	Ticket     string    `json:"ticket"`
	DHCPAt     time.Time `json:"dhcpAt,omitzero"`
	TFTPAt     time.Time `json:"tftpAt,omitzero"`
	HTTPBootAt time.Time `json:"httpBootAt,omitzero"`
	ScriptAt   time.Time `json:"scriptAt,omitzero"`
	KernelAt   time.Time `json:"kernelAt,omitzero"`
	InitrdAt   time.Time `json:"initrdAt,omitzero"`
	IgnitionAt time.Time `json:"ignitionAt,omitzero"`
	// Boots counts how often the script was served again after the configuration was
	// fetched, as it is with a ticket for always. ConfigAt is when that was fetched in the
	// newest of these boots; in the first it was at IgnitionAt.
	Boots    int       `json:"boots,omitempty"`
	ConfigAt time.Time `json:"configAt,omitzero"`
	Client   string    `json:"client,omitempty"` // IP address of the last request
	// Install is how far the probe has come that writes the ticket's disk image, nil before
	// its first report. The registry's endpoint notes it.
	Install *DiskInstall `json:"install,omitempty"`
	// Firmware is what DHCP heard of the machine's firmware, nil when it heard nothing.
	Firmware *BootFirmware `json:"firmware,omitempty"`
	// Sightings are the network cards that asked DHCP for a boot file under the server's
	// UUID and are not known to be the server's, the first first; at most MaxSightings of
	// them. SightedMore is set if there were more.
	Sightings   []Sighting `json:"sightings,omitempty"`
	SightedMore bool       `json:"sightedMore,omitempty"`
	// Uses are what the ticket was asked for and by whom, the first of each kind
	// first; at most MaxTicketUses of them.
	Uses []TicketUse `json:"uses,omitempty"`
}

// BootStage is one thing that a booting server is seen to fetch.
type BootStage string

// The boot stages that the boot service sees, in order.
const (
	StageDHCP     BootStage = "DHCP"        // firmware was offered a boot file
	StageTFTP     BootStage = "TFTP"        // it fetched a boot loader by TFTP
	StageHTTPBoot BootStage = "HTTP boot"   // it fetched a boot loader or a UKI by HTTP
	StageScript   BootStage = "iPXE script" // iPXE fetched its script
	StageKernel   BootStage = "kernel"      // iPXE fetched the kernel
	StageInitrd   BootStage = "initrd"      // iPXE fetched the initramfs
	StageIgnition BootStage = "Ignition"    // what was started fetched its configuration
)

// LastServed is when the server was last given anything, zero = never.
func (p *Progress) LastServed() time.Time {
	if p == nil {
		return time.Time{}
	}
	return slices.MaxFunc([]time.Time{p.DHCPAt, p.TFTPAt, p.HTTPBootAt, p.ScriptAt, p.KernelAt, p.InitrdAt, p.IgnitionAt}, time.Time.Compare)
}

// AskedToBoot is when the server, or a client in its name, last asked for a network boot, zero = never.
func (p *Progress) AskedToBoot() (at time.Time) {
	if p == nil {
		return at
	}
	for _, u := range p.Uses {
		boots := u.What == ThingScript || u.What == ThingBootFile
		if boots && u.Refusal != RefusedAddress && !u.Refusal.Untold() && u.Last.After(at) {
			at = u.Last
		}
	}
	return at
}

// Configured is when the configuration was fetched in the present boot, zero when it was
// not yet.
func (p *Progress) Configured() time.Time {
	switch {
	case p == nil:
		return time.Time{}
	case p.Boots == 0:
		return p.IgnitionAt
	}
	return p.ConfigAt
}

// Reached returns p with stage noted at now, if it was not reached before, and
// whether that changed anything. A script after the configuration begins another boot.
func (p Progress) Reached(stage BootStage, now time.Time) (Progress, bool) {
	switch {
	case stage == StageScript && !p.Configured().IsZero():
		p.Boots, p.ConfigAt = p.Boots+1, time.Time{}
		return p, true
	case stage == StageIgnition && p.Boots > 0 && p.ConfigAt.IsZero():
		p.ConfigAt = now
		return p, true
	}
	at := map[BootStage]*time.Time{
		StageDHCP: &p.DHCPAt, StageTFTP: &p.TFTPAt, StageHTTPBoot: &p.HTTPBootAt,
		StageScript: &p.ScriptAt, StageKernel: &p.KernelAt, StageInitrd: &p.InitrdAt, StageIgnition: &p.IgnitionAt,
	}[stage]
	if at == nil || !at.IsZero() {
		return p, false
	}
	*at = now
	return p, true
}

// Last returns the last stage that was reached and when, or "" if none was.
func (p Progress) Last() (BootStage, time.Time) {
	switch {
	case !p.IgnitionAt.IsZero():
		return StageIgnition, p.IgnitionAt
	case !p.InitrdAt.IsZero():
		return StageInitrd, p.InitrdAt
	case !p.KernelAt.IsZero():
		return StageKernel, p.KernelAt
	case !p.ScriptAt.IsZero():
		return StageScript, p.ScriptAt
	case !p.HTTPBootAt.IsZero():
		return StageHTTPBoot, p.HTTPBootAt
	case !p.TFTPAt.IsZero():
		return StageTFTP, p.TFTPAt
	case !p.DHCPAt.IsZero():
		return StageDHCP, p.DHCPAt
	}
	return "", time.Time{}
}

// LockedOut reports whether the server may have asked to boot with its ticket and was
// never served: such a boot is no failure of the server's.
func (p *Progress) LockedOut() bool {
	if p == nil {
		return false
	}
	isServed := func(u TicketUse) bool { return u.Served() && u.What != ThingImage }
	isUntold := func(u TicketUse) bool { return u.Refusal.Untold() }
	return slices.ContainsFunc(p.Uses, isUntold) && !slices.ContainsFunc(p.Uses, isServed)
}

// BootFirmware is what a machine's firmware says of itself when it asks DHCP for a boot
// file: the client system architecture type (RFC 4578 §2.1, RFC 5970 §3.3).
type BootFirmware struct {
	Architecture string `json:"architecture,omitempty"` // as OCI has it: amd64, arm64; "" = not known
	UEFI         bool   `json:"uefi,omitempty"`         // else BIOS
}
