// Package bootsvc is what a machine meets when it boots: the iPXE script, the
// Ignition and the images, over HTTP.
//
// Everything is answered from boot tickets. A server with an open ticket is given
// what its ticket pins, with a token that is good for that ticket alone; a server
// without one is told to boot from disk. What a server fetched is noted before
// the answer goes out, so that a crash never serves a boot that nobody remembers.
//
// A ticket is used from the addresses that netboot.AddressRules allow, by whoever shows its
// token, from when it is armed until it ends. Tickets.Use learns of each request,
// served or refused; a client that is refused at another server's address learns neither
// whether there is a ticket nor whether a token is right.
//
// Firmware that boots by HTTP is served boot loaders and UKIs. A machine that
// cannot know its token, for firmware or a UKI asks on its behalf, is known by the
// lease on the address that it asks from. Package netboot names all these files,
// and DHCP and TFTP go by the same names.
//
// All paths are listed in route.go, and each thing that is served has a file of its own:
// iPXE scripts (ipxe.go, and their text in script.go), Ignition, cloud-init's files,
// layers of images, UKIs and the document of UEFI HTTP boot (httpboot.go), boot loaders.
// Who may have what is in ticket.go.
//
// What is served is made below: package oci resolves image references, once, and fetches
// layers, which package imagecache verifies and keeps; package ignition makes what a
// server is configured with, as one payload per ticket that whoever keeps it seals.
package bootsvc
