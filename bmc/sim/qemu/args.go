package qemu

import (
	"fmt"
	"strconv"
	"strings"

	"ingot/bmc/sim"
)

// files are the files of one machine, and what it is called inside.
type files struct {
	console string   // what the firmware and the system write to the serial port
	disks   []string // raw
	code    string   // UEFI firmware, "" with a BIOS
	vars    string   // its variables, a fresh copy for each start
}

// card is what tells one machine from the others.
type card struct {
	uuid         string
	manufacturer string
	product      string
	sku          string
	serial       string
	macs         []string
	diskSerials  []string
}

// monitorFD is the file descriptor under which qemu has its end of the monitor's
// socket: the first after standard error.
const monitorFD = 3

// args is the command line of QEMU for a boot from the given sources. The machine
// does not start before it is told to.
func (m Machine) args(f files, id card, order []sim.BootSource, httpOnly bool) []string {
	args := []string{
		"-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", strconv.Itoa(m.MemoryMiB),
		"-S", "-nodefaults", "-nographic",
		"-uuid", id.uuid, "-smbios",
		"type=1," + options("manufacturer", id.manufacturer, "product", id.product, "serial", id.serial, "sku", id.sku),
		"-chardev", "socket,id=monitor,fd=" + strconv.Itoa(monitorFD), "-mon", "chardev=monitor,mode=control",
		"-chardev", "file,id=console,append=on," + options("path", f.console), "-serial", "chardev:console",
	}
	args = append(args, m.firmwareArgs(f, httpOnly)...)
	at := bootIndexes(order, len(m.Taps), len(m.Disks))
	for i := range m.Taps {
		args = append(args, m.nicArgs(i, id.macs[i], at)...)
	}
	for i := range m.Disks {
		args = append(args, m.diskArgs(i, f.disks[i], id.diskSerials[i], at)...)
	}
	return append(args, m.ExtraArgs...)
}

func (m Machine) firmwareArgs(f files, httpOnly bool) []string {
	if !m.Firmware.uefi() {
		// Without strict SeaBIOS tries what has no boot index after what has one.
		return []string{"-machine", "pc", "-boot", "strict=on"}
	}
	args := []string{
		"-machine", "q35",
		"-drive", "if=pflash,format=raw,unit=0,readonly=on," + options("file", f.code),
		"-drive", "if=pflash,format=raw,unit=1," + options("file", f.vars),
	}
	if httpOnly {
		for _, family := range []string{"IPv4", "IPv6"} {
			args = append(args, "-fw_cfg", "name=opt/org.tianocore/"+family+"PXESupport,string=no")
		}
	}
	return args
}

func (m Machine) nicArgs(i int, mac string, at []bootIndex) []string {
	id := nicID(i)
	device := "virtio-net-pci,id=" + id + ",mac=" + mac
	var args []string
	if tap := m.Taps[i]; tap != "" {
		args = append(args, "-netdev", "tap,id=net"+strconv.Itoa(i)+",ifname="+tap+",script=no,downscript=no")
		device += ",netdev=net" + strconv.Itoa(i)
	}
	if m.Firmware.uefi() && !m.OptionROM {
		device += ",romfile="
	}
	return append(args, "-device", device+bootIndexOption(at, id))
}

func (m Machine) diskArgs(i int, file, serial string, at []bootIndex) []string {
	n, id := strconv.Itoa(i), diskID(i)
	args := []string{"-blockdev", "driver=file,discard=unmap,node-name=file" + n + "," + options("filename", file)}
	device := map[DiskBus]string{
		DiskVirtio: "virtio-blk-pci",
		DiskNVMe:   "nvme",
		DiskSATA:   "ide-hd,rotation_rate=1,bus=ahci" + n + ".0",
	}[m.Disks[i].Bus]
	if m.Disks[i].Bus == DiskSATA {
		args = append(args, "-device", "ahci,id=ahci"+n)
	}
	if size := m.Disks[i].SectorSize; size != 0 {
		device += fmt.Sprintf(",logical_block_size=%[1]d,physical_block_size=%[1]d", size)
	}
	return append(args, "-device", device+",drive=file"+n+",id="+id+",serial="+serial+bootIndexOption(at, id))
}

// options joins names and values as qemu reads them: a comma within is doubled.
func options(pairs ...string) string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, pairs[i]+"="+strings.ReplaceAll(pairs[i+1], ",", ",,"))
	}
	return strings.Join(all, ",")
}

func nicID(i int) string  { return "nic" + strconv.Itoa(i) }
func diskID(i int) string { return "disk" + strconv.Itoa(i) }

// bootIndex is the place of a device in the boot order, from 1, or -1 when it is
// not booted from.
type bootIndex struct {
	device string
	at     int
}

// bootIndexes are the places of all devices for a boot from the given sources.
func bootIndexes(order []sim.BootSource, nics, disks int) []bootIndex {
	place := make(map[string]int)
	for _, source := range order {
		switch source {
		case sim.BootFromNetwork:
			for i := range nics {
				place[nicID(i)] = len(place) + 1
			}
		case sim.BootFromDisk:
			for i := range disks {
				place[diskID(i)] = len(place) + 1
			}
		case sim.BootFromNothing:
		}
	}
	var all []bootIndex
	add := func(device string) {
		if place[device] == 0 {
			place[device] = -1
		}
		all = append(all, bootIndex{device, place[device]})
	}
	for i := range nics {
		add(nicID(i))
	}
	for i := range disks {
		add(diskID(i))
	}
	return all
}

func bootIndexOption(all []bootIndex, device string) string {
	for _, b := range all {
		if b.device == device && b.at > 0 {
			return fmt.Sprintf(",bootindex=%d", b.at)
		}
	}
	return ""
}
