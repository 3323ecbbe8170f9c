package daemon

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"ingot/cmd/daemon/addresses"
	"ingot/model"
)

// startDHCP gives out leases before anything else is known: the Git host may need one. The
// channel that it returns is closed once the leases are known, by which machines are told
// apart.
func (d *daemon) startDHCP(ctx context.Context, parts *errgroup.Group) (leased chan struct{}) {
	leased = make(chan struct{})
	if d.dhcp == nil {
		close(leased)
		return leased
	}
	known := make(chan struct{})
	if d.prober != nil {
		parts.Go(func() error { return d.prober.Run(ctx) })
	}
	parts.Go(func() error { return d.reserve(ctx, known) })
	parts.Go(func() error { return d.serveDHCP(ctx, known, leased, 10*time.Second) })
	return leased
}

// serveDHCP reads the leases, closes leased, and serves once the reservations in Git are
// known: a device must not get another address because this process has just started. While
// Git cannot be read, it waits no longer than timeout.
func (d *daemon) serveDHCP(ctx context.Context, known <-chan struct{}, leased chan<- struct{}, timeout time.Duration) error {
	if !d.dhcp.Load(ctx) {
		return nil
	}
	close(leased)
	select {
	case <-ctx.Done():
		return nil
	case <-known:
	case <-time.After(timeout):
		d.log.Warn("DHCP starts without the reservations in Git, which has not been read yet", "after", timeout)
	}
	return d.dhcp.Run(ctx)
}

// reserve keeps the reservations of DHCP in step with the Endpoints in Git, and
// closes known once it has the first, or there are none to wait for.
func (d *daemon) reserve(ctx context.Context, known chan<- struct{}) error {
	every := 20 * time.Millisecond // machines wait
	for {
		read := d.manifestsKnown()
		d.reserveDesired()
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
func (d *daemon) reserveDesired() *model.Desired {
	d.reserving.Lock()
	defer d.reserving.Unlock()
	now := d.desired()
	if d.dhcp != nil && now != nil && now != d.reservedFor {
		d.dhcp.SetReservations(addresses.Reservations(now))
		d.reservedFor = now
	}
	return now
}

// pools returns how full the pools of DHCP are.
func (d *daemon) pools() []model.PoolFacts {
	if d.dhcp == nil {
		return nil
	}
	return d.dhcp.Pools()
}

// leasedAddresses returns the addresses that DHCP leases to these MAC addresses.
func (d *daemon) leasedAddresses(macs []string) []netip.Addr {
	if d.dhcp == nil {
		return nil
	}
	return d.dhcp.Addresses(macs)
}

// leasedAt returns when DHCP last gave one of these MAC addresses a lease, or renewed one.
func (d *daemon) leasedAt(macs []string) time.Time {
	if d.dhcp == nil {
		return time.Time{}
	}
	return d.dhcp.Leased(macs)
}

// reserved reports whether a MAC address is that of a server that is Reserved.
func (d *daemon) reserved(mac string) bool {
	holder, _ := d.registry.Boots.Find(mac)
	rec := d.registry.Observed().Servers[holder.Server]
	return rec != nil && rec.Life.State == model.StateReserved
}

// sawInVain notes that a server's firmware asked DHCP what to boot and got no answer.
func (d *daemon) sawInVain(t *model.Ticket, mac string) {
	d.registry.Boots.Use(t, model.ThingBootFile, model.Asker{MAC: mac, Own: true}, model.RefusedReplay)
}
