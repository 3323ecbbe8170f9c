package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ingot/bmc/sim/qemu"
)

// qemuFlags are the flags of `ingot sim` for QEMU virtual machines.
type qemuFlags struct {
	QEMU      bool              `name:"qemu" help:"Put QEMU virtual machines behind the BMCs: real firmware boots over a real network. They need no KVM."`
	Firmware  string            `placeholder:"KIND" help:"With --qemu, the firmware of the machines: bios, uefi or uefi-http (uefi with PXE switched off). Default: bios."`
	Memory    int               `placeholder:"MIB" help:"With --qemu, memory of each machine. Default: 512."`
	Disk      []string          `placeholder:"BUS" help:"With --qemu, a disk of each machine: virtio, sata or nvme; may be repeated. Default: one virtio."`
	DiskSize  int64             `placeholder:"MIB" help:"With --qemu, size of each disk, a sparse file in --state-dir. Default: 4096."`
	Tap       []string          `placeholder:"NAME" help:"With --qemu, a tap interface for a NIC; the same number for each server, those of the first server first."`
	Bridge    *interfaceAddress `placeholder:"NAME[=IP/BITS]" help:"Make this bridge, with this address of this machine, and plug each server into it by a tap of its own; implies --qemu. Default of the address: 10.20.0.1/24."`
	OptionROM bool              `name:"option-rom" help:"With --qemu and uefi, boot with iPXE in the NIC's option ROM instead of the firmware's own client."`
	QEMUArg   []string          `name:"qemu-arg" sep:"none" placeholder:"ARG" help:"With --qemu, an additional argument for QEMU, such as --qemu-arg=-snapshot; may be repeated."`
}

// given returns the flags that were given and mean nothing without --qemu.
func (f qemuFlags) given() []string {
	var all []string
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{name: "--firmware", set: f.Firmware != ""},
		{name: "--memory", set: f.Memory != 0},
		{name: "--disk", set: len(f.Disk) > 0},
		{name: "--disk-size", set: f.DiskSize != 0},
		{name: "--tap", set: len(f.Tap) > 0},
		{name: "--option-rom", set: f.OptionROM},
		{name: "--qemu-arg", set: len(f.QEMUArg) > 0},
	} {
		if flag.set {
			all = append(all, flag.name)
		}
	}
	return all
}

// machines returns a virtual machine for each of n servers, none without --qemu.
func (f qemuFlags) machines(n int) (qemu.Machines, error) {
	if !f.QEMU {
		if given := f.given(); len(given) > 0 {
			return nil, fmt.Errorf("%s: only QEMU virtual machines have that; add --qemu", strings.Join(given, ", "))
		}
		return nil, nil
	}
	if n < 1 {
		return nil, errors.New("--qemu: there have to be BMCs and servers")
	}
	if len(f.Tap)%n != 0 {
		return nil, fmt.Errorf("--tap: %d of them for %d servers; each server takes as many as the others", len(f.Tap), n)
	}
	if f.OptionROM && f.firmware() == qemu.FirmwareBIOS {
		return nil, errors.New("--option-rom: a BIOS has no other way to boot the network; leave it out, or choose --firmware uefi")
	}
	machines := make(qemu.Machines, n)
	for i := range machines {
		nics := len(f.Tap) / n
		machines[i] = qemu.Machine{
			Firmware: f.firmware(), MemoryMiB: f.Memory, Disks: f.disks(), Taps: slices.Clone(f.Tap[i*nics : (i+1)*nics]),
			OptionROM: f.OptionROM, ExtraArgs: f.QEMUArg,
		}
	}
	return machines, nil
}

// bridge is the network that --bridge asks for, for n servers.
func (f qemuFlags) bridge(n int) (*bridge, error) {
	if len(f.Tap) > 0 {
		return nil, errors.New("--bridge and --tap: a server is plugged into one of them")
	}
	return newBridge(*f.Bridge, n)
}

func (f qemuFlags) firmware() qemu.Firmware {
	if f.Firmware == "" {
		return qemu.FirmwareBIOS
	}
	return qemu.Firmware(f.Firmware)
}

func (f qemuFlags) disks() []qemu.Disk {
	buses := f.Disk
	if len(buses) == 0 {
		buses = []string{string(qemu.DefaultDisk.Bus)}
	}
	size := f.DiskSize
	if size == 0 {
		size = qemu.DefaultDisk.SizeMiB
	}
	disks := make([]qemu.Disk, len(buses))
	for i, bus := range buses {
		disks[i] = qemu.Disk{Bus: qemu.DiskBus(bus), SizeMiB: size}
	}
	return disks
}
