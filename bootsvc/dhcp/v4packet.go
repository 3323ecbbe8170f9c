package dhcp

import (
	"cmp"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// packet4 is a client's DHCPv4 packet, and how it came.
type packet4 struct {
	*dhcpv4.DHCPv4
	kind  dhcpv4.MessageType
	mac   string // canonical
	named bool   // mac is made of the client identifier, the client's own word: its hardware has none
	from  netip.AddrPort
	port  uint16 // of ours: 67, or 4011
	relay relay4
	link  *link
}

// relay4 is what a relay says, zero when there was none.
type relay4 struct {
	address  netip.Addr // giaddr
	link     netip.Addr // the client's link: sub-option 5 (RFC 3527), option 118 (RFC 3011), or giaddr
	server   netip.Addr // sub-option 11 (RFC 5107): what clients take for the server
	port     string     // sub-option 1 (RFC 3046): where it heard the client
	remote   string     // sub-option 2, as port for people
	at       model.RelayPort
	fromPort bool // sub-option 19 (RFC 8357): answers go to the port it sent from
}

// drop4 is why a packet is not processed: the label of a metric. overClient is another one.
type drop4 string

const (
	drop4None      drop4 = ""
	drop4Malformed drop4 = "malformed"
	drop4Hardware  drop4 = "hardware"  // no Ethernet address, and none that can be made
	drop4BOOTP     drop4 = "bootp"     // no message type
	drop4Filter    drop4 = "filter"    // macAllow, macDeny
	drop4Relay     drop4 = "relay"     // the link that it names lies in none of our subnets
	drop4Untrusted drop4 = "untrusted" // from a relay that is not among relays, or that may not be the one it says
	drop4Source    drop4 = "source"    // not from the link, and not from one of our subnets either
	drop4NotReady  drop4 = "not ready" // we have no address to answer from
)

// accept4 parses a packet, and decides whether it is looked into at all.
func (n service4) accept4(data []byte, from netip.AddrPort, port uint16, now time.Time) (packet4, drop4) {
	parsed, err := parse4(data)
	if err != nil || parsed.OpCode != dhcpv4.OpcodeBootRequest {
		return packet4{}, drop4Malformed
	}
	p := packet4{DHCPv4: parsed, kind: parsed.MessageType(), from: from, port: port, link: n.sockets.link()}
	if p.mac, p.named = clientMAC4(parsed); p.mac == "" {
		return p, drop4Hardware
	}
	switch {
	case p.kind == dhcpv4.MessageTypeNone:
		return p, drop4BOOTP
	case !n.admits(p.mac):
		return p, drop4Filter
	case len(p.link.v4) == 0:
		return p, drop4NotReady
	}
	p.relay = relayOf(parsed)
	if drop := n.route4(p); drop != drop4None {
		return p, drop
	}
	if n.isOverLimit(p.mac, p.relay.address, p.relay.port, now) {
		return p, overClient
	}
	n.server.options.Heard.On(p.mac, p.relay.port)
	return p, drop4None
}

// Where in a packet options may be (RFC 2131 §2).
const (
	sname4   = 44
	file4    = 108
	cookie4  = 236
	options4 = 240
)

// parse4 parses a packet. One whose options do not come to their end is taken as it is, as other
// servers do; the fields sname and file may hold options, too (RFC 2132 §9.3).
func parse4(data []byte) (*dhcpv4.DHCPv4, error) {
	p, err := dhcpv4.FromBytes(data)
	if errors.Is(err, io.ErrUnexpectedEOF) && len(data) >= options4 {
		p, err = dhcpv4.FromBytes(append(slices.Clone(data), dhcpv4.OptionEnd.Code()))
	}
	if err != nil {
		return nil, err
	}
	fields := p.Options.Get(dhcpv4.OptionOptionOverload)
	if len(fields) != 1 {
		return p, nil
	}
	// What a relay adds it adds to the options, and it looks for its own nowhere else.
	relays := dhcpv4.OptionRelayAgentInformation
	defer func(said []byte) {
		if delete(p.Options, relays.Code()); said != nil {
			p.Options[relays.Code()] = said
		}
	}(p.Options.Get(relays))
	const inFile, inSname = 1, 2
	if fields[0]&inFile != 0 { // it comes first: RFC 3396 §5
		err = p.Options.FromBytes(data[file4:cookie4])
	}
	if err == nil && fields[0]&inSname != 0 {
		err = p.Options.FromBytes(data[sname4:file4])
	}
	return p, err
}

// route4 refuses packets that are not from a link that n serves: an answer to
// them would go to somebody who did not ask.
func (n service4) route4(p packet4) drop4 {
	if p.relay.address.IsValid() {
		if _, ok := n.leases.SubnetOf(p.relay.link, 0); !ok {
			return drop4Relay
		}
		if !n.trusts4(p) {
			return drop4Untrusted
		}
		return drop4None
	}
	for _, a := range []netip.Addr{p.from.Addr(), address4(p.ClientIPAddr)} {
		if !a.IsValid() || a.IsUnspecified() {
			continue
		}
		_, ours := n.leases.SubnetOf(a, 0)
		onLink := slices.ContainsFunc(p.link.v4, func(l netip.Prefix) bool { return l.Contains(a) })
		if !ours && !onLink {
			return drop4Source
		}
	}
	if n.Interface == "" && !address4(p.ClientIPAddr).IsValid() {
		return drop4Source // a client without address, and without a relay, cannot be answered from here
	}
	return drop4None
}

// trusts4 reports whether the relay of p may send from where it does. An answer goes to the
// address that the relay names. Where that lies in none of our subnets, as a fabric's switch has
// it, the packet has to come from that address, unless relays name its source.
func (n service4) trusts4(p packet4) bool {
	if len(n.relays) > 0 {
		return n.trusts(p.from.Addr())
	}
	_, ours := n.leases.SubnetOf(p.relay.address, 0)
	return ours || p.from.Addr() == p.relay.address
}

func relayOf(p *dhcpv4.DHCPv4) relay4 {
	r := relay4{address: address4(p.GatewayIPAddr)}
	if !r.address.IsValid() {
		return r
	}
	r.link = cmp.Or(selected4(p), r.address)
	info := dhcpv4.Options{}
	if info.FromBytes(p.Options.Get(dhcpv4.OptionRelayAgentInformation)) != nil {
		return r
	}
	r.link = cmp.Or(address4(info[uint8(dhcpv4.LinkSelectionSubOption.Code())]), r.link) // RFC 3527 §3
	r.server = address4(info[uint8(dhcpv4.ServerIdentifierOverrideSubOption.Code())])
	r.at = model.RelayPort{
		CircuitID: string(info[uint8(dhcpv4.AgentCircuitIDSubOption.Code())]), RemoteID: string(info[uint8(dhcpv4.AgentRemoteIDSubOption.Code())]),
	}
	r.port, r.remote = model.ReadableIdentifier(r.at.CircuitID), model.ReadableIdentifier(r.at.RemoteID)
	_, r.fromPort = info[uint8(dhcpv4.RelaySourcePortSubOption.Code())]
	return r
}

// selected4 returns the subnet that a client asks for an address of (RFC 3011).
func selected4(p *dhcpv4.DHCPv4) netip.Addr {
	return address4(p.Options.Get(dhcpv4.OptionSubnetSelection))
}

// clientID returns p's client identifier in hexadecimal. One that is longer than is kept is
// nobody's in a manifest, which are shorter.
func (p packet4) clientID() string {
	return hex.EncodeToString(clipped(p.Options.Get(dhcpv4.OptionClientIdentifier), maxClientID))
}

func (p packet4) seenBy() model.LeaseRelay {
	return model.LeaseRelay{Address: p.relay.address, CircuitID: p.relay.port, RemoteID: p.relay.remote}
}

// portOf returns the port that p's relay says it heard its client on. Anybody who reaches us can
// say so in a relay's name, so only those count that the configuration names.
func (n service4) portOf(p packet4) model.RelayPort {
	if len(n.relays) == 0 || !n.trusts(p.from.Addr()) {
		return model.RelayPort{}
	}
	return p.relay.at
}

// address4 returns the address in b, invalid when it is none or 0.0.0.0.
func address4(b []byte) netip.Addr {
	if len(b) != 4 || [4]byte(b) == [4]byte{} {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(b))
}

// forUs reports whether p names us as its server, or none.
func (p packet4) forUs() bool {
	id := address4(p.Options.Get(dhcpv4.OptionServerIdentifier))
	return !id.IsValid() || id == p.relay.server ||
		slices.ContainsFunc(p.link.v4, func(l netip.Prefix) bool { return l.Addr() == id })
}

// wish returns the address that a request is about: the one that its client was offered
// or had, or that it has (RFC 2131 §4.3.2). It may be none.
func (p packet4) wish() netip.Addr {
	if requested := address4(p.Options.Get(dhcpv4.OptionRequestedIPAddress)); requested.IsValid() {
		return requested
	}
	return address4(p.ClientIPAddr)
}

// maxClientID bounds what is kept of a client identifier: a DUID has 130 bytes at
// most.
const maxClientID = 130

func clipped(b []byte, n int) []byte { return b[:min(n, len(b))] }

// client4 returns what p says of the client that asks to boot.
func client4(p packet4) netboot.Client {
	raw := netboot.Raw{
		MAC:  p.mac,
		NIC:  p.Options.Get(dhcpv4.OptionClientNetworkInterfaceIdentifier),
		UUID: p.Options.Get(dhcpv4.OptionClientMachineIdentifier),
	}
	if class := p.Options.Get(dhcpv4.OptionClassIdentifier); class != nil {
		raw.VendorClasses = []string{string(class)}
	}
	if class := p.Options.Get(dhcpv4.OptionUserClassInformation); class != nil {
		raw.UserClasses = [][]byte{class}
	}
	archs := p.Options.Get(dhcpv4.OptionClientSystemArchitectureType)
	for ; len(archs) >= 2; archs = archs[2:] {
		raw.Archs = append(raw.Archs, netboot.Arch(uint16(archs[0])<<8|uint16(archs[1])))
	}
	// RFC 4361 §6.1: type 255, the IAID, the DUID.
	if id := p.Options.Get(dhcpv4.OptionClientIdentifier); len(id) > 5 && id[0] == 255 {
		raw.DUID = id[5:]
	}
	return netboot.Classify(raw)
}

// type4 returns the label of a message type.
func type4(t dhcpv4.MessageType) string {
	switch t { //nolint:exhaustive // what servers say is no question
	case dhcpv4.MessageTypeDiscover:
		return "discover"
	case dhcpv4.MessageTypeRequest:
		return "request"
	case dhcpv4.MessageTypeDecline:
		return "decline"
	case dhcpv4.MessageTypeRelease:
		return "release"
	case dhcpv4.MessageTypeInform:
		return "inform"
	}
	return "other"
}
