package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/tftp"
	"ingot/model"
	"ingot/registry"
)

// makeNetworks makes DHCP and TFTP and binds their sockets, nil for what is off.
func (d *daemon) makeNetworks(ctx context.Context) (err error) {
	o := &d.opts
	d.stages = &stageNotes{note: d.registry.Note, queue: make(chan seenStage, 1024), log: d.log}
	if len(o.DHCP) > 0 {
		d.dhcp, err = dhcp.New(dhcp.Options{
			Networks: o.DHCP, Store: d.registry, Identity: d.identity, Offers: d.registry, Loaders: d.loaders,
			Site: d.site, Note: d.stages.see, Keep: d.reserved, PoolsChanged: d.loop.Wake,
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
	if !o.boots() {
		return
	}
	for _, missing := range d.loaders.Missing(o.Boot.Architectures) {
		d.log.Warn("a boot loader is missing", "reason", missing)
	}
}

// boots reports whether machines may ask for boot loaders.
func (o *Options) boots() bool {
	for _, n := range o.DHCP {
		if n.Role == model.RoleHost && n.Mode != dhcp.ModeOff {
			return true
		}
	}
	return o.TFTP.Listen != ""
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
	offer, ok := d.registry.Offer(mac)
	if !ok || offer.Ticket == nil {
		return false
	}
	rec := d.registry.Observed().Servers[offer.Ticket.Server]
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

// leaseNetworks are the names of the networks on which Ingot gives addresses.
func (o *Options) leaseNetworks() []string {
	names := []string{}
	for _, n := range o.DHCP {
		if n.Mode == dhcp.ModeServer || n.Mode == "" {
			names = append(names, n.Name)
		}
	}
	return names
}

// leases reports whether Ingot gives servers their addresses.
func (o *Options) leases() bool {
	for _, n := range o.DHCP {
		if n.Role == model.RoleHost && (n.Mode == dhcp.ModeServer || n.Mode == "") {
			return true
		}
	}
	return false
}

// tenants are the bound servers as the metadata service asks for them.
func (d *daemon) tenants() *tenants {
	return &tenants{
		desired: d.source.Desired, observed: d.registry.Observed, leases: d.opts.leases(), holder: d.holder,
		server: func(mac string) (model.ServerName, bool) {
			offer, ok := d.registry.Offer(mac)
			if !ok || offer.Ticket == nil {
				return "", false
			}
			return offer.Ticket.Server, true
		},
	}
}

// holder is who holds a lease on an address, if Ingot gave it.
func (d *daemon) holder(a netip.Addr) (mac string, ok bool) {
	if d.dhcp == nil {
		return "", false
	}
	return d.dhcp.Holder(a)
}

// sawTFTP notes that a client was sent a boot loader.
func (d *daemon) sawTFTP(client netip.Addr, _ string) {
	mac, ok := d.holder(client)
	if !ok {
		return
	}
	if offer, ok := d.registry.Offer(mac); ok && offer.Ticket.MayBoot(offer.Progress) {
		d.stages.see(offer.Ticket, model.StageTFTP, client)
	}
}

// serveDHCP serves leases once the reservations in Git are known: a device must
// not be given another address because we had just begun. While Git cannot be
// read they are not waited for longer than patience.
func (d *daemon) serveDHCP(ctx context.Context, known <-chan struct{}, patience time.Duration) error {
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
			d.dhcp.SetReservations(reservations(now))
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

// reservations are the addresses that Endpoints in Git name.
func reservations(d *model.Desired) []dhcp.Reservation {
	var all []dhcp.Reservation
	for name, e := range d.Endpoints {
		if ip, err := netip.ParseAddr(e.Spec.IP); err == nil {
			all = append(all, dhcp.Reservation{MAC: e.Spec.MACAddress, Name: name, Address: ip})
		}
	}
	return all
}

// stageNotes records the boot stages that packet handlers see, without making
// them wait for the store.
type stageNotes struct {
	note  func(context.Context, *model.Ticket, model.BootStage, netip.Addr) error
	queue chan seenStage
	log   *slog.Logger
}

// seenStage is one stage that was seen.
type seenStage struct {
	ticket *model.Ticket
	stage  model.BootStage
	client netip.Addr
}

// see queues a stage. When the store is far behind it is left out: firmware asks
// again, and nothing but the timeline depends on it.
func (n *stageNotes) see(t *model.Ticket, stage model.BootStage, client netip.Addr) {
	select {
	case n.queue <- seenStage{t, stage, client}:
	default:
		n.log.Debug("boot stage not recorded, the store is behind", "server", string(t.Server), "stage", string(stage))
	}
}

// run records what was seen until ctx ends.
func (n *stageNotes) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-n.queue:
			err := n.note(ctx, s.ticket, s.stage, s.client)
			if err != nil && ctx.Err() == nil && !errors.Is(err, registry.ErrTicketSpent) {
				n.log.Warn("boot stage not recorded", "server", string(s.ticket.Server), "stage", string(s.stage), "err", err)
			}
		}
	}
}
