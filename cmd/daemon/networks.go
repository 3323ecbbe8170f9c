package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"

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
	"ingot/registry"
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

// makeNetworks makes DHCP and TFTP, unless they are off, and opens their sockets. With a shared store it closes them again.
func (n *network) makeNetworks(ctx context.Context, files *bootfiles.Folder, rescue *netboot.Rescue) (err error) {
	o := &n.opts
	n.stages = stages.NewRecorder(n.registry.Boots, n.log)
	if len(o.DHCP) > 0 {
		n.clients.dhcp, err = dhcp.New(dhcp.Options{
			Networks: o.DHCP, Store: n.registry.Leases, Identity: n.identity, Tickets: n.registry.Boots, Loaders: n.loaders, Rescue: rescue,
			Site: n.site, Note: n.stages.SawDHCP, InVain: n.noteRefused, Keep: n.reserved, PoolsChanged: n.loop.Wake, Heard: n.clients.heard, Told: n.clients.cards.Add,
			IsThere: n.clients.isThere, Log: n.log, Registerer: n.metrics, Clock: n.clock, Prober: n.openProber(),
			Storable: func() bool { state, _ := n.registry.Lead.State(); return state == registry.Leads },
		})
		if err != nil {
			return err
		}
	}
	if o.TFTP.Listen != "" {
		n.tftp, err = tftp.New(tftp.Options{
			Loaders: tftpFiles{n.loaders, files}, Seen: n.sawTFTP,
			Told: n.clients.followTFTP, IsThere: n.clients.isThere, Log: n.log, Registerer: n.metrics, Clock: n.clock,
		})
		if err != nil {
			return fmt.Errorf("tftp.listen: %w", err)
		}
	}
	err = n.listen(ctx)
	if shares(o) {
		n.close()
		if errors.Is(err, syscall.EADDRINUSE) { // the leader may run on this machine
			return nil
		}
	}
	return err
}

// listen opens the sockets of DHCP and TFTP.
func (n *network) listen(ctx context.Context) error {
	if n.clients.dhcp != nil {
		if err := n.clients.dhcp.Listen(ctx); err != nil {
			return err
		}
	}
	if n.tftp != nil {
		if err := n.tftp.Listen(ctx, n.opts.TFTP.Listen); err != nil {
			return fmt.Errorf("tftp.listen: %w", err)
		}
	}
	return nil
}

// close closes the sockets of DHCP and TFTP; those that were closed before do no harm.
func (n *network) close() {
	if n.clients.dhcp != nil {
		n.clients.dhcp.Close()
	}
	if n.tftp != nil {
		n.tftp.Close()
	}
}

// openProber returns who asks whether somebody uses an address, nil where that is not possible.
func (n *network) openProber() dhcp.Prober {
	p, err := inuse.Open()
	if err != nil {
		n.log.Warn("addresses are offered without checking whether they are in use: that check needs CAP_NET_RAW", "err", err)
		return nil
	}
	n.prober = p
	return p
}

func (n *network) openLoaders() {
	o := &n.opts
	n.loaders = netboot.OpenLoaders(o.Boot.LoaderDirs)
	choice := netboot.LoaderChoice{
		Default: make(map[string]netboot.LoaderKind), Of: (&addresses.Loaders{Desired: n.desired}).Kind, Log: n.log,
	}
	for platform, kind := range o.Boot.Loaders {
		choice.Default[platform] = netboot.LoaderKind(kind)
	}
	n.loaders.Choose(choice)
}

// loadersThere returns nil, or which boot loaders are missing, which keeps nothing but the
// machines that need them from booting.
func (n *network) loadersThere() error {
	if !n.opts.ServesLoaders() {
		return nil
	}
	var architectures []string
	for _, f := range n.registry.Observed().ServerFacts {
		architectures = append(architectures, f.Inventory.Architecture())
	}
	if missing := n.loaders.Missing(architectures); len(missing) > 0 {
		return admin.Remark(strings.Join(missing, "; "))
	}
	return nil
}

// site returns where machines on a network reach the boot service: at local, this machine's
// address there, unless the configuration says otherwise.
func (n *network) site(network string, local netip.Addr) netboot.Site {
	s := netboot.Site{HTTP: n.opts.Boot.URL}
	for _, at := range n.opts.DHCP {
		if at.Name == network && at.BootURL != "" {
			s.HTTP = at.BootURL
		}
	}
	if unreachable(s.HTTP, local) {
		s.HTTP = ""
	}
	if tcp, ok := addrOf(n.listeners.boot).(*net.TCPAddr); ok && s.HTTP == "" {
		at := netip.AddrPortFrom(local, uint16(tcp.Port))
		if ip, ok := netip.AddrFromSlice(tcp.IP); ok && !ip.IsUnspecified() {
			at = netip.AddrPortFrom(ip.Unmap(), uint16(tcp.Port))
		}
		s.HTTP = "http://" + at.String()
	}
	s.HTTP = strings.TrimRight(s.HTTP, "/")
	if n.opts.TFTP.Listen != "" {
		s.TFTP = local
		if at, err := netip.ParseAddrPort(n.opts.TFTP.Listen); err == nil && !at.Addr().IsUnspecified() {
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
func (n *network) sawTFTP(client netip.Addr, name string) {
	if !n.loaders.Reserves(name) {
		return
	}
	if holder, ok := n.clients.addressRulesAtOnce().At(client); ok && holder.Ticket.MayBoot(holder.Progress) {
		n.stages.SawTFTP(holder.Ticket, client)
	}
}

func (c *clients) boundServers() *metadata.Servers {
	return &metadata.Servers{
		Desired: c.desired, Observed: c.registry.Observed, Holder: c.addressRules().At,
		TrustProbes: c.opts.AddressRule() != netboot.BindMachine && !c.opts.LeasesToServers(),
	}
}
