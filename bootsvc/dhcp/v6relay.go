package dhcp

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"ingot/model"
)

// maxRelays6 is how many relays may stand between a client and us. RFC 8415
// §19.1.2 lets relays nest 8 deep, RFC 3315 let them nest 32 deep.
const maxRelays6 = 32

// enterprise6 is how many bytes the enterprise number has that a remote ID begins with (RFC 4649 §3).
const enterprise6 = 4

// relayPort6 is how many bytes the port has that a relay sends from (RFC 8357 §5.1).
const relayPort6 = 2

// relay6 is what one relay says of the packet that it passed on: RFC 8415 §9.
type relay6 struct {
	hops        uint8
	link, peer  netip.Addr
	interfaceID []byte // RFC 8415 §21.18; nil if it sent none
	remoteID    []byte // RFC 4649 §3, without the enterprise number; nil if it sent none
	port        []byte // RFC 8357 §5.1; nil if it sent none, or one of another length
	clientMAC   string // RFC 6939; canonical, empty if it sent none
}

// packet6 is one packet: a client's message, and the relays that it came by.
type packet6 struct {
	message6
	relays []relay6 // the one that sent us the packet first, the one next to the client last
	// believed are the first of relays, whose word counts: none until network.believe says so. A relay passes on what claims to be
	// another relay's, and may be its client's own (RFC 8415 §19.1.2).
	believed []relay6
	// peer is the address that the client sent from, as the relay next to it saw it.
	peer netip.Addr
}

// parsePacket6 peels the relays off a packet that came from an address, and reads
// the message in it.
func parsePacket6(data []byte, from netip.Addr) (packet6, error) {
	p := packet6{peer: from}
	for len(data) > 0 && dhcpv6.MessageType(data[0]) == dhcpv6.MessageTypeRelayForward {
		if len(p.relays) == maxRelays6 {
			return p, drop6Nesting
		}
		relay, inner, err := parseRelay6(data)
		if err != nil {
			return p, err
		}
		p.relays, p.peer, data = append(p.relays, relay), relay.peer, inner
	}
	var err error
	p.message6, err = parseMessage6(data)
	return p, err
}

// parseRelay6 reads one Relay-forward message, and returns what it passes on.
func parseRelay6(data []byte) (r relay6, inner []byte, err error) {
	if len(data) < dhcpv6.RelayHeaderSize {
		return r, nil, drop6Malformed
	}
	r.hops = data[1]
	r.link, r.peer = netip.AddrFrom16([16]byte(data[2:])), netip.AddrFrom16([16]byte(data[18:]))
	err = eachOption6(data[dhcpv6.RelayHeaderSize:], func(code dhcpv6.OptionCode, value []byte) error {
		switch code {
		case dhcpv6.OptionRelayMsg:
			inner = value
		case dhcpv6.OptionInterfaceID:
			r.interfaceID = value
		case dhcpv6.OptionRemoteID:
			r.remoteID = value[min(enterprise6, len(value)):]
		case dhcpv6.OptionRelayPort:
			if len(value) == relayPort6 {
				r.port = value
			}
		case dhcpv6.OptionClientLinkLayerAddr:
			r.clientMAC = ethernetMAC(value)
		default: // of no concern to a server
		}
		return nil
	})
	if err == nil && len(inner) == 0 {
		err = drop6Malformed
	}
	return r, inner, err
}

// believe returns the relays of a packet from an address whose word counts: the one that sent it, if it
// is trusted, and each that a trusted one heard by an address that is trusted.
func (n service6) believe(relays []relay6, from netip.Addr) []relay6 {
	for i, r := range relays {
		if !n.trusts(from) {
			return relays[:i]
		}
		from = r.peer
	}
	return relays
}

// linkOf returns the link-address of the relay nearest to the client that names
// one: lightweight relays (RFC 6221) do not.
func linkOf(relays []relay6) (netip.Addr, bool) {
	for _, r := range slices.Backward(relays) {
		if !r.link.IsUnspecified() {
			return r.link, true
		}
	}
	return netip.Addr{}, false
}

// heardOn returns the port that the relay next to the client heard it on, of those whose word counts.
func (p *packet6) heardOn() model.RelayPort {
	if n := len(p.believed); n > 0 {
		return model.RelayPort{CircuitID: string(p.believed[n-1].interfaceID), RemoteID: string(p.believed[n-1].remoteID)}
	}
	return model.RelayPort{}
}

// port is the interface ID of heardOn as people know it, "" when there is none.
func (p *packet6) port() string { return model.ReadableIdentifier(p.heardOn().CircuitID) }

// card is the network interface that asks, as far as it can be told.
type card struct {
	mac string // canonical, "" = nothing shows it
	// unproven: mac is the client's own word.
	unproven bool
}

// card returns the network interface that asks. The relay next to the client saw its address
// (RFC 6939); on our own link we did, if frame, which is the Ethernet address that the packet
// came from, is not empty; and its link-local address is often made of it (RFC 4291
// appendix A), which anybody can take. The MAC address in a DUID tells nothing: all interfaces of
// a machine show the same one (RFC 8415 §11), and so do machines that were copied.
func (p *packet6) card(frame string) card {
	seen := frame
	switch n := len(p.relays); {
	case len(p.believed) < n: // the one next to the client is not to be believed
		seen = ""
	case n > 0:
		seen = p.believed[n-1].clientMAC
	}
	if seen != "" {
		return card{mac: seen}
	}
	return card{mac: eui64MAC(p.peer), unproven: true}
}

// duidMAC returns the MAC address in a DUID-LLT or DUID-LL, or "".
func duidMAC(id []byte) string {
	if len(id) < 4 {
		return ""
	}
	kind := dhcpv6.DUIDType(binary.BigEndian.Uint16(id))
	switch {
	case kind == dhcpv6.DUID_LL:
		return ethernetMAC(id[2:])
	case kind == dhcpv6.DUID_LLT && len(id) == 14: // a time lies between hardware type and address
		return ethernetMAC([]byte{id[2], id[3], id[8], id[9], id[10], id[11], id[12], id[13]})
	}
	return ""
}

// ethernetMAC returns the MAC address that follows its hardware type (RFC 826),
// or "" if it is no Ethernet interface's own.
func ethernetMAC(value []byte) string {
	if len(value) != 8 || binary.BigEndian.Uint16(value) != 1 {
		return ""
	}
	return clientMAC(value[2:])
}

// eui64MAC returns the MAC address that an address's interface identifier was
// made of, or "".
func eui64MAC(a netip.Addr) string {
	b := a.As16()
	if b[11] != 0xff || b[12] != 0xfe {
		return ""
	}
	return clientMAC([]byte{b[8] ^ 2, b[9], b[10], b[13], b[14], b[15]})
}

// clientMAC returns a MAC address in canonical spelling, or "" if no client can
// have it.
func clientMAC(mac []byte) string {
	if len(mac) != len(model.MAC{}) || !model.MAC(mac).IsStation() {
		return ""
	}
	return model.MAC(mac).String()
}

// appendRelayed6 appends a reply as it goes back by the relays that the packet came by:
// each has its own hop count, addresses, interface-id (RFC 8415 §19.3) and
// source port (RFC 8357 §5.2) returned.
func appendRelayed6(b []byte, relays []relay6, reply func([]byte) []byte) []byte {
	if len(relays) == 0 {
		return reply(b)
	}
	r := relays[0]
	link, peer := r.link.As16(), r.peer.As16()
	b = append(b, byte(dhcpv6.MessageTypeRelayReply), r.hops)
	b = append(append(b, link[:]...), peer[:]...)
	if r.interfaceID != nil {
		b = appendOption6(b, dhcpv6.OptionInterfaceID, r.interfaceID)
	}
	if r.port != nil {
		b = appendOption6(b, dhcpv6.OptionRelayPort, r.port)
	}
	return appendNested6(b, dhcpv6.OptionRelayMsg, func(b []byte) []byte { return appendRelayed6(b, relays[1:], reply) })
}

// replyTo returns where the reply to a packet from an address goes: to the
// relay's own port if it said that it has one (RFC 8357 §5.2), else to the ports
// of RFC 8415 §7.2.
func (p *packet6) replyTo(from netip.AddrPort) netip.AddrPort {
	switch {
	case len(p.relays) == 0:
		return netip.AddrPortFrom(from.Addr(), dhcpv6.DefaultClientPort)
	case p.relays[0].port != nil:
		return from
	}
	return netip.AddrPortFrom(from.Addr(), dhcpv6.DefaultServerPort)
}
