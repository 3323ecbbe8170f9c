// Package netboot decides which boot file a machine's firmware is told and from where
// a boot ticket may be used, and knows the boot loaders that are served: one place
// that names every file for DHCP, TFTP and HTTP.
//
// A DHCP server makes a Raw of what a packet holds, in either version, and lets
// Classify say who asks. With the boot ticket that Tickets has for that machine,
// Site.BootFile names the file; an answer that is a boot loader goes out only if
// a LoopLimiter lets it, for a loader that never gets further would go round for ever.
// Whatever BootFile names is found by the TFTP server and the HTTP server under
// that name, since both serve Loaders.
//
// AddressRules say from which addresses a server may use its ticket, by the lease table;
// Bound is that decision alone.
package netboot
