// Package disks decides which disks a wipe accounts for (law 7): each disk that a server is known
// to have, or to have had, was wiped, or a person has accepted that it is gone.
package disks
