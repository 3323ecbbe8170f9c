package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/dhcp/inuse"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/tftp"
	"ingot/cmd/daemon/addresses"
	"ingot/cmd/daemon/admin"
	"ingot/cmd/daemon/metadata"
	"ingot/cmd/daemon/stages"
)

// makeNetworks makes DHCP and TFTP and binds their sockets, nil for what is off.
func (d *daemon) makeNetworks(ctx context.Context) (err error) {
	o := &d.opts
	d.stages = stages.NewRecorder(d.registry.Boots, d.log)
	if len(o.DHCP) > 0 {
		d.dhcp, err = dhcp.New(dhcp.Options{
			Networks: o.DHCP, Store: d.registry.Leases, Identity: d.identity, Tickets: d.registry.Boots, Loaders: d.loaders, Rescue: d.rescue,
			Site: d.site, Note: d.stages.SawDHCP, InVain: d.sawInVain, Keep: d.reserved, PoolsChanged: d.loop.Wake, Heard: d.heard, Told: d.cards.Add,
			IsThere: d.isThere, Log: d.log, Registerer: d.metrics, Clock: d.clock, Prober: d.openProber(),
		})
		if err != nil {
			return err
		}
		if err = d.dhcp.Listen(ctx); err != nil {
			return err
		}
	}
	if o.TFTP.Listen != "" {
		d.tftp, err = tftp.New(tftp.Options{
			Loaders: tftpFiles{d.loaders, d.files}, Seen: d.sawTFTP,
			Told: d.followTFTP, IsThere: d.isThere, Log: d.log, Registerer: d.metrics, Clock: d.clock,
		})
		if err == nil {
			err = d.tftp.Listen(ctx, o.TFTP.Listen)
		}
		if err != nil {
			return fmt.Errorf("tftp.listen: %w", err)
		}
	}
	return nil
}

// openProber returns who asks whether somebody uses an address, nil where that is not possible.
func (d *daemon) openProber() dhcp.Prober {
	p, err := inuse.Open()
	if err != nil {
		d.log.Warn("addresses are offered without checking whether they are in use: that check needs CAP_NET_RAW", "err", err)
		return nil
	}
	d.prober = p
	return p
}

// openLoaders opens the boot loaders.
func (d *daemon) openLoaders() {
	o := &d.opts
	d.loaders = netboot.OpenLoaders(o.Boot.LoaderDirs)
	choice := netboot.LoaderChoice{
		Default: make(map[string]netboot.LoaderKind), Of: (&addresses.Loaders{Desired: d.desired}).Kind, Log: d.log,
	}
	for platform, kind := range o.Boot.Loaders {
		choice.Default[platform] = netboot.LoaderKind(kind)
	}
	d.loaders.Choose(choice)
}

// loadersThere returns nil, or which boot loaders are missing, which keeps nothing but the
// machines that need them from booting.
func (d *daemon) loadersThere() error {
	if !d.opts.ServesLoaders() {
		return nil
	}
	var architectures []string
	for _, f := range d.registry.Observed().ServerFacts {
		architectures = append(architectures, f.Inventory.Architecture())
	}
	if missing := d.loaders.Missing(architectures); len(missing) > 0 {
		return admin.Remark(strings.Join(missing, "; "))
	}
	return nil
}

// site returns where machines on a network reach the boot service: at local, this machine's
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

// unreachable reports whether a URL's host is an address of another IP version than local,
// at which a client reaches this machine.
func unreachable(base string, local netip.Addr) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host, err := netip.ParseAddr(u.Hostname())
	return err == nil && host.Unmap().Is4() != local.Unmap().Is4()
}

// sawTFTP notes that a client was sent a boot loader. All others wait for it meanwhile, and
// whose client that is anybody can forge.
func (d *daemon) sawTFTP(client netip.Addr, name string) {
	if !d.loaders.Reserves(name) {
		return
	}
	if holder, ok := d.addressRulesAtOnce().At(client); ok && holder.Ticket.MayBoot(holder.Progress) {
		d.stages.SawTFTP(holder.Ticket, client)
	}
}

// boundServers are the servers that the metadata service serves.
func (d *daemon) boundServers() *metadata.Servers {
	return &metadata.Servers{
		Desired: d.desired, Observed: d.registry.Observed, Holder: d.addressRules().At,
		TrustProbes: d.opts.AddressRule() != netboot.BindMachine && !d.opts.LeasesToServers(),
	}
}
