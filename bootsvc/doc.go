// Package bootsvc is what a machine meets when it boots: the iPXE script, the
// Ignition and the images, over HTTP.
//
// Everything is answered from boot tickets. A server with an open ticket is given
// what its ticket pins, with a token that is good for that ticket alone; a server
// without one is told to boot from disk. What a server fetched is noted before
// the answer goes out, so that a crash never serves a boot that nobody remembers.
//
// A ticket is used from the addresses that netboot.Bindings allow, by who shows its
// token, from when it is armed until it ends. Each request is told to Tickets.Use,
// served or refused; who is refused at another server's address learns neither
// whether there is a ticket nor whether a token is right.
//
// Firmware that boots by HTTP is served boot loaders and UKIs. A machine that
// cannot know its token, for firmware or a UKI asks on its behalf, is known by the
// lease on the address that it asks from. Package netboot names all these files,
// and DHCP and TFTP go by the same names.
//
// An image reference is resolved once, by Images, into digests; layers are
// streamed from their registry and verified on the way, and a layer that turns
// out to be wrong is cut off before its last byte. Ignition makes what a server
// is configured with: documents are translated once and filled in per ticket. A
// claim may bring cloud-init's documents instead, which are served as its data source
// NoCloud asks for them, and an iPXE script of its own. All that a ticket hands out
// beside its image is one payload, sealed by whoever keeps it.
package bootsvc
