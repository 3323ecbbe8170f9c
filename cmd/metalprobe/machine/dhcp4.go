package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
)

// How long a server's answer is awaited, at first and at most: RFC 2131 §4.1 says 4 s
// and 64 s, but people wait for this machine.
const (
	firstWait = time.Second
	maxWait   = 16 * time.Second
)

// Bounds on the time of a lease, because a server may send any value.
const (
	minLease = time.Minute
	maxLease = 7 * 24 * time.Hour
)

// askAgain is how often a server that named no boot file is asked for one: a ticket may
// be armed later.
const askAgain = 15 * time.Second

// lease is what a DHCPv4 server leased.
type lease struct {
	acknowledged *dhcpv4.DHCPv4
	address      netip.Prefix
	routes       []hop
	dns          []netip.Addr
	bootFile     string
	valid, renew time.Duration
}

// hop is one route of a lease: a destination and the gateway to it.
type hop struct {
	to      netip.Prefix
	gateway netip.Addr
}

// configure4 leases an address, and renews the lease until ctx ends.
func (c *nic) configure4(ctx context.Context) {
	wait := firstWait
	for ctx.Err() == nil {
		l, err := c.lease4(ctx, wait)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			c.log.Warn("no DHCPv4 lease", "waited", wait, "err", err)
			wait = min(2*wait, maxWait)
			continue
		}
		wait = firstWait
		c.keep4(ctx, l)
	}
}

// keep4 uses and renews a lease, until it is lost or another one is needed.
func (c *nic) keep4(ctx context.Context, l lease) {
	held := l.address
	for {
		if err := c.use4(l); err != nil {
			c.log.Warn("lease cannot be used", "err", err)
			pause(ctx, maxWait)
			return
		}
		ends := time.Now().Add(l.valid)
		if l.bootFile == "" && !c.id.hasURL {
			pause(ctx, min(askAgain, l.renew))
			return // a new lease may come with a boot file
		}
		next, err := c.renew4(ctx, l, ends)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.log.Warn("lease is lost", "address", held, "err", err)
			c.uplinks.remove(c.name, 4)
			_ = removeAddress(c.index, held) // it may be another machine's from now on
			return
		}
		l = next
	}
}

// renew4 renews a lease when half of its time is over, and retries until it ends.
func (c *nic) renew4(ctx context.Context, l lease, ends time.Time) (lease, error) {
	for wait := l.renew; ; wait = max(time.Until(ends)/2, minLease/2) {
		if !pause(ctx, wait) {
			return lease{}, ctx.Err()
		}
		next, err := c.ask4(ctx, l)
		var refused *nclient4.ErrNak
		switch {
		case err == nil && next.address == l.address:
			return next, nil
		case err == nil:
			return lease{}, fmt.Errorf("the server has changed it to %s", next.address)
		case errors.As(err, &refused), time.Now().After(ends):
			return lease{}, err
		}
		c.log.Warn("lease is not renewed yet", "ends", time.Until(ends).Round(time.Second), "err", err)
	}
}

// client4 opens a client for one exchange.
func (c *nic) client4(wait time.Duration) (*nclient4.Client, error) {
	return nclient4.New(c.name, nclient4.WithTimeout(wait), nclient4.WithRetry(1))
}

// ask4 asks for a lease to be renewed.
func (c *nic) ask4(ctx context.Context, l lease) (lease, error) {
	client, err := c.client4(2 * firstWait)
	if err != nil {
		return lease{}, err
	}
	defer func() { _ = client.Close() }()
	renewed, err := client.Renew(ctx, &nclient4.Lease{Offer: l.acknowledged, ACK: l.acknowledged}, c.request4()...)
	if err != nil {
		return lease{}, err
	}
	return parseLease(renewed.ACK, l.bootFile)
}

// lease4 gets a new lease.
func (c *nic) lease4(ctx context.Context, wait time.Duration) (lease, error) {
	client, err := c.client4(wait)
	if err != nil {
		return lease{}, err
	}
	defer func() { _ = client.Close() }()
	discover, err := dhcpv4.NewDiscovery(c.mac, c.request4()...)
	if err != nil {
		return lease{}, err
	}
	offers := offers4{fileNeeded: !c.id.hasURL}
	_, err = client.SendAndRead(ctx, client.RemoteAddr(), discover, offers.enough)
	if offers.best == nil {
		return lease{}, errOr(err, errors.New("no server offers an address"))
	}
	got, err := client.RequestFromOffer(ctx, offers.best, c.request4()...)
	if err != nil {
		return lease{}, err
	}
	return parseLease(got.ACK, offers.file)
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// request4 returns the options of every message that is sent.
func (c *nic) request4() []dhcpv4.Modifier {
	list := []dhcpv4.Modifier{
		dhcpv4.WithRequestedOptions(
			dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainNameServer, dhcpv4.OptionDomainName,
			dhcpv4.OptionClasslessStaticRoute, dhcpv4.OptionTFTPServerName, dhcpv4.OptionBootfileName,
		),
		dhcpv4.WithUserClass(userClass, true),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier(userClass)),
		dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(nclient4.MaxMessageSize)),
	}
	if id := c.id.machineID(); id != nil {
		list = append(list, dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionClientMachineIdentifier, id)))
	}
	return list
}

// offers4 collects servers' offers. Where Ingot runs beside another DHCP server, one
// offers an address and the other the boot file.
type offers4 struct {
	fileNeeded bool
	best       *dhcpv4.DHCPv4
	file       string
}

// enough notes an offer, and reports whether no more have to be awaited.
func (o *offers4) enough(p *dhcpv4.DHCPv4) bool {
	if p.MessageType() != dhcpv4.MessageTypeOffer {
		return false
	}
	file := bootFile4(p)
	usable := !p.YourIPAddr.IsUnspecified() && p.ServerIdentifier() != nil
	if usable && (o.best == nil || bootFile4(o.best) == "" && file != "") {
		o.best = p
	}
	if o.file == "" {
		o.file = file
	}
	return o.best != nil && (o.file != "" || !o.fileNeeded)
}

// bootFile4 returns the boot file of a message if it is a URL, as an Ignition's is: other
// names are for the firmware's TFTP.
func bootFile4(p *dhcpv4.DHCPv4) string {
	for _, file := range []string{p.BootFileNameOption(), p.BootFileName} {
		if isURL(file) {
			return file
		}
	}
	return ""
}

// parseLease reads an acknowledgement. If that names no boot file, the lease has file,
// which another server may have offered.
func parseLease(p *dhcpv4.DHCPv4, file string) (lease, error) {
	a, ok := netip.AddrFromSlice(p.YourIPAddr.To4())
	if !ok || !a.IsGlobalUnicast() && !a.IsLinkLocalUnicast() {
		return lease{}, fmt.Errorf("the server leases %s, which no machine can have", p.YourIPAddr)
	}
	bits := 32
	if mask := p.SubnetMask(); mask != nil {
		if ones, size := mask.Size(); size == 32 && ones > 0 {
			bits = ones
		}
	}
	valid := min(max(p.IPAddressLeaseTime(time.Hour), minLease), maxLease)
	l := lease{
		acknowledged: p, address: netip.PrefixFrom(a, bits), dns: addresses(p.DNS()), bootFile: file,
		valid: valid, renew: min(max(p.IPAddressRenewalTime(valid/2), minLease/2), valid/2),
	}
	if own := bootFile4(p); own != "" {
		l.bootFile = own
	}
	l.routes = routes4(p, l.address)
	return l, nil
}

// routes4 returns the routes of a lease: the subnet, then those of option 121, or a
// default route by option 3 when there are none (RFC 3442).
func routes4(p *dhcpv4.DHCPv4, own netip.Prefix) []hop {
	list := []hop{{to: own.Masked()}}
	for _, r := range p.ClasslessStaticRoute() {
		to, ok := netip.AddrFromSlice(r.Dest.IP.To4())
		gateway, okay := netip.AddrFromSlice(r.Router.To4())
		bits, _ := r.Dest.Mask.Size()
		if ok && okay {
			list = append(list, hop{netip.PrefixFrom(to, bits).Masked(), gateway})
		}
	}
	if len(list) > 1 {
		return list
	}
	for _, gateway := range addresses(p.Router()) {
		if gateway.Is4() {
			return append(list, hop{netip.PrefixFrom(netip.IPv4Unspecified(), 0), gateway})
		}
	}
	return list
}

// addresses converts addresses, leaving out invalid and unspecified ones.
func addresses(ips []net.IP) []netip.Addr {
	var list []netip.Addr
	for _, ip := range ips {
		if a, ok := netip.AddrFromSlice(ip); ok && !a.IsUnspecified() {
			list = append(list, a.Unmap())
		}
	}
	return list
}

// use4 configures the card as the lease says.
func (c *nic) use4(l lease) error {
	if err := setAddress(c.index, l.address, l.valid); err != nil {
		return err
	}
	u := uplink{
		nic: c.name, index: c.index, family: 4, address: l.address, url: l.bootFile, preferred: c.preferred(),
	}
	if c.uplinks.add(u, l.routes, l.dns) {
		c.log.Info("address is leased", "address", l.address, "from", l.acknowledged.ServerIdentifier(),
			"for", l.valid, "bootFile", hostOf(l.bootFile))
	}
	return c.uplinks.route(u)
}
