package machine

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/nclient6"
	"github.com/insomniacslk/dhcp/iana"
)

// lease6 is what a DHCPv6 server answered.
type lease6 struct {
	reply        *dhcpv6.Message
	address      netip.Prefix // zero in the answer to an Information-request
	dns          []netip.Addr
	bootFile     string
	valid, renew time.Duration
}

// configure6 lets the kernel form addresses from router advertisements, and asks a
// DHCPv6 server where they say that there is one, until ctx ends.
func (c *nic) configure6(ctx context.Context) {
	var last netip.Prefix
	var stateless sync.WaitGroup
	defer stateless.Wait()
	for asked := false; ; {
		flags, err := raFlagsOn(c.index)
		if err != nil {
			c.log.Warn("router advertisements cannot be read", "err", err)
		}
		own, ready := ownAddresses(c.name)
		if own.IsValid() && own != last {
			last = own
			c.found6(own, "", nil)
		}
		switch {
		case !ready: // without a link-local address no server can be asked
		case flags.managed:
			c.log.Info("router advertises DHCPv6 for addresses")
			c.managed6(ctx)
			return
		case flags.other && !asked:
			c.log.Info("router advertises DHCPv6 for other configuration")
			asked = true
			stateless.Go(func() { c.stateless6(ctx) })
		}
		if !pause(ctx, lookEvery) {
			return
		}
	}
}

// found6 notes an address.
func (c *nic) found6(own netip.Prefix, file string, dns []netip.Addr) {
	u := uplink{nic: c.name, index: c.index, family: 6, address: own, url: file, preferred: c.preferred()}
	if c.uplinks.add(u, nil, dns) {
		c.log.Info("address is set", "address", own.Addr(), "bootFile", hostOf(file))
	}
}

// managed6 leases an address, and renews the lease until ctx ends.
func (c *nic) managed6(ctx context.Context) {
	wait := firstWait
	for ctx.Err() == nil {
		l, err := c.exchange6(ctx, wait, c.solicit6)
		if err != nil {
			if ctx.Err() == nil {
				c.log.Warn("no DHCPv6 lease", "waited", wait, "err", err)
			}
			wait = min(2*wait, maxWait)
			continue
		}
		wait = firstWait
		for err == nil && ctx.Err() == nil {
			if err := setAddress(c.index, l.address, l.valid); err != nil {
				c.log.Warn("lease cannot be used", "err", err)
				pause(ctx, maxWait)
				break
			}
			c.found6(l.address, l.bootFile, l.dns)
			if l.bootFile == "" && !c.id.hasURL {
				pause(ctx, min(askAgain, l.renew))
				break
			}
			if !pause(ctx, l.renew) {
				return
			}
			l, err = c.exchange6(ctx, 4*firstWait, renewing6(l))
		}
		if err != nil {
			c.log.Warn("lease is not renewed", "err", err)
		}
	}
}

// stateless6 asks a DHCPv6 server for DNS servers and the boot file that go with
// addresses formed from router advertisements (RFC 8415 §6.1), until the server names a
// boot file or none is needed.
func (c *nic) stateless6(ctx context.Context) {
	wait := firstWait
	for {
		l, err := c.exchange6(ctx, wait, c.inform6)
		own, _ := ownAddresses(c.name)
		if err == nil && own.IsValid() {
			c.found6(own, l.bootFile, l.dns)
			if l.bootFile != "" || c.id.hasURL {
				return
			}
		}
		wait = min(2*wait, maxWait)
		if !pause(ctx, wait) {
			return
		}
	}
}

// ask6 is one exchange of messages with a DHCPv6 server.
type ask6 func(context.Context, *nclient6.Client) (*dhcpv6.Message, error)

// exchange6 opens a client for one exchange.
func (c *nic) exchange6(ctx context.Context, wait time.Duration, ask ask6) (lease6, error) {
	client, err := nclient6.New(c.name, nclient6.WithTimeout(wait), nclient6.WithRetry(1))
	if err != nil {
		pause(ctx, wait)
		return lease6{}, err
	}
	defer func() { _ = client.Close() }()
	reply, err := ask(ctx, client)
	if err != nil {
		return lease6{}, err
	}
	return parseLease6(reply)
}

func (c *nic) solicit6(ctx context.Context, client *nclient6.Client) (*dhcpv6.Message, error) {
	advertise, err := client.Solicit(ctx, c.request6()...)
	if err != nil {
		return nil, err
	}
	return client.Request(ctx, advertise, c.request6()...)
}

// renewing6 asks for a lease to be renewed (RFC 8415 §18.2.4).
func renewing6(l lease6) ask6 {
	return func(ctx context.Context, client *nclient6.Client) (*dhcpv6.Message, error) {
		m, err := dhcpv6.NewMessage()
		if err != nil {
			return nil, err
		}
		m.MessageType = dhcpv6.MessageTypeRenew
		for _, code := range []dhcpv6.OptionCode{dhcpv6.OptionClientID, dhcpv6.OptionServerID, dhcpv6.OptionIANA} {
			if o := l.reply.GetOneOption(code); o != nil {
				m.AddOption(o)
			}
		}
		m.AddOption(dhcpv6.OptElapsedTime(0))
		dhcpv6.WithUserClass([]byte(userClass))(m)
		dhcpv6.WithRequestedOptions(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionBootfileURL)(m)
		return client.SendAndRead(ctx, client.RemoteAddr(), m, nclient6.IsMessageType(dhcpv6.MessageTypeReply))
	}
}

// inform6 sends an Information-request (RFC 8415 §18.2.6).
func (c *nic) inform6(ctx context.Context, client *nclient6.Client) (*dhcpv6.Message, error) {
	m, err := dhcpv6.NewMessage(c.request6()...)
	if err != nil {
		return nil, err
	}
	m.MessageType = dhcpv6.MessageTypeInformationRequest
	m.AddOption(dhcpv6.OptElapsedTime(0))
	return client.SendAndRead(ctx, client.RemoteAddr(), m, nclient6.IsMessageType(dhcpv6.MessageTypeReply))
}

// request6 returns the options of every message that is sent. The UUID is in network
// order, as of RFC 6355.
func (c *nic) request6() []dhcpv6.Modifier {
	var id dhcpv6.DUID = &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: c.mac}
	if c.id.uuid != uuid.Nil {
		id = &dhcpv6.DUIDUUID{UUID: c.id.uuid}
	}
	return []dhcpv6.Modifier{
		dhcpv6.WithClientID(id),
		dhcpv6.WithUserClass([]byte(userClass)),
		dhcpv6.WithRequestedOptions(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionBootfileURL),
	}
}

// parseLease6 reads a reply.
func parseLease6(m *dhcpv6.Message) (lease6, error) {
	l := lease6{reply: m, dns: addresses(m.Options.DNS())}
	if file := m.Options.BootFileURL(); isURL(file) {
		l.bootFile = file
	}
	if s := m.Options.Status(); s != nil && s.StatusCode != iana.StatusSuccess {
		return lease6{}, fmt.Errorf("the server says %s", s.StatusCode)
	}
	ia := m.Options.OneIANA()
	if ia == nil {
		return l, nil // the answer to an Information-request
	}
	if s := ia.Options.Status(); s != nil && s.StatusCode != iana.StatusSuccess {
		return lease6{}, fmt.Errorf("the server says %s", s.StatusCode)
	}
	given := ia.Options.OneAddress()
	if given == nil {
		return lease6{}, errors.New("the server leases no address")
	}
	a, ok := netip.AddrFromSlice(given.IPv6Addr)
	if !ok || !a.Is6() || !a.IsGlobalUnicast() || given.ValidLifetime == 0 {
		return lease6{}, fmt.Errorf("the server leases %s, which no machine can have", given.IPv6Addr)
	}
	l.address = netip.PrefixFrom(a, 128) // which prefixes are on the link is for routers to say
	l.valid = min(max(given.ValidLifetime, minLease), maxLease)
	l.renew = min(max(ia.T1, minLease/2), l.valid/2)
	return l, nil
}

// ownAddresses returns a global address of an interface, and whether it has a link-local
// one, from the kernel's list. Addresses whose check for duplicates is not done are left
// out.
func ownAddresses(name string) (global netip.Prefix, ready bool) {
	f, err := os.Open("/proc/net/if_inet6")
	if err != nil {
		return netip.Prefix{}, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		a, ok := parseOwn(lines.Text(), name)
		switch {
		case ok && a.Addr().IsLinkLocalUnicast():
			ready = true
		case ok && a.Addr().IsGlobalUnicast() && !global.IsValid():
			global = a
		}
	}
	return global, ready
}

// parseOwn reads a line of if_inet6: address, index, prefix length, scope, flags
// and name, in hexadecimal digits.
func parseOwn(line, name string) (netip.Prefix, bool) {
	const tentative, failed = 0x40, 0x08
	words := strings.Fields(line)
	if len(words) != 6 || words[5] != name {
		return netip.Prefix{}, false
	}
	raw, err := hex.DecodeString(words[0])
	bits, err2 := strconv.ParseUint(words[2], 16, 8)
	flags, err3 := strconv.ParseUint(words[4], 16, 16)
	a, ok := netip.AddrFromSlice(raw)
	if errors.Join(err, err2, err3) != nil || !ok || !a.Is6() || flags&(tentative|failed) != 0 {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, int(bits)), true
}

// routers6 lists the routers that the kernel has learnt on an interface.
func routers6(name string) []netip.Addr {
	f, err := os.Open("/proc/net/ipv6_route")
	if err != nil {
		return nil
	}
	defer f.Close()
	var list []netip.Addr
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if a, ok := parseRouter6(lines.Text(), name); ok && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// parseRouter6 reads a line of ipv6_route: destination and source with their prefix
// lengths, gateway, metric, two counts, flags and interface, in hexadecimal digits.
func parseRouter6(line, name string) (netip.Addr, bool) {
	const up, gateway = 0x1, 0x2 // RTF_UP, RTF_GATEWAY of linux/route.h
	words := strings.Fields(line)
	if len(words) != 10 || words[9] != name || words[1] != "00" {
		return netip.Addr{}, false
	}
	raw, err := hex.DecodeString(words[4])
	flags, err2 := strconv.ParseUint(words[8], 16, 32)
	a, ok := netip.AddrFromSlice(raw)
	if errors.Join(err, err2) != nil || !ok || flags&up == 0 || flags&gateway == 0 {
		return netip.Addr{}, false
	}
	return a, true
}
