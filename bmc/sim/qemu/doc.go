// Package qemu puts virtual machines behind the BMCs of a simulated rack: real firmware
// that boots over a real network, in the network namespace of this process. The taps
// have to be there before; the rack's BootURL plays no part, for such a machine learns
// by DHCP what to boot. KVM is never used.
//
//	rack, err := sim.New(sim.Options{
//		SystemsPerBMC: 2, Host: "192.0.2.10", Port: 8443, StateDir: dir,
//		Machines: qemu.Machines{
//			{Firmware: qemu.FirmwareBIOS, Taps: []string{"tap0"}},
//			{Firmware: qemu.FirmwareUEFI, Taps: []string{"tap1"}, Disks: []qemu.Disk{{Bus: qemu.DiskNVMe, SizeMiB: 64}}},
//		},
//	})
//	go rack.Run(ctx) // and all processes end with it, however that ends
//	s := rack.Servers()[0]
//	s.UUID(), s.MAC(0) // as firmware, system and Redfish inventory show them
//	s.Console()        // what the serial port said, for the end of a failed test
//	s.DiskFiles()      // raw, to be compared with zeros once the machine is off
//	s.Boots(), s.Resets(), s.Events(), s.PID()
//
// Power is that of the process: PowerState is On while it runs, PoweringOff until
// it is gone, Paused when qemu stops it because a disk cannot be written. ForceOff
// ends it and ForceRestart resets it. The graceful requests press the power button:
// the guest decides, and after GracefulRestart it is switched on again once it has
// ended. A process that dies is a machine that is Off, and the events hold the last
// words of qemu.
//
// The boot override counts each time the firmware starts, also when the guest
// restarts by itself, and Once is used up by that. An override is followed by the
// devices' places in the boot order, which qemu lets change while it runs; only a
// change from PXE to UEFI HTTP boot or back takes another process. Without an
// override the disks are booted, with SetNetworkFirst the network before them.
// A boot record says where a boot began; what came of it the boot service knows.
package qemu
