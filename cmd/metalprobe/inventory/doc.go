// Package inventory reads what a machine is made of: firmware, processors,
// memory, disks, network ports, PCI devices and LLDP neighbours.
//
// Nearly everything comes from files below /sys and /proc, so a Host with another Root
// reads a machine from a folder. Sources that are no files (addresses, ethtool, SG_IO,
// lldpctl) are functions of the Host. A machine's data is not trusted: every file, list
// and string is bounded, and a part that cannot be read is empty, never an error.
package inventory
