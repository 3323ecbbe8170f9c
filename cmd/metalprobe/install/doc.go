// Package install writes a disk image to a disk of the machine, as an install document of the
// daemon says.
//
// Everything is checked before it is written: the disk, what it and all others hold, the table
// of chunks, each chunk. The first MiB, with the partition table, is written last: whenever the
// machine loses its power, its disk has nothing that boots, or all of it.
package install
