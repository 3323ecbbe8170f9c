package daemon

import (
	"context"
	"net/netip"
	"time"

	"ingot/cmd/daemon/addresses"
	"ingot/model"
)

// startDHCP gives out leases before anything else is known: the Git host may need one. The
// channel that it returns is closed once the leases are known, by which machines are told
// apart.
func (n *network) startDHCP(ctx context.Context, parts *parts) (leased chan struct{}) {
	leased = make(chan struct{})
	if n.clients.dhcp == nil {
		close(leased)
		return leased
	}
	known := make(chan struct{})
	if n.prober != nil {
		parts.act(func() error { return n.prober.Run(ctx) })
	}
	parts.act(func() error { return n.reserve(ctx, known) })
	parts.act(func() error { return n.serveDHCP(ctx, known, leased, 10*time.Second) })
	return leased
}

// serveDHCP reads the leases, closes leased, and serves once the reservations in Git are
// known: a device must not get another address because this process has just started. While
// Git cannot be read, it waits no longer than timeout.
func (n *network) serveDHCP(ctx context.Context, known <-chan struct{}, leased chan<- struct{}, timeout time.Duration) error {
	if !n.clients.dhcp.Load(ctx) {
		return nil
	}
	close(leased)
	select {
	case <-ctx.Done():
		return nil
	case <-known:
	case <-time.After(timeout):
		n.log.Warn("DHCP starts without the reservations in Git, which has not been read yet", "after", timeout)
	}
	return n.clients.dhcp.Run(ctx)
}

// reserve keeps the reservations of DHCP in step with the Endpoints in Git, and
// closes known once it has the first, or there are none to wait for.
func (n *network) reserve(ctx context.Context, known chan<- struct{}) error {
	every := 20 * time.Millisecond // machines wait
	for {
		read := n.manifestsKnown()
		n.reserveDesired()
		if read && known != nil {
			close(known)
			known, every = nil, time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// reserveDesired gives DHCP the reservations in what Git asks for, and returns that. It is planned with
// and shown only after that, so that what is shown to be in force is so for devices, too.
func (n *network) reserveDesired() *model.Desired {
	n.reserving.Lock()
	defer n.reserving.Unlock()
	now := n.desired()
	if n.clients.dhcp != nil && now != nil && now != n.reservedFor {
		n.clients.dhcp.SetReservations(addresses.Reservations(now))
		n.reservedFor = now
	}
	return now
}

func (n *network) pools() []model.PoolFacts {
	if n.clients.dhcp == nil {
		return nil
	}
	return n.clients.dhcp.Pools()
}

// leasedAddresses returns the addresses that DHCP leases to these MAC addresses.
func (n *network) leasedAddresses(macs []string) []netip.Addr {
	if n.clients.dhcp == nil {
		return nil
	}
	return n.clients.dhcp.Addresses(macs)
}

// leasedAt returns when DHCP last gave one of these MAC addresses a lease, or renewed one.
func (n *network) leasedAt(macs []string) time.Time {
	if n.clients.dhcp == nil {
		return time.Time{}
	}
	return n.clients.dhcp.Leased(macs)
}

func (n *network) reserved(mac string) bool {
	holder, _ := n.registry.Boots.Find(mac)
	rec := n.registry.Observed().Servers[holder.Server]
	return rec != nil && rec.Life.State == model.StateReserved
}

// noteRefused notes that a server's firmware asked DHCP what to boot and got no answer.
func (n *network) noteRefused(t *model.Ticket, mac string) {
	n.registry.Boots.Use(t, model.ThingBootFile, model.Asker{MAC: mac, Own: true}, model.RefusedReplay)
}
