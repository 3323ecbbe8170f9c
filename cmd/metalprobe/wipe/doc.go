// Package wipe clears the disks of a machine before its next user gets it.
//
// Choose decides which disks, from what package inventory saw of them; a Wiper
// then does it and says of each disk how it went. A disk that holds data and was
// not cleared is failed, never skipped: what a report calls done is done. The
// kernel has the last word, for a disk is opened exclusively, which it refuses
// while anything uses the disk, in whatever mount namespace.
package wipe
