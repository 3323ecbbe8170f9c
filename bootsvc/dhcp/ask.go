package dhcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
)

// Ask asks on a network interface, as a device that nobody knows would, whether a DHCP
// server offers an address within wait (RFC 2131 §4.4.1). Nothing is requested, so no
// address is taken. It returns the server that answered first, unspecified if it does not say
// who it is, or none.
func Ask(ctx context.Context, ifname string, wait time.Duration) (server netip.Addr, err error) {
	mac := make(net.HardwareAddr, 6)
	_, _ = rand.Read(mac)        // never fails
	mac[0] = mac[0]&^0x01 | 0x02 // locally administered, of one device
	client, err := nclient4.New(ifname, nclient4.WithHWAddr(mac), nclient4.WithTimeout(wait), nclient4.WithRetry(1))
	if err != nil {
		return server, fmt.Errorf("ask for DHCP servers on %s: %w", ifname, err)
	}
	defer func() { _ = client.Close() }() // nothing was requested
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	offer, err := client.DiscoverOffer(ctx, dhcpv4.WithBroadcast(true))
	if errors.Is(err, nclient4.ErrNoResponse) || errors.Is(err, context.DeadlineExceeded) {
		return server, nil // nobody offers anything
	}
	if err != nil {
		return server, fmt.Errorf("ask for DHCP servers on %s: %w", ifname, err)
	}
	if server, ok := netip.AddrFromSlice(offer.ServerIdentifier().To4()); ok {
		return server, nil
	}
	return netip.IPv4Unspecified(), nil
}
