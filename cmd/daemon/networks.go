package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/tftp"
	"ingot/cmd/daemon/addresses"
	"ingot/cmd/daemon/metadata"
	"ingot/cmd/daemon/stages"
	"ingot/model"
)

// makeNetworks makes DHCP and TFTP and binds their sockets, nil for what is off.
func (d *daemon) makeNetworks(ctx context.Context) (err error) {
	o := &d.opts
	d.stages = stages.NewRecorder(d.registry, d.log)
	if len(o.DHCP) > 0 {
		d.dhcp, err = dhcp.New(dhcp.Options{
			Networks: o.DHCP, Store: d.registry, Identity: d.identity, Tickets: d.registry, Loaders: d.loaders,
			Site: d.site, Note: d.stages.SawDHCP, InVain: d.sawInVain, Keep: d.reserved, PoolsChanged: d.loop.Wake, Heard: d.heard,
			Log: d.log, Registerer: d.metrics,
		})
		if err != nil {
			return err
		}
		if err = d.dhcp.Listen(ctx); err != nil {
			return err
		}
	}
	if o.TFTP.Listen != "" {
		d.tftp, err = tftp.New(tftp.Options{Loaders: d.loaders, Seen: d.sawTFTP, Log: d.log, Registerer: d.metrics})
		if err == nil {
			err = d.tftp.Listen(ctx, o.TFTP.Listen)
		}
		if err != nil {
			return fmt.Errorf("tftp.listen: %w", err)
		}
	}
	return nil
}

// openLoaders opens the boot loaders and says which of those that machines may
// ask for are missing.
func (d *daemon) openLoaders() {
	o := &d.opts
	d.loaders = netboot.OpenLoaders(o.Boot.LoaderDirs)
	if !o.ServesLoaders() {
		return
	}
	for _, missing := range d.loaders.Missing(o.Boot.Architectures) {
		d.log.Warn("a boot loader is missing", "reason", missing)
	}
}

// site is where machines on a network reach the boot service: at local, our
// address there, unless the configuration says otherwise.
func (d *daemon) site(network string, local netip.Addr) netboot.Site {
	s := netboot.Site{HTTP: d.opts.Boot.URL}
	for _, n := range d.opts.DHCP {
		if n.Name == network && n.BootURL != "" {
			s.HTTP = n.BootURL
		}
	}
	if unreachable(s.HTTP, local) {
		s.HTTP = ""
	}
	if tcp, ok := addrOf(d.listeners.boot).(*net.TCPAddr); ok && s.HTTP == "" {
		at := netip.AddrPortFrom(local, uint16(tcp.Port))
		if ip, ok := netip.AddrFromSlice(tcp.IP); ok && !ip.IsUnspecified() {
			at = netip.AddrPortFrom(ip.Unmap(), uint16(tcp.Port))
		}
		s.HTTP = "http://" + at.String()
	}
	s.HTTP = strings.TrimRight(s.HTTP, "/")
	if d.opts.TFTP.Listen != "" {
		s.TFTP = local
		if at, err := netip.ParseAddrPort(d.opts.TFTP.Listen); err == nil && !at.Addr().IsUnspecified() {
			s.TFTP = at.Addr()
		}
	}
	return s
}

// reserved reports whether a MAC address is that of a server that is Reserved.
func (d *daemon) reserved(mac string) bool {
	offer, _ := d.registry.Find(mac)
	rec := d.registry.Observed().Servers[offer.Server]
	return rec != nil && rec.State == model.StateReserved
}

// unreachable reports whether a URL's host is an address of another IP version
// than that at which a client reaches us.
func unreachable(base string, local netip.Addr) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host, err := netip.ParseAddr(u.Hostname())
	return err == nil && host.Unmap().Is4() != local.Unmap().Is4()
}

// macPrefixes reads the MAC prefix database, nil for none.
func (d *daemon) macPrefixes() (*model.MACPrefixes, error) {
	file := d.opts.Discovery.MACPrefixesFile
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("discovery.macPrefixesFile: %w", err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 {
		d.log.Warn("everybody on this machine can read the MAC prefix database, which holds passwords: chmod o-r", "file", file)
	}
	prefixes, problems := model.DecodeMACPrefixes(file, data, d.registry.TokenKey())
	if err := model.JoinErrors(problems); err != nil {
		return nil, fmt.Errorf("discovery.macPrefixesFile: %w", err)
	}
	return prefixes, nil
}

// pools are how full the pools of DHCP are.
func (d *daemon) pools() []model.PoolFacts {
	if d.dhcp == nil {
		return nil
	}
	return d.dhcp.Pools()
}

// leasedAt is when DHCP last gave one of these MAC addresses a lease, or renewed one.
func (d *daemon) leasedAt(macs []string) time.Time {
	if d.dhcp == nil {
		return time.Time{}
	}
	return d.dhcp.Leased(macs)
}

// sawTFTP notes that a client was sent a boot loader.
func (d *daemon) sawTFTP(client netip.Addr, _ string) {
	if holder, ok := d.bindings().At(client); ok && holder.Ticket.MayBoot(holder.Progress) {
		d.stages.SawTFTP(holder.Ticket, client)
	}
}

// serveDHCP reads the leases, closes leased, and serves them once the reservations in Git are known: a
// device must not be given another address because we had just begun. While Git cannot
// be read they are not waited for longer than patience.
func (d *daemon) serveDHCP(ctx context.Context, known <-chan struct{}, leased chan<- struct{}, patience time.Duration) error {
	if !d.dhcp.Load(ctx) {
		return nil
	}
	close(leased)
	select {
	case <-ctx.Done():
		return nil
	case <-known:
	case <-time.After(patience):
		d.log.Warn("DHCP begins without the reservations in Git, which was not read yet", "after", patience)
	}
	return d.dhcp.Run(ctx)
}

// reserve keeps the reservations of DHCP in step with the Endpoints in Git, and
// closes known once it has the first.
func (d *daemon) reserve(ctx context.Context, known chan<- struct{}) error {
	var last *model.Desired
	every := 20 * time.Millisecond // machines wait
	for {
		if now := d.source.Desired(); now != nil && now != last {
			d.dhcp.SetReservations(addresses.Reservations(now))
			if last == nil {
				close(known)
				every = time.Second
			}
			last = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// sawInVain notes that a server's firmware asked DHCP what to boot and was told nothing.
func (d *daemon) sawInVain(t *model.Ticket, mac string) {
	d.registry.Use(t, model.ThingBootFile, model.Asker{MAC: mac, Own: true}, model.RefusedReplay)
}

// boundServers are the servers that the metadata service serves.
func (d *daemon) boundServers() *metadata.Servers {
	return &metadata.Servers{
		Desired: d.source.Desired, Observed: d.registry.Observed, Holder: d.bindings().At,
		TrustProbes: d.opts.AddressRule() != netboot.BindMachine && !d.opts.LeasesToServers(),
	}
}
