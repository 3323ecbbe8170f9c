package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// minServerBits bounds how small a network can be that has room for addresses of servers.
const minServerBits = 29

// bootComment begins the part of the template that networkSettings replaces, up to the next
// empty line.
const bootComment = "# How servers reach this machine;"

// resolve fills in the address, if only the interface is given: the IPv4 address that the
// interface has. With several, one has to be chosen.
func (i interfaceAddress) resolve() (interfaceAddress, error) {
	if i.address.IsValid() {
		return i, nil
	}
	link, err := net.InterfaceByName(i.name)
	if err != nil {
		return i, fmt.Errorf("--dhcp %s: this machine has no such interface; write %[1]s=ADDRESS/BITS if it will have one", i.name)
	}
	addresses, err := link.Addrs()
	if err != nil {
		return i, fmt.Errorf("--dhcp %s: %w", i.name, err)
	}
	var found []string
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			i.address = p
			found = append(found, p.String())
		}
	}
	switch len(found) {
	case 0:
		return i, fmt.Errorf("--dhcp %s: the interface has no IPv4 address; give it one, or write %[1]s=ADDRESS/BITS", i.name)
	case 1:
		return i, nil
	}
	return i, fmt.Errorf("--dhcp %s: the interface has several IPv4 addresses; choose one: %[1]s=%s", i.name, strings.Join(found, ", "+i.name+"="))
}

// networkSettings are the settings for a network on which Ingot gives servers their addresses
// and boots them.
func networkSettings(at interfaceAddress) (string, error) {
	if !at.address.Addr().Is4() || at.address.Bits() > minServerBits {
		return "", fmt.Errorf("--dhcp %s=%s: write an IPv4 address with at most %d bits for the network", at.name, at.address, minServerBits)
	}
	first, last := serverRange(at.address)
	return fmt.Sprintf(`# How servers reach this machine.
boot:
  url: http://%[1]s:8082
registry:
  url: http://%[1]s:10000

# The servers' network. Ingot gives them their addresses and boot loaders.
tftp:
  listen: ":69"
dhcp:
- name: %[2]s
  interface: %[3]q
  role: host
  subnets:
  - {cidr: %[4]s, ranges: [%[5]s-%[6]s]}
`, at.address.Addr(), strings.ReplaceAll(at.name, ".", "-"), at.name, at.address.Masked(), first, last), nil
}

// serverRange is the half of a network that this machine's own address is not in.
func serverRange(own netip.Prefix) (first, last netip.Addr) {
	base, half := asNumber(own.Masked().Addr()), uint32(1)<<(31-own.Bits())
	if asNumber(own.Addr()) >= base+half {
		return asAddress(base + 1), asAddress(base + half - 1)
	}
	return asAddress(base + half), asAddress(base + 2*half - 2) // the last is for broadcasts
}

func asNumber(a netip.Addr) uint32 {
	bytes := a.As4()
	return binary.BigEndian.Uint32(bytes[:])
}

func asAddress(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}
