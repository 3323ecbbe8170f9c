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
	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/tftp"
	"ingot/model"
)

// makeNetworks makes DHCP and TFTP and binds their sockets, nil for what is off.
func (d *daemon) makeNetworks(ctx context.Context) (err error) {
	o := &d.opts
	d.stages = &stageNotes{registry: d.registry, queue: make(chan seenStage, 1024), log: d.log}
	if len(o.DHCP) > 0 {
		d.dhcp, err = dhcp.New(dhcp.Options{
			Networks: o.DHCP, Store: d.registry, Identity: d.identity, Tickets: d.registry, Loaders: d.loaders,
			Site: d.site, Note: d.stages.sawDHCP, InVain: d.sawInVain, Keep: d.reserved, PoolsChanged: d.loop.Wake, Heard: d.heard,
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

// tenants are the bound servers as the metadata service asks for them.
func (d *daemon) tenants() *tenants {
	return &tenants{
		desired: d.source.Desired, observed: d.registry.Observed, holder: d.bindings().At,
		believes: d.opts.AddressRule() != netboot.BindMachine && !d.opts.LeasesToServers(),
	}
}

// sawTFTP notes that a client was sent a boot loader.
func (d *daemon) sawTFTP(client netip.Addr, _ string) {
	if offer, ok := d.bindings().At(client); ok && offer.Ticket.MayBoot(offer.Progress) {
		d.stages.see(seenStage{ticket: offer.Ticket, stage: model.StageTFTP, client: client})
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
func reservations(d *model.Desired) []lease.Reservation {
	var all []lease.Reservation
	for name, e := range d.Endpoints {
		if ip, err := netip.ParseAddr(e.Spec.IP); err == nil {
			all = append(all, lease.Reservation{MAC: e.Spec.MACAddress, Name: name, Address: ip})
		}
	}
	return all
}

// stageNotes records the boot stages that packet handlers see, without making
// them wait for the store.
type stageNotes struct {
	registry interface {
		Note(context.Context, *model.Ticket, model.BootStage, netip.Addr) error
		NoteFirmware(context.Context, *model.Ticket, model.BootFirmware) error
		NoteSighting(ctx context.Context, t *model.Ticket, mac string) error
	}
	queue chan seenStage
	log   *slog.Logger
}

// seenStage is one stage that was seen, and the firmware and the network card if those
// were, too; or a mark that all before it was recorded.
type seenStage struct {
	mark     chan struct{} // closed when its turn comes; nil = it is a stage
	mac      string        // "" = not seen
	ticket   *model.Ticket
	stage    model.BootStage
	client   netip.Addr
	firmware *model.BootFirmware
}

// sawDHCP notes that a server was told its boot file.
func (n *stageNotes) sawDHCP(told netboot.Answer, client netip.Addr) {
	seen := seenStage{ticket: told.Ticket, stage: model.StageDHCP, client: client, mac: told.MAC}
	if f, ok := told.Arch.Firmware(); ok {
		seen.firmware = &f
	}
	n.see(seen)
}

// sawInVain notes that a server's firmware asked DHCP what to boot and was told nothing.
func (d *daemon) sawInVain(t *model.Ticket, mac string) {
	d.registry.Use(t, model.ThingBootFile, model.Asker{MAC: mac, Own: true}, model.RefusedReplay)
}

// see queues a stage. When the store is far behind it is left out: firmware asks
// again, and nothing but the timeline depends on it.
func (n *stageNotes) see(s seenStage) {
	select {
	case n.queue <- s:
	default:
		n.log.Debug("boot stage not recorded, the store is behind", "server", string(s.ticket.Server), "stage", string(s.stage))
	}
}

// settleLimit is how long a machine waits at most for what was seen of it.
const settleLimit = 2 * time.Second

// settle waits until what was seen before is recorded, unless the store is far behind.
func (n *stageNotes) settle(ctx context.Context) {
	mark := make(chan struct{})
	select {
	case n.queue <- seenStage{mark: mark}:
	default:
		return
	}
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	select {
	case <-mark:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// run records what was seen until ctx ends.
func (n *stageNotes) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-n.queue:
			if s.mark != nil {
				close(s.mark)
				continue
			}
			err := n.record(ctx, s)
			if err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrTicketSpent) {
				n.log.Warn("boot stage not recorded", "server", string(s.ticket.Server), "stage", string(s.stage), "err", err)
			}
		}
	}
}

func (n *stageNotes) record(ctx context.Context, s seenStage) error {
	if s.mac != "" { // first, for the machine is about to ask for more
		if err := n.registry.NoteSighting(ctx, s.ticket, s.mac); err != nil {
			return err
		}
	}
	err := n.registry.Note(ctx, s.ticket, s.stage, s.client)
	if err == nil && s.firmware != nil {
		err = n.registry.NoteFirmware(ctx, s.ticket, *s.firmware)
	}
	return err
}
