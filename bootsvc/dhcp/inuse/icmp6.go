package inuse

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// errNoIPv6 is what is to be said where this machine has no IPv6.
var errNoIPv6 = errors.New("this machine has no IPv6")

// open6 returns a socket that hears answers to ICMPv6 on all links, nil where there is no IPv6. The kernel makes
// the checksums (RFC 3542 §3.1).
func open6() (*ipv6.PacketConn, error) {
	conn, err := net.ListenPacket("ip6:ipv6-icmp", "::")
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hear answers to ICMPv6: %w", err)
	}
	icmp := ipv6.NewPacketConn(conn)
	var answers ipv6.ICMPFilter
	answers.SetAll(true)
	answers.Accept(ipv6.ICMPTypeNeighborAdvertisement)
	answers.Accept(ipv6.ICMPTypeEchoReply)
	err = errors.Join(icmp.SetICMPFilter(&answers), icmp.SetControlMessage(ipv6.FlagHopLimit|ipv6.FlagInterface, true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hear answers to ICMPv6: %w", err), icmp.Close())
	}
	return icmp, nil
}

// ask6 asks once for an IPv6 address.
func (p *Prober) ask6(q question, from net.HardwareAddr) error {
	switch {
	case p.icmp6 == nil:
		return errNoIPv6
	case q.link == 0:
		_, err := p.icmp6.WriteTo(echoRequest(byte(ipv6.ICMPTypeEchoRequest), p.nonce), nil, &net.IPAddr{IP: q.addr.AsSlice()})
		return err
	}
	message, err := solicitation(q.addr, from)
	if err != nil {
		return err
	}
	group, err := ndp.SolicitedNodeMulticast(q.addr)
	if err != nil {
		return err
	}
	_, err = p.icmp6.WriteTo(message, &ipv6.ControlMessage{IfIndex: q.link, HopLimit: ndp.HopLimit}, &net.IPAddr{IP: group.AsSlice()})
	return err
}

// solicitation asks who has an address, as one asks who means to send there (RFC 4861 §7.2.2). Duplicate Address
// Detection asks without a source address: that would end what a device is only trying to get, which is silent here
// (RFC 4862 §5.4.3).
func solicitation(addr netip.Addr, from net.HardwareAddr) ([]byte, error) {
	return ndp.MarshalMessage(&ndp.NeighborSolicitation{
		TargetAddress: addr, Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: from}},
	})
}

// advertiser returns who says that an address is its own: a neighbour of the link (RFC 4861 §7.1.2), by the MAC
// address that it names, "" for none.
func advertiser(message []byte, hopLimit int) (mac string, addr netip.Addr, ok bool) {
	if hopLimit != ndp.HopLimit || len(message) < 2 || message[1] != 0 {
		return "", addr, false
	}
	m, err := ndp.ParseMessage(message)
	if err != nil {
		return "", addr, false
	}
	a, ok := m.(*ndp.NeighborAdvertisement)
	if !ok || a.TargetAddress.IsMulticast() {
		return "", addr, false
	}
	for _, o := range a.Options {
		if l, is := o.(*ndp.LinkLayerAddress); is && l.Direction == ndp.Target {
			mac = l.Addr.String()
		}
	}
	return mac, a.TargetAddress, true
}

// readICMP6 tells of answers to ICMPv6, until the socket is closed.
func (p *Prober) readICMP6() {
	buf := make([]byte, 1500)
	for {
		n, cm, from, err := p.icmp6.ReadFrom(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil || cm == nil:
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if mac, addr, ok := advertiser(buf[:n], cm.HopLimit); ok {
			p.tell(question{cm.IfIndex, addr}, mac)
			continue
		}
		p.tellEcho(buf[:n], byte(ipv6.ICMPTypeEchoReply), from)
	}
}
