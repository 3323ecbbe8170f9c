// Package links reads the network interfaces of this machine, by two questions to the kernel for all of them. For one of
// them by its name the kernel lists all, too, so that hundreds of networks that each ask for their own keep a processor busy.
package links

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// Link is a network interface and its addresses.
type Link struct {
	net.Interface
	Addresses []netip.Prefix
}

// Read returns the interfaces by name.
func Read() (map[string]Link, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("read the network interfaces: %w", err)
	}
	addresses, err := readAddresses()
	if err != nil {
		return nil, fmt.Errorf("read the addresses of network interfaces: %w", err)
	}
	all := make(map[string]Link, len(interfaces))
	for _, i := range interfaces {
		all[i.Name] = Link{i, addresses[i.Index]}
	}
	return all, nil
}

func readAddresses() (map[int][]netip.Prefix, error) {
	answer, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, os.NewSyscallError("netlink", err)
	}
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return nil, err
	}
	all := make(map[int][]netip.Prefix)
	for i := range messages {
		m := &messages[i]
		if m.Header.Type != syscall.RTM_NEWADDR || len(m.Data) < syscall.SizeofIfAddrmsg {
			continue
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return nil, err
		}
		if a := addressOf(attributes); a.IsValid() {
			// struct ifaddrmsg: ifa_prefixlen, ifa_index
			index := int(int32(binary.NativeEndian.Uint32(m.Data[4:])))
			all[index] = append(all[index], netip.PrefixFrom(a, int(m.Data[1])))
		}
	}
	return all, nil
}

// addressOf returns an interface's own address. On a link to one other machine that is IFA_LOCAL, and
// IFA_ADDRESS the other's (rtnetlink(7)); else they are the same, and IPv6 has the latter alone.
func addressOf(attributes []syscall.NetlinkRouteAttr) (own netip.Addr) {
	for _, a := range attributes {
		if value, ok := netip.AddrFromSlice(a.Value); ok && (a.Attr.Type == syscall.IFA_LOCAL || a.Attr.Type == syscall.IFA_ADDRESS && !own.IsValid()) {
			own = value
		}
	}
	return own
}
