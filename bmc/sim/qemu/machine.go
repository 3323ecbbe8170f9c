package qemu

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"ingot/bmc/sim"
	"ingot/model"
)

// Machine is what one virtual machine is made of. The zero value is a PC with
// a BIOS, 512 MiB of memory, one blank disk and no network. Its UUID, serial
// numbers and MAC addresses are the server's. It has one processor, which qemu
// emulates: KVM is never used.
type Machine struct {
	Firmware  Firmware // FirmwareBIOS when empty
	MemoryMiB int      // 512 when 0
	// Disks are raw files, blank at first; one of DefaultDisk when nil.
	Disks []Disk
	// Taps are the tap interfaces that the NICs are plugged into, one each, in the
	// network namespace of this process. "" is a NIC without a cable.
	Taps []string
	// OptionROM gives the NICs of a UEFI machine QEMU's option ROM, which is iPXE.
	// Without it the firmware's own PXE and HTTP clients boot. BIOS always has it.
	OptionROM bool
	// OVMFDir is where the UEFI firmware is, DefaultOVMFDir when empty.
	OVMFDir string
	// Command is how qemu is called, qemu-system-x86_64 when empty. Others, such as
	// "ip", "netns", "exec", "lab", "qemu-system-x86_64", run it elsewhere; then Taps
	// are looked for by qemu alone.
	Command []string
	// ExtraArgs follow all other arguments of QEMU.
	ExtraArgs []string
}

// Firmware is what a machine starts with.
type Firmware string

// The kinds of firmware.
const (
	FirmwareBIOS     Firmware = "bios"      // SeaBIOS; the network is booted by iPXE in the NIC's option ROM
	FirmwareUEFI     Firmware = "uefi"      // OVMF; PXE, then HTTP
	FirmwareUEFIHTTP Firmware = "uefi-http" // OVMF with PXE switched off
)

// Firmwares are all kinds of firmware.
func Firmwares() []Firmware { return []Firmware{FirmwareBIOS, FirmwareUEFI, FirmwareUEFIHTTP} }

func (f Firmware) uefi() bool { return f != FirmwareBIOS }

// DiskBus is how a disk is attached.
type DiskBus string

// The buses of disks.
const (
	DiskVirtio DiskBus = "virtio"
	DiskSATA   DiskBus = "sata"
	DiskNVMe   DiskBus = "nvme"
)

// DiskBuses are all buses of disks.
func DiskBuses() []DiskBus { return []DiskBus{DiskVirtio, DiskSATA, DiskNVMe} }

// Disk is one disk of a machine.
type Disk struct {
	Bus     DiskBus
	SizeMiB int64
	// SectorSize is that which the machine sees, in bytes: 512 or 4096; 0 = 512.
	SectorSize int
}

// DefaultDisk is what a machine has that is not told otherwise. The file is
// sparse: what is not written takes no room.
var DefaultDisk = Disk{Bus: DiskVirtio, SizeMiB: 4096}

// DefaultOVMFDir is where Debian's package ovmf puts the firmware.
const DefaultOVMFDir = "/usr/share/OVMF"

// program is the emulator, of Debian's package qemu-system-x86.
const program = "qemu-system-x86_64"

// Bounds of a machine.
const (
	minMemoryMiB = 16
	maxMemoryMiB = 1 << 20
	maxDisks     = 6 // as many ports as an AHCI controller has
	maxDiskMiB   = 16 << 20
	maxNICs      = 8
)

// interfaceName is what Linux takes as a name and qemu as part of an argument.
var interfaceName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`)

// withDefaults returns m with what was left out filled in.
func (m Machine) withDefaults() Machine {
	m.Firmware = cmp.Or(m.Firmware, FirmwareBIOS)
	m.MemoryMiB = cmp.Or(m.MemoryMiB, 512)
	m.OVMFDir = cmp.Or(m.OVMFDir, DefaultOVMFDir)
	if m.Disks == nil {
		m.Disks = []Disk{DefaultDisk}
	}
	return m
}

// Machines are the machines of a rack, one for each server, in the order of
// Rack.Servers. They implement sim.Machines.
type Machines []Machine

// Check says what is wrong with the machines, of which there have to be as many as
// servers, and what they lack on this computer.
func (machines Machines) Check(servers int) error {
	if len(machines) != servers {
		return fmt.Errorf("%d QEMU virtual machines for %d servers: one is needed for each", len(machines), servers)
	}
	var errs []error
	plugged := make(map[string]bool)
	for i, m := range machines {
		m = m.withDefaults()
		if err := errors.Join(m.validate(), m.present(), m.plug(plugged)); err != nil {
			errs = append(errs, fmt.Errorf("machine %d: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

// Make makes the i-th machine, and its disks if they are not there yet.
func (machines Machines) Make(c *sim.Chassis, i int) (sim.Machine, sim.Build, error) {
	v, err := newVM(c, machines[i])
	if err != nil {
		return nil, sim.Build{}, err
	}
	return v, v.spec.build(c.BootTargets()), nil
}

// validate says what is wrong with m, whose defaults are filled in, wherever it
// is to run.
func (m Machine) validate() error {
	var errs []error
	if !slices.Contains(Firmwares(), m.Firmware) {
		errs = append(errs, fmt.Errorf("firmware %q: there are %v", m.Firmware, Firmwares()))
	}
	if m.MemoryMiB < minMemoryMiB || m.MemoryMiB > maxMemoryMiB {
		errs = append(errs, fmt.Errorf("%d MiB of memory: %d to %d are possible", m.MemoryMiB, minMemoryMiB, maxMemoryMiB))
	}
	if len(m.Disks) > maxDisks {
		errs = append(errs, fmt.Errorf("%d disks: at most %d are possible", len(m.Disks), maxDisks))
	}
	for _, d := range m.Disks {
		if !slices.Contains(DiskBuses(), d.Bus) {
			errs = append(errs, fmt.Errorf("disk on %q: there are %v", d.Bus, DiskBuses()))
		}
		if d.SizeMiB < 1 || d.SizeMiB > maxDiskMiB {
			errs = append(errs, fmt.Errorf("disk of %d MiB: 1 to %d are possible", d.SizeMiB, maxDiskMiB))
		}
		if !slices.Contains([]int{0, 512, 4096}, d.SectorSize) {
			errs = append(errs, fmt.Errorf("disk with sectors of %d bytes: 512 and 4096 are possible", d.SectorSize))
		}
	}
	if len(m.Taps) > maxNICs {
		errs = append(errs, fmt.Errorf("%d NICs: at most %d are possible", len(m.Taps), maxNICs))
	}
	return errors.Join(errs...)
}

// present says which programs and files are missing on this computer, and what
// package has them.
func (m Machine) present() error {
	var errs []error
	if _, err := exec.LookPath(m.command()[0]); err != nil {
		err = fmt.Errorf("%s is not to be found: %w", m.command()[0], err)
		if len(m.Command) == 0 {
			err = fmt.Errorf("%s is not installed: apt-get install qemu-system-x86", program)
		}
		errs = append(errs, err)
	}
	if m.Firmware.uefi() {
		_, _, err := m.ovmf()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (m Machine) command() []string {
	if len(m.Command) == 0 {
		return []string{program}
	}
	return m.Command
}

// ovmf finds the UEFI firmware: its code, and the variables as it is delivered.
func (m Machine) ovmf() (code, vars string, err error) {
	for _, size := range []string{"_4M", ""} {
		code = filepath.Join(m.OVMFDir, "OVMF_CODE"+size+".fd")
		vars = filepath.Join(m.OVMFDir, "OVMF_VARS"+size+".fd")
		if isFile(code) && isFile(vars) {
			return code, vars, nil
		}
	}
	return "", "", fmt.Errorf("UEFI firmware is not in %s (OVMF_CODE_4M.fd and OVMF_VARS_4M.fd): apt-get install ovmf", m.OVMFDir)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// plug says which taps cannot be used, or are in use by a machine before.
func (m Machine) plug(plugged map[string]bool) error {
	var errs []error
	for _, tap := range m.Taps {
		switch {
		case tap == "":
			continue
		case !interfaceName.MatchString(tap):
			errs = append(errs, fmt.Errorf("tap %q: that is no name of an interface", tap))
		case plugged[tap]:
			errs = append(errs, fmt.Errorf("tap %s: one NIC can be plugged into it, not two", tap))
		case len(m.Command) == 0:
			errs = append(errs, checkTap(tap))
		}
		plugged[tap] = true
	}
	return errors.Join(errs...)
}

// checkTap looks for a tap interface in the network namespace of this process.
func checkTap(name string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		return fmt.Errorf("tap %s: there is no such interface in this network namespace; "+
			"make it: ip tuntap add %[1]s mode tap && ip link set %[1]s up", name)
	}
	_, err := os.Stat(filepath.Join("/sys/class/net", name, "tun_flags"))
	if errors.Is(err, fs.ErrNotExist) && isSysfsOurs() {
		return fmt.Errorf("tap %s: that interface is no tap; make one: ip tuntap add NAME mode tap", name)
	}
	return nil
}

// isSysfsOurs reports whether /sys shows the network namespace of this process,
// and not that of whoever mounted it.
func isSysfsOurs() bool {
	all, err := net.Interfaces()
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(all, func(i net.Interface) bool {
		_, err := os.Stat(filepath.Join("/sys/class/net", i.Name))
		return err != nil
	})
}

func (m Machine) build(targets []string) sim.Build {
	b := sim.Build{NICs: len(m.Taps), Modes: []string{"UEFI"}, ByDHCP: true, Hardware: &sim.Hardware{
		CPUVendor: "QEMU", CPUID: "AuthenticAMD", CPUModel: "QEMU TCG CPU version 2.5+",
		Sockets: 1, Cores: 1, SingleThreaded: true,
		DIMMs: 1, DIMMBytes: int64(m.MemoryMiB) << 20, DIMMVendor: "QEMU", DIMMPart: "RAM",
		NICVendor: "Red Hat, Inc.", NICModel: "Virtio network device", NICMbps: 10000,
		Drives: m.inventory(),
	}}
	if m.Firmware == FirmwareBIOS {
		b.Modes = []string{"Legacy"}
	}
	for _, target := range targets {
		if m.Firmware.boots(target) {
			b.Targets = append(b.Targets, target)
		}
	}
	return b
}

// boots reports whether an override to the target can be followed.
func (f Firmware) boots(target string) bool {
	switch target {
	case "None", "Hdd":
		return true
	case string(model.BootPXE):
		return f != FirmwareUEFIHTTP
	case string(model.BootUEFIHTTP):
		return f != FirmwareBIOS
	}
	return false
}

// inventory are the disks under the names that Linux gives them.
func (m Machine) inventory() []sim.Drive {
	kinds := map[DiskBus]sim.Drive{
		DiskVirtio: {Name: "vd%c", Vendor: "QEMU", Model: "Virtio block device", Protocol: "PCIe", Media: "HDD"},
		DiskSATA:   {Name: "sd%c", Vendor: "ATA", Model: "QEMU HARDDISK", Protocol: "SATA", Media: "SSD"},
		DiskNVMe:   {Name: "nvme%dn1", Vendor: "QEMU", Model: "QEMU NVMe Ctrl", Protocol: "NVMe", Media: "SSD"},
	}
	var drives []sim.Drive
	seen := make(map[DiskBus]int)
	for _, d := range m.Disks {
		kind, n := kinds[d.Bus], seen[d.Bus]
		seen[d.Bus]++
		if d.Bus != DiskNVMe {
			n += 'a'
		}
		kind.Name, kind.Bytes = fmt.Sprintf(kind.Name, n), uint64(d.SizeMiB)<<20
		drives = append(drives, kind)
	}
	return drives
}
