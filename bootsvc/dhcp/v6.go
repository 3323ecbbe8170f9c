package dhcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// service6 answers DHCPv6.
type service6 struct{ *network }

// handle6 answers one packet of the DHCPv6 socket: at once, or from the
// committer's goroutine once what it promises is durable.
func (n service6) handle6(ctx context.Context, packet []byte, from netip.AddrPort) {
	// The answer may be made after the packet's memory was read into again.
	x, err := n.hear6(bytes.Clone(packet), from, n.sockets.v6.Load().sender(packet, from.Addr()))
	if err != nil {
		n.drop6(ctx, x, from, err)
		return
	}
	d, err := n.decide6(x)
	if err != nil {
		n.drop6(ctx, x, from, err)
		return
	}
	if !n.answerFirst6(ctx, x, d, from) {
		n.commit6(ctx, x, d, from)
	}
}

// commit6 answers x once what is promised is stored.
func (n service6) commit6(ctx context.Context, x *exchange6, d decision6, from netip.AddrPort) {
	commitAll6(n.server.committer, d.leases, func(err error) {
		defer n.recoverPanic(true, from) // this is the committer's goroutine
		n.answer6(ctx, x, d, from, err)
	})
}

// drop6 counts a packet that is not answered.
func (n service6) drop6(ctx context.Context, x *exchange6, from netip.AddrPort, err error) {
	why, ok := errors.AsType[drop6](err)
	if !ok {
		why = drop6Malformed
	}
	n.metrics.drop(family(true), string(why))
	n.follow6(x, decision6{}, string(why))
	n.server.options.Log.DebugContext(ctx, "a DHCP packet is not answered", "network", n.Name, "family", "6", "from", from, "mac", x.mac, "reason", string(why))
}

// hear6 reads a packet, and finds who asks and on which link; frame is the Ethernet address that
// it came from, "" if that was not seen.
func (n service6) hear6(packet []byte, from netip.AddrPort, frame string) (*exchange6, error) {
	x := &exchange6{table: n.server.table, network: n.network, now: n.server.options.Clock()}
	var err error
	if x.packet6, err = parsePacket6(packet, from.Addr()); err != nil {
		return x, err
	}
	x.duid = n.duid6()
	if x.serverID != nil && !bytes.Equal(x.serverID, x.duid) {
		return x, drop6Server
	}
	x.believed = n.believe(x.relays, from.Addr())
	x.card = x.packet6.card(frame)
	switch {
	case x.mac == "" && x.clientID == nil:
		return x, drop6MAC
	case !n.admits(x.mac):
		return x, drop6Filter
	}
	if err := n.place6(x, from.Addr()); err != nil {
		return x, err
	}
	if n.isOverLimit(cmp.Or(x.mac, string(x.clientID)), x.relay, x.port(), x.now) {
		return x, drop6(overClient)
	}
	if !x.unproven {
		n.server.options.Heard.On(x.mac, x.port())
	}
	x.asker = n.query6(x)
	return x, nil
}

// place6 finds the subnets of the link that a packet comes from. A relay must name
// a link that is configured. Without one, or by lightweight relays only (RFC
// 6221), the client is on our own link.
func (n service6) place6(x *exchange6, from netip.Addr) error {
	if _, relayed := linkOf(x.relays); !relayed {
		if x.subnets = n.leases.OnOurLink(true); !from.IsLinkLocalUnicast() && !x.onLink(from) {
			return drop6Source // the answer would go to somebody who did not ask
		}
		return nil
	}
	link, isBelieved := linkOf(x.believed)
	if !isBelieved {
		return drop6Untrusted
	}
	x.relay = link
	for _, s := range n.leases.Subnets {
		if s.CIDR.Contains(link) {
			x.subnets = append(x.subnets, s)
		}
	}
	if len(x.subnets) == 0 {
		return drop6Relay
	}
	return nil
}

// local6 returns our address that clients of a link reach us at: one on their
// link, or else one that is routed.
func (n service6) local6(x *exchange6) netip.Addr {
	rank := func(a netip.Addr) int {
		switch {
		case x.onLink(a):
			return 0
		case a.IsGlobalUnicast():
			return 1
		}
		return 2
	}
	addresses := n.sockets.link().v6
	if len(addresses) == 0 {
		return netip.Addr{}
	}
	return slices.MinFunc(addresses, func(a, b netip.Prefix) int { return cmp.Compare(rank(a.Addr()), rank(b.Addr())) }).Addr()
}

// duid6 returns the DUID that we go by on n.
func (n service6) duid6() []byte {
	if n.duid != nil {
		return n.duid
	}
	l := n.sockets.link()
	if len(l.mac) > 0 || len(l.v6) == 0 {
		return duid6(n.Name, l.mac)
	}
	return duid6(n.Name, l.v6[0].Addr().AsSlice())
}

// decide6 returns the answer, and what must be durable before it is given.
func (n service6) decide6(x *exchange6) (decision6, error) {
	boot, site, boots := n.boot6(x)
	var d decision6
	var err error
	if n.Mode == ModeProxy {
		d, err = x.proxy(boots)
	} else {
		d, err = x.decide()
	}
	if d.asked = boot; boots {
		told := boot
		d.boot, d.site = &told, site
	}
	return d, err
}

// boot6 returns what the client is told to boot, if it asks.
func (n service6) boot6(x *exchange6) (netboot.Answer, netboot.Site, bool) {
	switch x.kind {
	case dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeInformationRequest:
	default:
		return netboot.Answer{}, netboot.Site{}, false
	}
	if !x.asks(dhcpv6.OptionBootfileURL) {
		return netboot.Answer{}, netboot.Site{}, false
	}
	c := netboot.Classify(netboot.Raw{
		V6: true, MAC: x.mac, DUID: x.clientID,
		Archs: x.archs, NIC: x.nic, UserClasses: x.userClasses, VendorClasses: x.vendorClasses,
	})
	return n.boot(c, n.local6(x), x.now)
}

// proxy returns the answer on a network whose addresses somebody else gives: a
// boot file, or nothing. Firmware that has its address from another server takes
// an Advertise without addresses for the offer of a boot server.
func (x *exchange6) proxy(boots bool) (decision6, error) {
	if !boots {
		return decision6{}, drop6Nothing
	}
	if x.kind == dhcpv6.MessageTypeSolicit {
		return decision6{answer6: answer6{kind: dhcpv6.MessageTypeAdvertise}}, nil
	}
	d := decision6{answer6: answer6{kind: dhcpv6.MessageTypeReply}}
	for _, ia := range x.ias {
		d.ias = append(d.ias, ia.refused(none6(ia.kind)))
	}
	return d, nil
}

// commitAll6 stores leases and calls done once all of them are, or one is not.
func commitAll6(c *lease.Committer, leases []model.Lease, done func(error)) {
	switch len(leases) {
	case 0:
		done(nil)
		return
	case 1:
		c.Commit(leases[0], done)
		return
	}
	var left atomic.Int32
	left.Store(int32(len(leases)))
	var failed atomic.Pointer[error]
	for _, l := range leases {
		c.Commit(l, func(err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
			if left.Add(-1) > 0 {
				return
			}
			if e := failed.Load(); e != nil {
				err = *e
			}
			done(err)
		})
	}
}

// answer6 sends an answer, unless what it promises could not be stored: the
// client asks again.
func (n service6) answer6(ctx context.Context, x *exchange6, d decision6, from netip.AddrPort, err error) {
	kind := cmp.Or(types6[x.kind], "other")
	if err != nil {
		n.metrics.packet(family(true), kind, "not stored")
		n.follow6(x, d, "not stored")
		n.server.options.Log.DebugContext(ctx, "a lease is not given because it could not be stored", "network", n.Name, "mac", x.mac, "err", err)
		return
	}
	n.metrics.packet(family(true), kind, d.outcome())
	n.follow6(x, d, "")
	for _, l := range d.leases {
		n.logNew(l)
	}
	if d.boot != nil && (d.kind == dhcpv6.MessageTypeReply || n.Mode == ModeProxy) { // the last of an exchange
		n.server.noteAnswer(*d.boot, d.client(x.peer))
	}
	n.reply6(x, d, from)
}

// buffers6 are memory for one answer each. A longer one has memory of its own.
var buffers6 = sync.Pool{New: func() any { return new([1024]byte) }}

// reply6 sends an answer to x.
func (n service6) reply6(x *exchange6, d decision6, from netip.AddrPort) {
	buf := buffers6.Get().(*[1024]byte)
	defer buffers6.Put(buf) // what was sent is the kernel's
	n.sockets.send6(x.replyTo(from), x.append(buf[:0], d))
}

func (x *exchange6) append(b []byte, d decision6) []byte {
	return appendRelayed6(b, x.relays, func(b []byte) []byte { return d.append(b, &x.message6, x.duid) })
}

// types6 are the labels of what clients ask (RFC 8415 §7.3). All else is one, for its type may be
// any of 256.
var types6 = map[dhcpv6.MessageType]string{
	dhcpv6.MessageTypeSolicit: "solicit", dhcpv6.MessageTypeRequest: "request", dhcpv6.MessageTypeConfirm: "confirm",
	dhcpv6.MessageTypeRenew: "renew", dhcpv6.MessageTypeRebind: "rebind", dhcpv6.MessageTypeRelease: "release",
	dhcpv6.MessageTypeDecline: "decline", dhcpv6.MessageTypeInformationRequest: "information-request",
}

func (d *decision6) outcome() string {
	for _, ia := range d.ias {
		if ia.status != nil {
			return "refused"
		}
	}
	if d.status != nil && d.status.StatusCode != iana.StatusSuccess {
		return "refused"
	}
	if d.kind == dhcpv6.MessageTypeAdvertise {
		return "advertise"
	}
	return "reply"
}

func (d *decision6) client(peer netip.Addr) netip.Addr {
	for _, ia := range d.ias {
		if p := ia.lease.prefix; p.Bits() == 128 {
			return p.Addr()
		}
	}
	return peer
}
