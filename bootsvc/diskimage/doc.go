// Package diskimage turns disk images as they are published into what a probe writes to a disk.
//
// An image is raw or qcow2, as it is or packed (zstd, gzip, xz, bzip2). A Store fetches it once,
// checks the digest of the whole file before anything in it is looked at, and keeps it as chunks
// of 4 MiB, each a frame of zstd with its SHA-256 (model.ChunkTable), of which those of zeros
// take nothing. Then the disk in the chunks is read as firmware and kernels would: its partition
// table, how it starts, and what it has that no other disk of a server may have.
//
// Every byte is hostile until checked. What a file claims of its size is bounded before memory
// or disk is given to it; the header of a qcow2 is judged before any library reads it, for
// such a file can name others on this machine to be read in its place. What cannot be taken is
// refused with what to do (Error).
package diskimage
