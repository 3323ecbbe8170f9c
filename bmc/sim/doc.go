// Package sim is a rack of simulated BMCs with real HTTPS, whose servers really boot over
// HTTP: for trying Ingot out, for tests and for benchmarks.
//
// A Rack listens before New returns, one TLS port for each BMC, and does
// everything else inside Run:
//
//	rack, err := sim.New(sim.Options{BMCs: 3, BootURL: "http://127.0.0.1:8082", Delays: sim.DefaultDelays()})
//	go rack.Run(ctx)
//	for path, content := range rack.Manifests() { … } // what a user would commit
//
// # Redfish
//
// Each BMC serves the tree of a small Redfish service (DSP0266): sessions and
// basic authentication, ETags, $expand, PATCH with extended errors, resets. A
// Personality makes it one vendor's, as recordings show those: which resources and
// properties there are, their IDs, reset types, the boot override, $expand, ETags and
// sessions. It is a row of a table, and nothing else knows vendors.
//
// # Machines
//
// A server that is powered on runs its firmware, which follows the boot override (network
// once, else disk). A network boot fetches the iPXE script at <BootURL>/ipxe/{uuid}, the
// files that the script names, and the Ignition that the kernel's command line names. If
// the Ignition runs metalprobe the server registers, or wipes its disk and reports;
// anything else is an operating system, which is now on the disk, and posts the boot state
// if /etc/ingot/bootstate says where. A metalprobe that is to install chooses a disk, writes the
// chunks of a disk image to it, which it has checked, and switches the machine off: its system
// posts the boot state when it runs from disk, if its seed says where. At rest a server costs neither a goroutine nor a
// timer. UEFI HTTP boot does the same: the script stands for the loader that firmware
// would fetch first.
//
// Firmware tries a boot server that refuses connections, or answers 503, three times with
// Delays.NetworkRetry between, and then boots from disk. A machine that finds nothing
// there stays on, at "no bootable device", until it is restarted.
//
// # Virtual machines
//
// With Options.Machines real firmware boots behind the same BMCs: package qemu has such
// machines. BootURL is not used then.
//
// # Ground truth
//
// Rack.Events and Server.Events list what really happened, in order: power changes with
// their causes, restarts, what a network boot fetched, what was installed, wiped or booted
// from disk, and the Redfish requests that were to change something. Tests compare it with
// Ingot's status. A virtual machine reports its power only.
//
// # Faults
//
// SetFault of a BMC or of a Server makes it misbehave until ClearFault; Faults lists all
// faults. Virtual machines refuse those of the software that a pretended machine runs, such
// as the probe.
//
// # Control
//
// ControlHandler lets a person do over HTTP what tests do in Go:
//
//	GET    /servers                      all servers, what they are and do
//	GET    /servers/{name}               one, with its boots, resets, installs, events and files
//	POST   /servers/{name}/power-cut     the power fails now
//	POST   /servers/{name}/press-power   the button on the front is pressed
//	POST   /servers/{name}/running       {"image": "…"}: runs this and has it on its disk
//	GET    /bmcs                         all BMCs, their addresses, requests and sessions
//	POST   /bmcs/{name}/unplug           BMC and machines lose the mains now
//	POST   /bmcs/{name}/plug             they have it again; the machines stay off
//	GET    /faults                       the faults that are set, and those there are
//	POST   /faults                       {"target": "rack1-bmc-01", "fault": "slow", "delay": "2s"}; without target on every BMC
//	DELETE /faults?target=…&fault=…      clears one; without fault all of the target's, without both all
package sim
