// Package image makes the discovery image: a Linux kernel and an initramfs whose
// init is metalprobe, both also as one UEFI program (a unified kernel image), and
// all three as an OCI image that Ingot can boot.
//
// The kernel comes from Debian's package or from files of the user's own. The
// same input gives the same bytes.
package image
