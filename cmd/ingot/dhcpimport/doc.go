// Package dhcpimport reads which addresses another DHCP server has reserved and leased, from the
// files of Kea, dnsmasq or ISC dhcpd, and makes Endpoint manifests of them.
//
// A file may be anybody's: how much of it is read is bounded, and what is not understood is left
// out and listed with its line. Nothing that a file names is opened.
package dhcpimport
