// Package life takes machines with real firmware through all that a server lives
// with Ingot: discovery, a claim, an installation, a power cut, a restart, the end
// of the claim, the wipe of its disk, and being Available again.
//
// The machines are qemu's, one with a BIOS and one with UEFI, side by side. What a
// claim boots is a small system of our own (folder guest), which installs itself on
// the machine's disk with what its Ignition says. Asserted is what a person would
// look at: the status branch, the disks as files of this computer, and the witness,
// a server on the machines' link that every start of the system tells who it is.
//
// Apart from them, what docs/first-rack.md says is typed on a machine of its own, and has to
// come to a claimed server.
//
// It needs root, and the programs that .ci/setup installs. Without them it is
// skipped and says what to install; with INGOT_LAB=required it fails instead.
package life
