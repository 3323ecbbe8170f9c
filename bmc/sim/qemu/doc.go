// Package qemu puts QEMU virtual machines behind the BMCs of a simulated rack: real
// firmware that boots over a real network, in the network namespace of this process. The
// tap interfaces have to exist; the rack's BootURL is not used, because such a machine
// learns by DHCP what to boot. KVM is never used.
//
//	rack, err := sim.New(sim.Options{
//		SystemsPerBMC: 2, Host: "192.0.2.10", Port: 8443, StateDir: dir,
//		Machines: qemu.Machines{
//			{Firmware: qemu.FirmwareBIOS, Taps: []string{"tap0"}},
//			{Firmware: qemu.FirmwareUEFI, Taps: []string{"tap1"}, Disks: []qemu.Disk{{Bus: qemu.DiskNVMe, SizeMiB: 64}}},
//		},
//	})
//	go rack.Run(ctx) // all processes end when it ends, for whatever reason
//	s := rack.Servers()[0]
//	s.UUID(), s.MAC(0) // as firmware, system and Redfish inventory show them
//	s.Console()        // the file with the output of the serial port
//	s.DiskFiles()      // raw disks, to be compared with zeros once the machine is off
//	s.Boots(), s.Resets(), s.Events(), s.PID()
//
// Power is that of the process: PowerState is On while it runs, PoweringOff until it has
// ended, Paused when QEMU stops it because a disk cannot be written. ForceOff ends it and
// ForceRestart resets it. The graceful requests press the power button: the guest
// decides, and after GracefulRestart it is powered on again once it has ended. If a
// process dies, its machine is Off, and the events hold QEMU's last output.
//
// The boot override applies each time the firmware starts, also when the guest restarts
// by itself, and Once is used up by that. An override sets the devices' boot indexes,
// which QEMU can change while it runs; only a change from PXE to UEFI HTTP boot or back
// takes another process. Without an override the disks are booted, after SetNetworkFirst
// the network before them. A boot record says where a boot began; its outcome is known to
// the boot service alone.
package qemu
