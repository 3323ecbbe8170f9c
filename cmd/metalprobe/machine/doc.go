// Package machine is metalprobe as the init of a machine: started by the kernel as the
// only program of an initramfs, it loads drivers, configures the network, fetches the
// machine's Ignition from Ingot, does what that says, and runs until it is powered off.
//
// The first process (Supervise) only mounts file systems, writes to the consoles, reaps
// processes and supervises the second, which does the work (Run). So whatever happens to
// the work, a panic or the end of all memory, the kernel does not panic: the first
// process prints what happened and restarts the machine.
package machine
