// Package journal keeps DHCP's leases in a file to which each commit is appended: one
// write and one fdatasync. A B+ tree such as bbolt's writes several pages and syncs twice
// for the same, and leases change more often than all else that is stored.
//
// It knows names and values, not what a lease is. Append makes changes durable, all or
// none; All reads what is kept, which is not in memory; Compact goes on with a file
// without what was replaced since, which a goroutine writes beside those who save. A write
// that a crash cut short is as if it had not begun, and anything else that is not as it was
// written is reported, and costs no more than the commit that it is in.
package journal
