// Package probe serves the endpoint that servers report to: what their probe found,
// that what they booted is up, and how their disks were wiped. It speaks the protocol
// of upstream's probes, with the token of a boot ticket in the path.
//
// A report counts for the one server with its system UUID, if the token is of that
// server's boot ticket and it comes from an address that the server may have. Who is
// refused learns nothing of servers, tickets and tokens. What is kept, and whether it is
// news, is for the registry to decide, which is asked through a small interface.
package probe
