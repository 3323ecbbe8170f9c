package dhcp

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// service4 answers DHCPv4.
type service4 struct{ *network }

// handle4 handles one DHCPv4 packet that came to one of our ports. data is the
// caller's again when it returns.
func (n service4) handle4(data []byte, from netip.AddrPort, port uint16) {
	now := n.server.options.Clock()
	p, drop := n.accept4(data, from, port, now)
	if drop != drop4None {
		n.metrics.drop("4", string(drop))
		n.follow4(p, silence4(string(drop)))
		n.unanswered4(p, from, string(drop))
		return
	}
	a := n.decide4(p, now)
	if n.asksFirst(a) && n.answerFirst(p, a) {
		return
	}
	n.commit4(p, a)
}

// commit4 answers p once what is promised is stored.
func (n service4) commit4(p packet4, a answer4) {
	if a.lease == nil {
		n.answer4(p, a, nil)
		return
	}
	n.server.committer.Commit(*a.lease, func(err error) {
		defer n.recoverPanic(false, p.from) // this is the committer's goroutine
		n.answer4(p, a, err)
	})
}

// answer4 sends an answer whose lease was stored, or could not be.
func (n service4) answer4(p packet4, a answer4, err error) {
	if err != nil {
		a = silence4("not stored")
		n.server.options.Log.Debug("no answer: the lease could not be stored", "network", n.Name, "mac", p.mac, "err", err)
	}
	n.metrics.packet("4", type4(p.kind), a.outcome)
	n.follow4(p, a)
	if a.lease != nil && !a.renews {
		n.logNew(*a.lease)
	}
	if a.reply == nil {
		if a.lease == nil && err == nil {
			n.unanswered4(p, p.from, a.outcome)
		}
		return
	}
	n.server.noteAnswer(a.told, a.client)
	n.deliver4(p, a)
}

// unanswered4 says why a packet is not answered.
func (n service4) unanswered4(p packet4, from netip.AddrPort, reason string) {
	n.server.options.Log.Debug("a DHCP packet is not answered", "network", n.Name, "family", "4", "from", from, "mac", p.mac, "reason", reason)
}

// buffer4 is memory for one answer and the frame that it may go in. A longer answer
// has memory of its own.
type buffer4 struct{ packet, frame [2048]byte }

var buffers4 = sync.Pool{New: func() any { return new(buffer4) }}

// deliver4 sends an answer to where p's sender receives it.
func (n service4) deliver4(p packet4, a answer4) {
	buf := buffers4.Get().(*buffer4)
	defer buffers4.Put(buf) // what was sent is the kernel's
	data := a.reply.append(buf.packet[:0], maxReply4(p))
	if to := n.destination4(p, a); to.frame {
		n.sockets.unicast4(p.ClientHWAddr, a.reply.server, to.address.Addr(), data, buf.frame[:0])
	} else {
		n.sockets.send4(p.port, to.address, data)
	}
}

// destination4 is where an answer is sent to.
type destination4 struct {
	address netip.AddrPort
	frame   bool // its receiver does not answer ARP for its address yet
}

// everybody4 is all clients on the link.
var everybody4 = netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), port4Client)

// destination4 returns where p's sender receives an answer (RFC 2131 §4.1).
func (n service4) destination4(p packet4, a answer4) destination4 {
	client := address4(p.ClientIPAddr)
	switch {
	case p.relay.address.IsValid() && p.relay.fromPort:
		return destination4{address: netip.AddrPortFrom(p.relay.address, p.from.Port())}
	case p.relay.address.IsValid():
		return destination4{address: netip.AddrPortFrom(p.relay.address, port4Server)}
	case p.port == portPXE:
		return destination4{address: netip.AddrPortFrom(a.client, p.from.Port())}
	case client.IsValid() && (!a.reply.nak || n.Interface == ""): // where there is no interface, no client is on our link
		return destination4{address: netip.AddrPortFrom(client, port4Client)}
	case a.reply.nak || p.IsBroadcast() || !a.reply.yiaddr.IsValid(), len(p.ClientHWAddr) != len(model.MAC{}): // RFC 4390 §2.2
		return destination4{address: everybody4}
	}
	return destination4{address: netip.AddrPortFrom(a.reply.yiaddr, port4Client), frame: true}
}

// answer4 is what is decided about a packet.
type answer4 struct {
	outcome string         // for the metric
	reply   *reply4        // nil = silence
	lease   *model.Lease   // to be stored first, nil = none
	told    netboot.Answer // the boot file to be noted, without ticket for none
	boot    netboot.Answer // the boot file, or why there is none
	client  netip.Addr     // the client's address
	fresh   bool           // nobody has told the client of that before
	renews  bool           // the client has the lease already
}

// silence4 is the answer of somebody who has nothing to say.
func silence4(outcome string) answer4 { return answer4{outcome: outcome} }

// decide4 decides about a packet, from what the table knows at now.
func (n service4) decide4(p packet4, now time.Time) answer4 {
	if n.Mode == ModeProxy {
		return n.decideProxy4(p, now)
	}
	switch p.kind { //nolint:exhaustive // what servers say is no question
	case dhcpv4.MessageTypeDiscover:
		return n.discover4(p, now)
	case dhcpv4.MessageTypeRequest:
		return n.request4(p, now)
	case dhcpv4.MessageTypeDecline:
		return n.decline4(p, now)
	case dhcpv4.MessageTypeRelease:
		return n.release4(p, now)
	case dhcpv4.MessageTypeInform:
		return n.inform4(p, now)
	}
	return silence4("ignored")
}

// query4 returns what p asks of the table, wishing for an address.
func (n service4) query4(p packet4, wish netip.Addr, now time.Time) lease.Query {
	return lease.Query{
		Network: n.leases, Subnets: n.subnets4(p), MAC: p.mac, Wish: wish, Now: now,
		ClientID: p.clientID(), Unproven: p.named, Port: n.portOf(p), Relay: p.seenBy(), KnownOnly: n.isStoreAway(),
	}
}

// subnets4 returns the subnets of the link that p's client is on: by its relay; by
// its own address, because a client that renews by unicast passes by its relay; else those of our
// own link, of which it may select one (RFC 3011).
func (n service4) subnets4(p packet4) []*lease.Subnet {
	for _, a := range []netip.Addr{p.relay.link, address4(p.ClientIPAddr)} {
		if !a.IsValid() {
			continue
		}
		if s, ok := n.leases.SubnetOf(a, 0); ok {
			return []*lease.Subnet{s}
		}
		if a == p.relay.link {
			return nil
		}
	}
	own := n.leases.OnOurLink(false)
	if selected := selected4(p.DHCPv4); selected.IsValid() {
		own = slices.DeleteFunc(slices.Clone(own), func(s *lease.Subnet) bool { return !s.CIDR.Contains(selected) })
	}
	return own
}

// server4 returns the address that clients of a subnet know us by.
func (p packet4) server4(s *lease.Subnet) netip.Addr {
	if p.relay.server.IsValid() {
		return p.relay.server
	}
	for _, l := range p.link.v4 {
		if s != nil && s.CIDR.Contains(l.Addr()) {
			return l.Addr()
		}
	}
	if len(p.link.v4) > 0 {
		return p.link.v4[0].Addr()
	}
	return netip.Addr{}
}

// discover4 offers an address (RFC 2131 §4.3.1), or leases it at once where client and
// configuration want that (RFC 4039).
func (n service4) discover4(p packet4, now time.Time) answer4 {
	q := n.query4(p, address4(p.Options.Get(dhcpv4.OptionRequestedIPAddress)), now)
	q.Binding = n.RapidCommit && p.Options.Has(dhcpv4.OptionRapidCommit)
	l, err := n.server.table.Offer(q)
	switch {
	case errors.Is(err, lease.ErrNotStored):
		return silence4("not stored")
	case err != nil:
		return silence4("exhausted") // another server may have one
	}
	if q.Binding {
		l.Arrived = true
		a := n.lease4(p, l, dhcpv4.MessageTypeAck, now)
		a.reply.require(dhcpv4.OptionRapidCommit.Code(), nil)
		a.outcome, a.lease, a.fresh = "ack", &l, true
		return a
	}
	a := n.lease4(p, l, dhcpv4.MessageTypeOffer, now)
	a.outcome, a.fresh = "offer", true
	return a
}

// request4 leases, confirms or renews an address (RFC 2131 §4.3.2).
func (n service4) request4(p packet4, now time.Time) answer4 {
	wish := p.wish()
	if !p.forUs() {
		n.noteForeignLease(p, now)
		return silence4("other server")
	}
	if !wish.IsValid() {
		return silence4("no address named")
	}
	q := n.query4(p, wish, now)
	l, state := n.server.table.Renewal(q)
	selecting := p.Options.Has(dhcpv4.OptionServerIdentifier)
	switch {
	case state >= lease.RenewalFree:
		l.Arrived = !address4(p.ClientIPAddr).IsValid()
		a := n.lease4(p, l, dhcpv4.MessageTypeAck, now)
		a.outcome, a.lease = "ack", &l
		a.renews = state == lease.RenewalKnown
		a.fresh = state == lease.RenewalFree && !selecting && l.Arrived // INIT-REBOOT
		return a
	case state == lease.RenewalUnknown && !selecting, len(q.Subnets) == 0:
		return silence4("unknown address") // it may be another server's
	}
	return n.nak4(p, q.Subnets[0])
}

// nak4 tells a client that it cannot have the address that it named.
func (n service4) nak4(p packet4, s *lease.Subnet) answer4 {
	r := newReply4(p, dhcpv4.MessageTypeNak, p.server4(s))
	r.nak, r.ciaddr = true, netip.Addr{}
	if p.relay.address.IsValid() {
		r.broadcast = true // so that the relay does not look for its client at an address that is wrong
	}
	r.echo(p)
	return answer4{outcome: "nak", reply: r}
}

// lease4 returns the answer that gives l to p's client.
func (n service4) lease4(p packet4, l model.Lease, kind dhcpv4.MessageType, now time.Time) answer4 {
	s, _ := n.leases.SubnetOf(l.Address, 0)
	r := newReply4(p, kind, p.server4(s))
	r.yiaddr = l.Address
	r.lifetime(l.Expires.Sub(l.Renewed))
	a := answer4{reply: r, client: l.Address}
	n.describe4(p, &a, s, kind == dhcpv4.MessageTypeAck, now)
	return a
}

// describe4 adds the options for p's client on a subnet: those of its address, its boot, and the
// configured ones.
func (n service4) describe4(p packet4, a *answer4, s *lease.Subnet, last bool, now time.Time) {
	client := client4(p)
	options := n.options4(p, s, client.Kind != netboot.KindNone)
	a.reply.subnet(p, n.config(s), options)
	n.boot4(p, client, a, last, now)
	a.reply.configured(options)
	a.reply.echo(p)
}

// hastyDecline is how soon after its lease a client declines an address that it does not want. Leases have whole seconds,
// so this is a second at least.
const hastyDecline = 2 * time.Second

// decline4 sets an address aside that its client found in use (RFC 2131 §4.3.3), or refuses: OVMF declines a lease
// without an option that it needs, at once and with a message.
func (n service4) decline4(p packet4, now time.Time) answer4 {
	if !p.forUs() {
		return silence4("other server")
	}
	q := n.query4(p, address4(p.Options.Get(dhcpv4.OptionRequestedIPAddress)), now)
	message := bytes.TrimRight(p.Options.Get(dhcpv4.OptionMessage), "\x00")
	refuses := len(message) > 0 || now.Sub(n.server.table.Leased([]string{p.mac})) < hastyDecline
	l, ok := n.server.table.Decline(q, refuses)
	if !ok {
		return silence4("not its own")
	}
	n.noteDecline(q, refuses, string(message), l)
	return answer4{outcome: "declined", lease: l}
}

// release4 takes an address back (RFC 2131 §4.3.4).
func (n service4) release4(p packet4, now time.Time) answer4 {
	if !p.forUs() {
		return silence4("other server")
	}
	l, ok := n.server.table.Release(n.query4(p, address4(p.ClientIPAddr), now))
	if !ok {
		return silence4("not its own")
	}
	return answer4{outcome: "released", lease: l}
}

// inform4 tells a client that has an address the rest (RFC 2131 §4.3.5).
func (n service4) inform4(p packet4, now time.Time) answer4 {
	client := address4(p.ClientIPAddr)
	s, ok := n.leases.SubnetOf(client, 0)
	if !ok {
		return silence4("unknown address")
	}
	r := newReply4(p, dhcpv4.MessageTypeAck, p.server4(s))
	a := answer4{outcome: "ack", reply: r, client: client}
	n.describe4(p, &a, s, true, now)
	return a
}

// toldByProxy is the outcome of a packet that a proxy answers.
const toldByProxy = "told"

// decideProxy4 tells firmware what to boot, beside the DHCP server that gives it
// its address: on port 67 as a second offer without address, on port 4011 as the
// answer to a client that comes back (Preboot Execution Environment 2.1, §2.2). It is silent
// to all others, and never refuses anything: a NAK ends a boot that is none of our
// business.
func (n service4) decideProxy4(p packet4, now time.Time) answer4 {
	kind := dhcpv4.MessageTypeAck
	switch t := p.kind; {
	case t == dhcpv4.MessageTypeRequest && p.port == port4Server:
		n.noteForeignLease(p, now)
		return silence4("ignored")
	case t == dhcpv4.MessageTypeDiscover && p.port == port4Server:
		kind = dhcpv4.MessageTypeOffer
	case (t == dhcpv4.MessageTypeRequest || t == dhcpv4.MessageTypeInform) && p.port == portPXE:
	case t == dhcpv4.MessageTypeInform && address4(p.ClientIPAddr).IsValid():
	default:
		return silence4("ignored")
	}
	r := newReply4(p, kind, p.server4(nil))
	a := answer4{outcome: toldByProxy, reply: r, client: address4(p.ClientIPAddr)}
	if !a.client.IsValid() && !p.from.Addr().IsUnspecified() {
		a.client = p.from.Addr()
	}
	if !n.boot4(p, client4(p), &a, true, now) {
		return answer4{outcome: "nothing to boot", boot: a.boot}
	}
	if p.port == portPXE && !a.client.IsValid() {
		return silence4("no address named")
	}
	r.echo(p)
	return a
}

// boot4 adds the boot file that p's client is told, and reports whether there is
// one. The ticket is noted when the answer is the last of an exchange.
func (n service4) boot4(p packet4, client netboot.Client, a *answer4, last bool, now time.Time) bool {
	file, site, ok := n.boot(client, a.reply.server, now)
	a.boot = file
	if !ok {
		return false
	}
	a.reply.boot(p, file, site, n.Mode == ModeProxy)
	if last {
		a.told = file
	}
	return true
}
