package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"ingot/bootsvc/bootfiles"
	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/dhcp/inuse"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/tftp"
	"ingot/cmd/daemon/addresses"
	"ingot/cmd/daemon/admin"
	"ingot/cmd/daemon/metadata"
	"ingot/cmd/daemon/stages"
	"ingot/model"
)

// network serves addresses and boot loaders.
type network struct {
	*core
	clients  *clients
	tftp     *tftp.Server  // nil = off
	prober   *inuse.Prober // nil disables probing
	loaders  *netboot.Loaders
	stages   *stages.Recorder
	identity []byte // of this Ingot among DHCP servers, derived from its key

	reserving   sync.Mutex     // guards reservedFor
	reservedFor *model.Desired // whose reservations DHCP has
}

// makeNetworks makes DHCP and TFTP and binds their sockets, nil for what is off.
func (d *network) makeNetworks(ctx context.Context, files *bootfiles.Folder, rescue *netboot.Rescue) (err error) {
	o := &d.opts
	d.stages = stages.NewRecorder(d.registry.Boots, d.log)
	if len(o.DHCP) > 0 {
		d.clients.dhcp, err = dhcp.New(dhcp.Options{
			Networks: o.DHCP, Store: d.registry.Leases, Identity: d.identity, Tickets: d.registry.Boots, Loaders: d.loaders, Rescue: rescue,
			Site: d.site, Note: d.stages.SawDHCP, InVain: d.noteRefused, Keep: d.reserved, PoolsChanged: d.loop.Wake, Heard: d.clients.heard, Told: d.clients.cards.Add,
			IsThere: d.clients.isThere, Log: d.log, Registerer: d.metrics, Clock: d.clock, Prober: d.openProber(),
		})
		if err != nil {
			return err
		}
		if err = d.clients.dhcp.Listen(ctx); err != nil {
			return err
		}
	}
	if o.TFTP.Listen != "" {
		d.tftp, err = tftp.New(tftp.Options{
			Loaders: tftpFiles{d.loaders, files}, Seen: d.sawTFTP,
			Told: d.clients.followTFTP, IsThere: d.clients.isThere, Log: d.log, Registerer: d.metrics, Clock: d.clock,
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
func (d *network) openProber() dhcp.Prober {
	p, err := inuse.Open()
	if err != nil {
		d.log.Warn("addresses are offered without checking whether they are in use: that check needs CAP_NET_RAW", "err", err)
		return nil
	}
	d.prober = p
	return p
}

// openLoaders opens the boot loaders, and warns of those that machines may ask for and that
// are missing.
func (d *network) openLoaders() {
	o := &d.opts
	d.loaders = netboot.OpenLoaders(o.Boot.LoaderDirs)
	choice := netboot.LoaderChoice{
		Default: make(map[string]netboot.LoaderKind), Of: (&addresses.Loaders{Desired: d.desired}).Kind, Log: d.log,
	}
	for platform, kind := range o.Boot.Loaders {
		choice.Default[platform] = netboot.LoaderKind(kind)
	}
	d.loaders.Choose(choice)
	if !o.ServesLoaders() {
		return
	}
	for _, missing := range d.loaders.Missing(o.Boot.Architectures) {
		d.log.Warn("a boot loader is missing", "reason", missing)
	}
}

// loadersThere returns nil, or which boot loaders are missing, which keeps nothing but the
// machines that need them from booting.
func (d *network) loadersThere() error {
	if !d.opts.ServesLoaders() {
		return nil
	}
	if missing := d.loaders.Missing(d.opts.Boot.Architectures); len(missing) > 0 {
		return admin.Remark(strings.Join(missing, "; "))
	}
	return nil
}

// site returns where machines on a network reach the boot service: at local, this machine's
// address there, unless the configuration says otherwise.
func (d *network) site(network string, local netip.Addr) netboot.Site {
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
func (d *network) sawTFTP(client netip.Addr, name string) {
	if !d.loaders.Reserves(name) {
		return
	}
	if holder, ok := d.clients.addressRulesAtOnce().At(client); ok && holder.Ticket.MayBoot(holder.Progress) {
		d.stages.SawTFTP(holder.Ticket, client)
	}
}

// boundServers are the servers that the metadata service serves.
func (d *clients) boundServers() *metadata.Servers {
	return &metadata.Servers{
		Desired: d.desired, Observed: d.registry.Observed, Holder: d.addressRules().At,
		TrustProbes: d.opts.AddressRule() != netboot.BindMachine && !d.opts.LeasesToServers(),
	}
}
