package dhcp

import (
	"encoding/binary"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"ingot/bootsvc/netboot"
)

// What one packet may hold. Firmware sends one identity association of a kind, and an
// interface has eight leases of a kind at most: more associations are only told that they get nothing.
const (
	maxIAs6 = 32
	maxHas6 = 8   // addresses or prefixes in one identity association
	minDUID = 3   // type and at least an octet, RFC 8415 §11.1
	maxDUID = 130 // RFC 8415 §11.1

	optionHeader6 = 4 // bytes: code and length, RFC 8415 §21.1
)

// drop6 is why a packet is not answered: the label of a metric.
type drop6 string

// The reasons, except overClient.
const (
	drop6Malformed drop6 = "malformed"
	drop6Conflict  drop6 = "conflict"  // options that its type must not have, RFC 8415 §16
	drop6Type      drop6 = "type"      // of no concern to a server
	drop6Nesting   drop6 = "nesting"   // too many relays
	drop6Server    drop6 = "server"    // meant for another server
	drop6MAC       drop6 = "mac"       // neither a MAC address nor a DUID is to be found
	drop6Filter    drop6 = "filter"    // macAllow, macDeny
	drop6Relay     drop6 = "relay"     // the client's link is none of our subnets
	drop6Untrusted drop6 = "untrusted" // from a relay that is not among relays
	drop6Source    drop6 = "source"    // neither relayed nor from our own link
	drop6Nothing   drop6 = "nothing"   // there is nothing to say
	drop6InUse     drop6 = inUse       // somebody else uses each address that the client might have
)

func (d drop6) Error() string { return "DHCPv6 packet dropped: " + string(d) }

// message6 is what a client says in one DHCPv6 message (RFC 8415 §8), its relays
// peeled off.
type message6 struct {
	kind     dhcpv6.MessageType
	xid      dhcpv6.TransactionID
	clientID []byte
	serverID []byte
	rapid    bool // RFC 8415 §21.14
	asked    []dhcpv6.OptionCode
	ias      []ia6
	// What it says about booting: RFC 5970 §3.3 and §3.4, RFC 8415 §21.15 and §21.16.
	archs         []netboot.Arch
	nic           []byte
	userClasses   [][]byte
	vendorClasses []string
	reason        string // the text of its status, RFC 8415 §21.13
}

// ia6 is an identity association (RFC 8415 §12): what a client wants leased, and
// what it believes to hold.
type ia6 struct {
	kind dhcpv6.OptionCode // OptionIANA, OptionIATA or OptionIAPD
	id   uint32
	has  []netip.Prefix // an address has 128 bits
}

// parseMessage6 reads a client's message. An option that does not concern a
// server is skipped unread, so that firmware's oddities in it cost nothing; what
// it returns is of data's memory.
func parseMessage6(data []byte) (message6, error) {
	if len(data) < dhcpv6.MessageHeaderSize {
		return message6{}, drop6Malformed
	}
	m := message6{kind: dhcpv6.MessageType(data[0]), xid: dhcpv6.TransactionID(data[1:4])}
	if err := eachOption6(data[dhcpv6.MessageHeaderSize:], m.option); err != nil {
		return message6{}, err
	}
	return m, m.check()
}

// eachOption6 calls read with each option of data: RFC 8415 §21.1.
func eachOption6(data []byte, read func(dhcpv6.OptionCode, []byte) error) error {
	for len(data) > 0 {
		if len(data) < optionHeader6 {
			return drop6Malformed
		}
		code, end := binary.BigEndian.Uint16(data), optionHeader6+int(binary.BigEndian.Uint16(data[2:]))
		if len(data) < end {
			return drop6Malformed
		}
		if err := read(dhcpv6.OptionCode(code), data[optionHeader6:end:end]); err != nil {
			return err
		}
		data = data[end:]
	}
	return nil
}

func (m *message6) option(code dhcpv6.OptionCode, value []byte) error {
	switch code {
	case dhcpv6.OptionClientID:
		return duid(&m.clientID, value)
	case dhcpv6.OptionServerID:
		return duid(&m.serverID, value)
	case dhcpv6.OptionRapidCommit:
		m.rapid = true
	case dhcpv6.OptionORO:
		// Some clients send several.
		for ; len(value) >= 2; value = value[2:] {
			m.asked = append(m.asked, dhcpv6.OptionCode(binary.BigEndian.Uint16(value)))
		}
	case dhcpv6.OptionIANA, dhcpv6.OptionIATA, dhcpv6.OptionIAPD:
		return m.ia(code, value)
	case dhcpv6.OptionClientArchType:
		for ; len(value) >= 2; value = value[2:] {
			m.archs = append(m.archs, netboot.Arch(binary.BigEndian.Uint16(value)))
		}
	case dhcpv6.OptionNII:
		m.nic = value
	case dhcpv6.OptionStatusCode:
		m.reason = string(value[min(len(value), 2):])
	case dhcpv6.OptionUserClass:
		m.userClasses = append(m.userClasses, classes6(value)...)
	case dhcpv6.OptionVendorClass:
		if len(value) > 4 { // after the enterprise number
			for _, class := range classes6(value[4:]) {
				m.vendorClasses = append(m.vendorClasses, string(class))
			}
		}
	default: // of no concern to a server
	}
	return nil
}

func duid(into *[]byte, value []byte) error {
	if *into != nil || len(value) < minDUID || len(value) > maxDUID {
		return drop6Malformed
	}
	*into = value
	return nil
}

// ia reads an identity association: RFC 8415 §21.4, §21.5 and §21.21.
func (m *message6) ia(kind dhcpv6.OptionCode, value []byte) error {
	header := 12 // IAID, T1, T2
	if kind == dhcpv6.OptionIATA {
		header = 4
	}
	if len(value) < header || len(m.ias) == maxIAs6 {
		return drop6Malformed
	}
	ia := ia6{kind: kind, id: binary.BigEndian.Uint32(value)}
	err := eachOption6(value[header:], func(code dhcpv6.OptionCode, value []byte) error {
		p, ok, err := leased6(kind, code, value)
		if err != nil || !ok {
			return err
		}
		if len(ia.has) == maxHas6 {
			return drop6Malformed
		}
		ia.has = append(ia.has, p)
		return nil
	})
	m.ias = append(m.ias, ia)
	return err
}

// leased6 reads an address or prefix within an identity association of a kind:
// RFC 8415 §21.6 and §21.22. The lifetimes are only what the client would like.
func leased6(kind, code dhcpv6.OptionCode, value []byte) (netip.Prefix, bool, error) {
	switch {
	case code == dhcpv6.OptionIAAddr && kind != dhcpv6.OptionIAPD:
		if len(value) < 24 {
			return netip.Prefix{}, false, drop6Malformed
		}
		return netip.PrefixFrom(netip.AddrFrom16([16]byte(value)), 128), true, nil
	case code == dhcpv6.OptionIAPrefix && kind == dhcpv6.OptionIAPD:
		if len(value) < 25 || value[8] > 128 {
			return netip.Prefix{}, false, drop6Malformed
		}
		return netip.PrefixFrom(netip.AddrFrom16([16]byte(value[9:])), int(value[8])).Masked(), true, nil
	}
	return netip.Prefix{}, false, nil
}

// classes6 returns the classes of data, each of which follows its length; or data
// as it stands where it is no such list, for some clients send their class bare.
func classes6(data []byte) (all [][]byte) {
	for rest := data; len(rest) > 0; {
		if len(rest) < 2 || int(binary.BigEndian.Uint16(rest)) > len(rest)-2 {
			return [][]byte{data}
		}
		end := 2 + int(binary.BigEndian.Uint16(rest))
		all, rest = append(all, rest[2:end]), rest[end:]
	}
	return all
}

// check reports what a client must not send: RFC 8415 §16. Whether the server
// identifier is ours is for hear6 to say.
func (m *message6) check() error {
	switch m.kind {
	case dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeConfirm, dhcpv6.MessageTypeRebind:
		if m.clientID == nil || m.serverID != nil {
			return drop6Conflict
		}
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		if m.clientID == nil || m.serverID == nil {
			return drop6Conflict
		}
	case dhcpv6.MessageTypeInformationRequest:
		if len(m.ias) > 0 {
			return drop6Conflict
		}
	default:
		return drop6Type
	}
	return nil
}
