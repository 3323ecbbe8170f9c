package dhcp

import (
	"crypto/sha256"
	"encoding/binary"
	"net"
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
	leases []lifetime6
	status *dhcpv6.OptStatusCode // nil = success
}

// lifetime6 is an address (of 128 bits) or prefix, and for how long a client may
// use it. 0 = no longer (RFC 8415 §18.3.4).
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

// message returns the answer to m as a message of the server with a DUID.
func (a answer6) message(m message6, server []byte) *dhcpv6.Message {
	reply := &dhcpv6.Message{MessageType: a.kind, TransactionID: m.xid}
	reply.Options.Options = make(dhcpv6.Options, 0, 10)
	if m.clientID != nil {
		reply.AddOption(raw6(dhcpv6.OptionClientID, m.clientID))
	}
	reply.AddOption(raw6(dhcpv6.OptionServerID, server))
	if a.rapid {
		reply.AddOption(raw6(dhcpv6.OptionRapidCommit, nil))
	}
	if a.status != nil {
		reply.AddOption(a.status)
	}
	for _, ia := range a.ias {
		reply.AddOption(ia.option())
	}
	for _, code := range m.asked {
		// Asked for twice, it is told once.
		if reply.GetOneOption(code) == nil {
			a.tell(reply, code)
		}
	}
	if a.boot != nil && a.boot.VendorClass != "" {
		// Firmware discards a reply without its class, which it does not ask for.
		reply.AddOption(&dhcpv6.OptVendorClass{Data: [][]byte{[]byte(a.boot.VendorClass)}})
	}
	return reply
}

func raw6(code dhcpv6.OptionCode, value []byte) dhcpv6.Option {
	return &dhcpv6.OptionGeneric{OptionCode: code, OptionData: value}
}

// option returns the identity association as an option: RFC 8415 §21.4, §21.5
// and §21.21.
func (g given6) option() dhcpv6.Option {
	id := [4]byte(binary.BigEndian.AppendUint32(nil, g.id))
	options := make(dhcpv6.Options, 0, len(g.leases)+1)
	for _, l := range g.leases {
		options = append(options, l.option(g.kind))
	}
	if g.status != nil {
		options = append(options, g.status)
	}
	t1, t2 := g.renewal()
	switch g.kind {
	case dhcpv6.OptionIAPD:
		return &dhcpv6.OptIAPD{IaId: id, T1: t1, T2: t2, Options: dhcpv6.PDOptions{Options: options}}
	case dhcpv6.OptionIATA:
		return &dhcpv6.OptIATA{IaId: id, Options: dhcpv6.IdentityOptions{Options: options}}
	default:
		return &dhcpv6.OptIANA{IaId: id, T1: t1, T2: t2, Options: dhcpv6.IdentityOptions{Options: options}}
	}
}

// option returns the lease as an option within an identity association of a
// kind: RFC 8415 §21.6 and §21.22.
func (l lifetime6) option(kind dhcpv6.OptionCode) dhcpv6.Option {
	if kind == dhcpv6.OptionIAPD {
		return &dhcpv6.OptIAPrefix{PreferredLifetime: l.valid, ValidLifetime: l.valid, Prefix: &net.IPNet{
			IP: l.prefix.Addr().AsSlice(), Mask: net.CIDRMask(l.prefix.Bits(), 128),
		}}
	}
	return &dhcpv6.OptIAAddress{IPv6Addr: l.prefix.Addr().AsSlice(), PreferredLifetime: l.valid, ValidLifetime: l.valid}
}

// renewal returns when a client renews with us, and when with any server: the
// shares of its shortest lifetime that RFC 8415 §21.4 recommends.
func (g given6) renewal() (t1, t2 time.Duration) {
	var shortest time.Duration
	for _, l := range g.leases {
		if l.valid > 0 && (shortest == 0 || l.valid < shortest) {
			shortest = l.valid
		}
	}
	return shortest / 2, shortest * 4 / 5
}

// tell adds what a client asks for by an option code (RFC 8415 §21.7), if there
// is such a thing to tell.
func (a answer6) tell(reply *dhcpv6.Message, code dhcpv6.OptionCode) {
	switch {
	case code == dhcpv6.OptionBootfileURL && a.boot != nil: // RFC 5970 §3.1
		reply.AddOption(dhcpv6.OptBootFileURL(a.boot.URL(a.site)))
	case a.config != nil:
		a.config.tell6(reply, code)
	}
}

// tell6 adds what clients of s may ask for.
func (s *Subnet) tell6(reply *dhcpv6.Message, code dhcpv6.OptionCode) {
	switch {
	case code == dhcpv6.OptionDNSRecursiveNameServer && len(s.DNS) > 0: // RFC 3646 §3
		reply.AddOption(dhcpv6.OptDNS(ips(s.DNS)...))
	case code == dhcpv6.OptionDomainSearchList && s.Domain != "": // RFC 3646 §4
		reply.AddOption(dhcpv6.OptDomainSearchList(&rfc1035label.Labels{Labels: []string{s.Domain}}))
	case code == dhcpv6.OptionSNTPServerList && len(s.NTP) > 0: // RFC 4075 §4
		reply.AddOption(dhcpv6.OptSNTP(ips(s.NTP)...))
	case code == dhcpv6.OptionNTPServer && len(s.NTP) > 0: // RFC 5908 §4.1
		option := &dhcpv6.OptNTPServer{}
		for _, ip := range ips(s.NTP) {
			option.Suboptions.Add((*dhcpv6.NTPSuboptionSrvAddr)(&ip))
		}
		reply.AddOption(option)
	}
}

// ips returns addresses as the library takes them.
func ips(addresses []netip.Addr) []net.IP {
	all := make([]net.IP, len(addresses))
	for i, a := range addresses {
		all[i] = a.AsSlice()
	}
	return all
}

// asks reports whether the client asks for an option.
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
