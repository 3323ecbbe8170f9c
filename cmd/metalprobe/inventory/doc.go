// Package inventory reads what a machine is made of: firmware, processors,
// memory, disks, network ports, PCI devices and LLDP neighbours.
//
// Nearly everything comes from files below /sys and /proc, so a Host with a Root
// of its own reads a machine that stands in a folder. What is no file (addresses,
// ethtool, SG_IO, lldpctl) is a function of the Host. What a machine says of
// itself is not trusted: every file, list and string is bounded, and a part that
// cannot be read is empty, never an error.
package inventory
