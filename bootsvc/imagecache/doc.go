// Package imagecache keeps image blobs on disk, so that a row of machines that
// boots the same image costs its registry one copy, and boots on while the registry
// is down.
//
// A blob is known by its digest. Whoever asks for one that is being fetched follows
// the fetch that is under way; its last bytes are given out only once all of it has
// been hashed, so that nobody ever holds a whole blob that is wrong. A file gets its
// final name when it is complete, verified and durable. Since a disk may lie, each
// file is hashed again before its first use after a restart, and when it was changed
// behind the cache's back; whoever is being sent one that changes is cut off.
//
// A complete blob is an open file that the kernel can send by itself (sendfile). When
// the disk is full, or nothing may be evicted, a blob is streamed past the cache, as
// well verified as the others.
package imagecache
