// Package wipe clears the disks of a machine before its next user gets it.
//
// Choose decides which disks are wiped, by what package inventory found; a Wiper wipes
// them and reports the outcome of each. A disk that holds data and was not cleared is
// failed, never skipped: what a report calls done is done. The kernel has the last word:
// a disk is opened exclusively, which the kernel refuses while anything uses the disk, in
// whatever mount namespace.
package wipe
