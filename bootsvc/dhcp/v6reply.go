package dhcp

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/insomniacslk/dhcp/rfc1035label"

	"ingot/bootsvc/netboot"
)

// answer6 is what is said to one message, before it is put into bytes.
type answer6 struct {
	kind   dhcpv6.MessageType // Advertise or Reply
	rapid  bool               // RFC 8415 §21.14
	status *dhcpv6.OptStatusCode
	ias    []given6
	config *Subnet         // whose DNS servers and such are told; nil = none are
	boot   *netboot.Answer // nil = there is nothing to boot
	site   netboot.Site    // where boot is fetched
}

// given6 is what is said to one identity association.
type given6 struct {
	kind   dhcpv6.OptionCode // OptionIANA, OptionIATA or OptionIAPD
	id     uint32
	lease  lifetime6             // zero = none
	ended  []netip.Prefix        // what it must use no longer (RFC 8415 §18.3.4)
	status *dhcpv6.OptStatusCode // nil = success
}

// lifetime6 is an address (of 128 bits) or prefix, and for how long a client may
// use it; 0 = no longer (RFC 8415 §18.3.4).
type lifetime6 struct {
	prefix netip.Prefix
	valid  time.Duration
}

// status6 are the status codes that we send (RFC 8415 §21.13). A client is told
// no other, and its users see the text in its log.
var status6 = map[iana.StatusCode]*dhcpv6.OptStatusCode{
	iana.StatusSuccess:       {StatusCode: iana.StatusSuccess},
	iana.StatusNoAddrsAvail:  {StatusCode: iana.StatusNoAddrsAvail, StatusMessage: "no address"},
	iana.StatusNoPrefixAvail: {StatusCode: iana.StatusNoPrefixAvail, StatusMessage: "no prefix"},
	iana.StatusNoBinding:     {StatusCode: iana.StatusNoBinding, StatusMessage: "no lease"},
	iana.StatusNotOnLink:     {StatusCode: iana.StatusNotOnLink, StatusMessage: "not an address of this link"},
}

// maxSize6 is the size of an answer from which options are left out: the smallest MTU of IPv6 (RFC 8200 §5), without
// the headers. Firmware and tunnels may not take fragments.
const maxSize6 = 1280 - headerIPv6 - headerUDP

// append appends the answer. Identifiers, status, leases and boot file are always in it. Of the other options those that
// do not fit are left out. The headers of relays are not counted, because each removes its own.
func (a *answer6) append(b []byte, m *message6, server []byte) []byte {
	limit := len(b) + maxSize6
	b = append(append(b, byte(a.kind)), m.xid[:]...)
	if m.clientID != nil {
		b = appendOption6(b, dhcpv6.OptionClientID, m.clientID)
	}
	b = appendOption6(b, dhcpv6.OptionServerID, server)
	if a.rapid {
		b = appendOption6(b, dhcpv6.OptionRapidCommit, nil)
	}
	if a.status != nil {
		b = appendOption6(b, dhcpv6.OptionStatusCode, a.status.ToBytes())
	}
	for _, ia := range a.ias {
		b = ia.append(b)
	}
	if a.boot != nil { // RFC 5970 §3.1
		b = appendOption6(b, dhcpv6.OptionBootfileURL, []byte(a.boot.URL(a.site)))
	}
	if a.boot != nil && a.boot.VendorClass != "" {
		// Firmware discards a reply without its class, which it does not ask for.
		b = appendOption6(b, dhcpv6.OptionVendorClass, (&dhcpv6.OptVendorClass{Data: [][]byte{[]byte(a.boot.VendorClass)}}).ToBytes())
	}
	for i, code := range m.asked {
		if a.config == nil || slices.Contains(m.asked[:i], code) { // requested twice, it is sent once
			continue
		}
		if more := a.config.tell6(b, code); len(more) <= limit {
			b = more
		}
	}
	return b
}

// appendOption6 appends an option: RFC 8415 §21.1.
func appendOption6(b []byte, code dhcpv6.OptionCode, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(code))
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	return append(b, value...)
}

// appendNested6 appends an option whose value other options end.
func appendNested6(b []byte, code dhcpv6.OptionCode, value func([]byte) []byte) []byte {
	b = appendOption6(b, code, nil)
	at := len(b)
	b = value(b)
	binary.BigEndian.PutUint16(b[at-2:], uint16(len(b)-at))
	return b
}

// append appends the identity association: RFC 8415 §21.4, §21.5 and §21.21.
func (g given6) append(b []byte) []byte {
	return appendNested6(b, g.kind, func(b []byte) []byte {
		b = binary.BigEndian.AppendUint32(b, g.id)
		if g.kind != dhcpv6.OptionIATA {
			t1, t2 := g.renewal()
			b = appendSeconds6(appendSeconds6(b, t1), t2)
		}
		if g.lease.prefix.IsValid() {
			b = g.lease.append(b, g.kind)
		}
		for _, p := range g.ended {
			b = lifetime6{prefix: p}.append(b, g.kind)
		}
		if g.status != nil {
			b = appendOption6(b, dhcpv6.OptionStatusCode, g.status.ToBytes())
		}
		return b
	})
}

// append appends the lease within an identity association of a kind: RFC 8415 §21.6 and §21.22.
func (l lifetime6) append(b []byte, kind dhcpv6.OptionCode) []byte {
	address := l.prefix.Addr().As16()
	if kind == dhcpv6.OptionIAPD {
		return appendNested6(b, dhcpv6.OptionIAPrefix, func(b []byte) []byte {
			b = appendSeconds6(appendSeconds6(b, l.valid), l.valid)
			return append(append(b, byte(l.prefix.Bits())), address[:]...)
		})
	}
	return appendNested6(b, dhcpv6.OptionIAAddr, func(b []byte) []byte {
		return appendSeconds6(appendSeconds6(append(b, address[:]...), l.valid), l.valid)
	})
}

// appendSeconds6 appends a time as this protocol has it.
func appendSeconds6(b []byte, d time.Duration) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(d.Round(time.Second)/time.Second))
}

// renewal returns when a client renews with us, and when with any server: the
// shares of its lifetime that RFC 8415 §21.4 recommends.
func (g given6) renewal() (t1, t2 time.Duration) {
	return g.lease.valid / 2, g.lease.valid * 4 / 5
}

// ntpServer is the suboption for the address of a time server (RFC 5908 §4.1).
const ntpServer dhcpv6.OptionCode = 1

// tell6 appends what clients of s may ask for.
func (s *Subnet) tell6(b []byte, code dhcpv6.OptionCode) []byte {
	switch {
	case code == dhcpv6.OptionDNSRecursiveNameServer && len(s.DNS) > 0: // RFC 3646 §3
		return appendAddresses6(b, code, s.DNS)
	case code == dhcpv6.OptionDomainSearchList && s.Domain != "": // RFC 3646 §4
		return appendOption6(b, code, (&rfc1035label.Labels{Labels: []string{s.Domain}}).ToBytes())
	case code == dhcpv6.OptionSNTPServerList && len(s.NTP) > 0: // RFC 4075 §4
		return appendAddresses6(b, code, s.NTP)
	case code == dhcpv6.OptionNTPServer && len(s.NTP) > 0: // RFC 5908 §4
		return appendNested6(b, code, func(b []byte) []byte {
			for _, a := range s.NTP {
				b = appendAddresses6(b, ntpServer, []netip.Addr{a})
			}
			return b
		})
	}
	return b
}

// appendAddresses6 appends an option that is a list of addresses.
func appendAddresses6(b []byte, code dhcpv6.OptionCode, all []netip.Addr) []byte {
	return appendNested6(b, code, func(b []byte) []byte {
		for _, a := range all {
			octets := a.As16()
			b = append(b, octets[:]...)
		}
		return b
	})
}

func (m *message6) asks(code dhcpv6.OptionCode) bool { return slices.Contains(m.asked, code) }

// duid6 returns the DUID (RFC 8415 §11.5) that a network is served by: the same
// for as long as its name and the server's identity are, and no other server's.
func duid6(network string, id []byte) []byte {
	sum := sha256.Sum256(append([]byte("DHCPv6 server\x00"+network+"\x00"), id...))
	uuid := sum[:16]
	uuid[6] = uuid[6]&0x0f | 0x80 // RFC 9562 §5.8: a UUID of our own making
	uuid[8] = uuid[8]&0x3f | 0x80
	return append(binary.BigEndian.AppendUint16(nil, uint16(dhcpv6.DUID_UUID)), uuid...)
}
