// Package machine makes a whole machine of metalprobe: started by the kernel as
// the only program of an initramfs it loads drivers, configures the network, asks
// Ingot what to do, does it, and stays until it is powered off.
//
// The first process (Supervise) only mounts, writes to the consoles, collects dead
// processes and watches over the second, which does the work (Run). So whatever
// happens to the work, a panic or the end of all memory, the kernel does not: the
// first process tells what happened and restarts the machine.
package machine
