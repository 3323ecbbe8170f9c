// Package registry keeps what is known: the records of what was decided, what was
// observed, DHCP's leases, and the sealed secrets that boot tickets hand out.
//
// Reads come from a typed copy in memory. Writes go through to a store, a file or Redis
// (see ingot/registry/store), with a fencing number, so that a daemon that lost leadership
// cannot write. Everyone who writes at the same time shares one commit. What servers
// report comes from the endpoint of ingot/registry/probe.
//
// The leader is the only writer, so its memory is the truth: a store that was emptied,
// replaced, rolled back or lost some of its values under it is written again, and no server
// changes hands (law 3). A process that takes over from a leader that it followed does the same;
// Damage reports the records that neither memory nor store has.
// Leases alone are not in its memory, because DHCP has them in its own: the registry says
// when to write them again.
package registry
