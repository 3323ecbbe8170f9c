// Package sim is a rack of simulated BMCs over real HTTPS whose servers really
// boot over HTTP, for trying Ingot out, for tests and for benchmarks.
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
// Personality makes it look like one vendor's: names, paths, reset types and
// the rules for the boot override.
//
// # Machines
//
// A server that is switched on runs its firmware, which follows the boot override
// (network once, else disk). A network boot fetches the iPXE script at
// <BootURL>/ipxe/{uuid}, what the script names, and the Ignition that the kernel
// line names. If that runs metalprobe the server registers, or wipes its disk and
// reports; anything else is an operating system, which is now on the disk, and
// posts the boot state if /etc/ingot/bootstate says where. At rest a server
// costs neither a goroutine nor a timer. UEFI HTTP boot takes the same path: the
// script stands for the loader that firmware would fetch first.
//
// Firmware asks a boot server that refuses connections, or answers 503, three times
// with Delays.NetworkRetry between, and then goes on to the disk. A machine that finds
// nothing there stays on, at "no bootable device", until somebody restarts it.
//
// # Virtual machines
//
// With Options.Machines real firmware boots behind the same BMCs: package qemu has such
// machines. BootURL plays no part then.
//
// # Ground truth
//
// Rack.Events and Server.Events tell what really happened, in order: power changes with
// what caused them, restarts, what a network boot fetched, what was installed, wiped or
// booted from disk, and the Redfish requests that were to change something. It is what
// a test compares with what Ingot says. A virtual machine tells its power only.
//
// # Faults
//
// SetFault of a BMC or of a Server makes it misbehave until ClearFault; Faults
// lists what there is. Those of what a pretended machine runs, such as the probe,
// are refused by virtual machines.
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
//	GET    /faults                       the faults that are set, and those there are
//	POST   /faults                       {"target": "rack1-bmc-01", "fault": "slow", "delay": "2s"}
//	DELETE /faults?target=…&fault=…      clears one; without fault all of the target's, without both all
package sim
