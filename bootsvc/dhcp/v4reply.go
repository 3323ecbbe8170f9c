package dhcp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// Lengths of a DHCPv4 packet.
const (
	// minReply4 is what old network cards and relays take for the shortest packet
	// (RFC 951 §3, RFC 1542 §2.1).
	minReply4 = 300
	// A client that does not say otherwise takes 576 bytes, IP and UDP headers among
	// them (RFC 2131 §2). More than an Ethernet frame holds is never sent.
	defaultSize4 = 576
	maxSize4     = 1500
	headers4     = 28
	maxFile4     = 127 // bytes in the field file, without the zero at its end
	maxSname4    = 63
)

const optionIPXE = 175 // encapsulated options of iPXE

// Vendor options of PXE (option 43): discovery control 8 says to take the boot file
// of this packet, and not to look for boot servers (PXE 2.1 §2.2.3).
var pxeUseBootFile = []byte{6, 1, 8, 255}

// ipxeNoProxy is iPXE's option no-pxedhcp = 1: it need not wait for a proxy's
// offer.
var ipxeNoProxy = []byte{176, 1, 1}

// reply4 is a DHCPv4 answer before it is put into bytes. Its options are in the order of their weight. The first
// ones, as many as required says, are in every answer. An option after them is left out if it does not fit.
type reply4 struct {
	request   *dhcpv4.DHCPv4
	nak       bool
	broadcast bool // set in flags, whatever the client asked
	server    netip.Addr
	ciaddr    netip.Addr
	yiaddr    netip.Addr
	siaddr    netip.Addr
	sname     string
	file      string
	options   []option4
	required  int
	relayInfo []byte // option 82, as it came
}

// option4 is one option.
type option4 struct {
	code  byte
	value []byte
}

// newReply4 returns the answer of a type to p, by which clients know us as server.
func newReply4(p packet4, kind dhcpv4.MessageType, server netip.Addr) *reply4 {
	r := &reply4{request: p.DHCPv4, server: server, ciaddr: address4(p.ClientIPAddr), options: make([]option4, 0, 12)}
	if kind == dhcpv4.MessageTypeOffer {
		r.ciaddr = netip.Addr{} // RFC 2131 table 3
	}
	r.require(dhcpv4.OptionDHCPMessageType.Code(), []byte{byte(kind)})
	if server.IsValid() {
		r.require(dhcpv4.OptionServerIdentifier.Code(), server.AsSlice())
	}
	return r
}

// require adds an option without which the answer is useless, before all others.
func (r *reply4) require(code byte, value []byte) {
	r.options = slices.Insert(r.options, r.required, option4{code, value})
	r.required++
}

// add adds an option, unless it is empty.
func (r *reply4) add(code byte, value []byte) {
	if len(value) > 0 {
		r.options = append(r.options, option4{code, value})
	}
}

// lifetime adds for how long the address is leased (RFC 2131 §4.4.5).
func (r *reply4) lifetime(d time.Duration) {
	seconds := func(d time.Duration) []byte { return binary.BigEndian.AppendUint32(nil, uint32(d/time.Second)) }
	r.require(dhcpv4.OptionIPAddressLeaseTime.Code(), seconds(d))
	r.add(dhcpv4.OptionRenewTimeValue.Code(), seconds(d/2))
	r.add(dhcpv4.OptionRebindingTimeValue.Code(), seconds(d/8*7))
}

// subnet adds what a client of s needs to use its address: mask, router and DNS
// whether it asks or not, for firmware forgets to; time servers when it asks, unless others
// are configured for it.
func (r *reply4) subnet(p packet4, s *Subnet, others model.DHCPOptions) {
	r.require(dhcpv4.OptionSubnetMask.Code(), binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-s.CIDR.Bits())))
	if s.Gateway.IsValid() {
		r.add(dhcpv4.OptionRouter.Code(), s.Gateway.AsSlice())
	}
	r.add(dhcpv4.OptionDomainNameServer.Code(), joined4(s.DNS))
	r.add(dhcpv4.OptionDomainName.Code(), []byte(s.Domain))
	ntp := dhcpv4.OptionNTPServers.Code()
	if slices.Contains(p.Options.Get(dhcpv4.OptionParameterRequestList), ntp) && others[ntp] == nil {
		r.add(dhcpv4.OptionNTPServers.Code(), joined4(s.NTP))
	}
}

// joined4 returns addresses one behind the other.
func joined4(all []netip.Addr) []byte {
	b := make([]byte, 0, 4*len(all))
	for _, a := range all {
		b = append(b, a.AsSlice()...)
	}
	return b
}

// boot adds the boot file: as options, and in the fields of the header, which is
// where old ROMs look that do not ask for options 66 and 67.
func (r *reply4) boot(p packet4, a netboot.Answer, site netboot.Site, proxy bool) {
	ipxe := a.HTTP && p.Options.Has(dhcpv4.GenericOptionCode(optionIPXE))
	file := option4{dhcpv4.OptionBootfileName.Code(), []byte(a.File)}
	var all []option4
	if a.VendorClass != "" {
		all = append(all, option4{dhcpv4.OptionClassIdentifier.Code(), []byte(a.VendorClass)})
	}
	all = append(all, file)
	if !a.HTTP && site.TFTP.Is4() {
		r.siaddr, r.sname = site.TFTP, site.TFTP.String()
		all = append(all, option4{dhcpv4.OptionTFTPServerName.Code(), []byte(r.sname)})
	}
	if !a.HTTP {
		// Without it UEFI asks on port 4011 what it was told already.
		all = append(all, option4{dhcpv4.OptionVendorSpecificInformation.Code(), pxeUseBootFile})
	}
	if ipxe && !proxy {
		all = append(all, option4{optionIPXE, ipxeNoProxy})
	}
	if proxy && !r.siaddr.IsValid() {
		// iPXE takes a proxy's offer for one only if it names a next server as well, though
		// it never asks that one for a URL.
		r.siaddr = r.server
	}
	if len(a.File) <= maxFile4 {
		r.file = a.File
	}
	r.options = slices.Insert(r.options, r.required, all...) // before all else, because a client that boots needs it
}

// echoed4 are the options that an answer has as the question had them. The client identifier may be long, and
// clients accept an answer without it (RFC 6842 §3).
var echoed4 = []dhcpv4.OptionCode{dhcpv4.OptionClientMachineIdentifier, dhcpv4.OptionSubnetSelection, dhcpv4.OptionClientIdentifier}

// echo repeats what clients and relays want to see again: the client identifier
// (RFC 6842), the machine's (PXE 2.1 §2.2.3), the subnet that was selected (RFC 3011 §3) and the relay's
// option (RFC 3046 §2.2).
func (r *reply4) echo(p packet4) {
	for _, code := range echoed4 {
		if v := p.Options.Get(code); len(v) <= 255 {
			r.add(code.Code(), v)
		}
	}
	r.relayInfo = p.Options.Get(dhcpv4.OptionRelayAgentInformation)
}

// maxReply4 returns how long an answer to p may be: option 57 counts the whole IP
// packet, which must not have less than 576 bytes (RFC 2132 §9.10).
func maxReply4(p packet4) int {
	size := defaultSize4
	if v := p.Options.Get(dhcpv4.OptionMaximumDHCPMessageSize); len(v) == 2 {
		size = min(max(int(binary.BigEndian.Uint16(v)), defaultSize4), maxSize4)
	}
	return size - headers4
}

// append appends the packet (RFC 2131 §2) to an empty slice. The client gets at most limit bytes of it. Option 82 is
// not counted, because the relay removes it (RFC 3046 §2.1): only what exceeds the default size makes room for it in an
// Ethernet frame.
func (r *reply4) append(b []byte, limit int) []byte {
	b = slices.Grow(b, max(minReply4, limit))[:240]
	clear(b[:minReply4])
	q := r.request
	b[0], b[1], b[2] = byte(dhcpv4.OpcodeBootReply), byte(q.HWType), byte(len(q.ClientHWAddr))
	copy(b[4:], q.TransactionID[:])
	flags := q.Flags
	if r.broadcast {
		flags |= 0x8000
	}
	binary.BigEndian.PutUint16(b[10:], flags)
	for i, a := range []netip.Addr{r.ciaddr, r.yiaddr, r.siaddr} {
		if a.Is4() {
			v := a.As4()
			copy(b[12+4*i:], v[:])
		}
	}
	copy(b[24:28], q.GatewayIPAddr.To4())
	copy(b[28:44], q.ClientHWAddr)
	copy(b[44:44+maxSname4], r.sname)
	copy(b[108:108+maxFile4], r.file)
	copy(b[236:], []byte{99, 130, 83, 99}) // the magic cookie, RFC 2131 §3

	var tail []byte
	if len(r.relayInfo) > 0 {
		tail = appendOption4(nil, dhcpv4.OptionRelayAgentInformation.Code(), r.relayInfo)
	}
	limit = max(min(limit, maxSize4-headers4-len(tail)), min(limit, defaultSize4-headers4))
	for i, o := range r.options {
		var pad []byte
		if o.code == dhcpv4.OptionBootfileName.Code() {
			pad = bootFilePad4(q)
		}
		if i < r.required || len(b)+optionSize4(o.value)+len(pad)+1 <= limit {
			b = append(appendOption4(b, o.code, o.value), pad...)
		}
	}
	b = append(append(b, tail...), dhcpv4.OptionEnd.Code())
	if len(b) < minReply4 {
		b = b[:minReply4]
	}
	return b
}

// bootFilePad4 returns the PAD (RFC 2132 §3.1) that follows option 67 in the reply to a UEFI client. EDK2
// writes a NUL behind the value in its copy of the OFFER, where the next option would lose its code
// (HttpBootDxe/HttpBootDhcp4.c HttpBootParseDhcp4Packet, UefiPxeBcDxe/PxeBcDhcp4.c). A BIOS gets
// no PAD, because some old boot loaders do not accept one between options.
func bootFilePad4(request *dhcpv4.DHCPv4) []byte {
	arch := request.Options.Get(dhcpv4.OptionClientSystemArchitectureType)
	class := request.Options.Get(dhcpv4.OptionClassIdentifier)
	if len(bytes.Trim(arch, "\x00")) == 0 && !bytes.HasPrefix(class, []byte("HTTPClient")) {
		return nil
	}
	return []byte{dhcpv4.OptionPad.Code()}
}

// appendOption4 appends an option, in as many parts as it needs (RFC 3396 §5).
func appendOption4(b []byte, code byte, value []byte) []byte {
	for {
		part := value[:min(255, len(value))]
		b = append(append(b, code, byte(len(part))), part...)
		if value = value[len(part):]; len(value) == 0 {
			return b
		}
	}
}

// optionSize4 returns how many bytes an option takes.
func optionSize4(value []byte) int { return len(value) + 2*max(1, (len(value)+254)/255) }
