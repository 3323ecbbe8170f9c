package machine

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attribute is one attribute of a route netlink message (rtnetlink(7)).
type attribute struct {
	kind  uint16
	value []byte
}

func number(kind uint16, n uint32) attribute {
	return attribute{kind, binary.NativeEndian.AppendUint32(nil, n)}
}

func address(kind uint16, a netip.Addr) attribute { return attribute{kind, a.AsSlice()} }

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// setAddress gives an interface an address for a time, or extends that time. It adds no
// route, because routes need metrics: setRoute adds them.
func setAddress(index int, p netip.Prefix, valid time.Duration) error {
	life, _ := binary.Append(nil, binary.NativeEndian, unix.IfaCacheinfo{Prefered: seconds(valid), Valid: seconds(valid)})
	err := route(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, unix.IfAddrmsg{
		Family: family(p.Addr()), Prefixlen: uint8(p.Bits()), Index: uint32(index),
	}, address(unix.IFA_LOCAL, p.Addr()), address(unix.IFA_ADDRESS, p.Addr()),
		number(unix.IFA_FLAGS, unix.IFA_F_NOPREFIXROUTE), attribute{unix.IFA_CACHEINFO, life})
	if err != nil {
		return fmt.Errorf("set address %s: %w", p, err)
	}
	return nil
}

func removeAddress(index int, p netip.Prefix) error {
	return route(unix.RTM_DELADDR, 0, unix.IfAddrmsg{
		Family: family(p.Addr()), Prefixlen: uint8(p.Bits()), Index: uint32(index),
	}, address(unix.IFA_LOCAL, p.Addr()), address(unix.IFA_ADDRESS, p.Addr()))
}

// setRoute adds a route through an interface. Without a gateway the destination is
// on the link; of two routes the one with the lower metric is taken.
func setRoute(index int, to netip.Prefix, gateway netip.Addr, metric int) error {
	m := unix.RtMsg{
		Family: family(to.Addr()), Dst_len: uint8(to.Bits()), Table: unix.RT_TABLE_MAIN,
		Protocol: unix.RTPROT_DHCP, Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST,
	}
	attrs := []attribute{
		number(unix.RTA_OIF, uint32(index)), number(unix.RTA_PRIORITY, uint32(metric)),
	}
	if to.Bits() > 0 {
		attrs = append(attrs, address(unix.RTA_DST, to.Masked().Addr()))
	}
	if gateway.IsValid() && !gateway.IsUnspecified() {
		m.Scope = unix.RT_SCOPE_UNIVERSE
		m.Flags = unix.RTNH_F_ONLINK // a gateway outside of the subnet is one, too
		attrs = append(attrs, address(unix.RTA_GATEWAY, gateway))
	}
	if err := route(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, m, attrs...); err != nil {
		return fmt.Errorf("set route to %s: %w", to, err)
	}
	return nil
}

func seconds(d time.Duration) uint32 {
	return uint32(min(max(d, 0)/time.Second, 1<<32-1)) // all ones means for ever
}

// route sends one message to the kernel's route netlink, and waits for its answer.
func route(kind, flags uint16, body any, attrs ...attribute) error {
	payload, err := binary.Append(nil, binary.NativeEndian, body)
	if err != nil {
		return err
	}
	for _, a := range attrs {
		payload = binary.NativeEndian.AppendUint16(payload, uint16(4+len(a.value)))
		payload = binary.NativeEndian.AppendUint16(payload, a.kind)
		payload = append(payload, a.value...)
		payload = append(payload, make([]byte, -len(payload)&3)...)
	}
	message, err := binary.Append(nil, binary.NativeEndian, unix.NlMsghdr{
		Len: uint32(unix.SizeofNlMsghdr + len(payload)), Type: kind, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | flags, Seq: 1,
	})
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, append(message, payload...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("the kernel answers with %d bytes", n)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// raFlags are the flags of router advertisements that concern DHCPv6: managed address
// configuration and other configuration (RFC 4861 §4.2).
type raFlags struct{ managed, other bool }

// raFlagsOn asks the kernel, which keeps the flags of the last advertisement.
func raFlagsOn(index int) (raFlags, error) {
	dump, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_INET6)
	if err != nil {
		return raFlags{}, err
	}
	messages, err := syscall.ParseNetlinkMessage(dump)
	if err != nil {
		return raFlags{}, err
	}
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWLINK || len(m.Data) < syscall.SizeofIfInfomsg ||
			int(binary.NativeEndian.Uint32(m.Data[4:])) != index {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return raFlags{}, err
		}
		for _, a := range attrs {
			if a.Attr.Type&^unix.NLA_F_NESTED == unix.IFLA_PROTINFO {
				return parseRAFlags(a.Value), nil
			}
		}
	}
	return raFlags{}, nil
}

// parseRAFlags finds IFLA_INET6_FLAGS among nested attributes.
func parseRAFlags(nested []byte) raFlags {
	const inet6Flags, otherConfig, managed = 1, 0x80, 0x40 // linux/if_link.h, net/if_inet6.h
	for len(nested) >= 4 {
		length := int(binary.NativeEndian.Uint16(nested))
		if length < 4 || length > len(nested) {
			break
		}
		if kind := binary.NativeEndian.Uint16(nested[2:]); kind == inet6Flags && length >= 8 {
			flags := binary.NativeEndian.Uint32(nested[4:])
			return raFlags{managed: flags&managed != 0, other: flags&otherConfig != 0}
		}
		nested = nested[min((length+3)&^3, len(nested)):]
	}
	return raFlags{}
}
