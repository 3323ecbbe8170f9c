package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
	"ingot/cmd/daemon/addresses"
)

// warnFiles warns at the start of files that cannot be read and that Ingot starts without.
func (d *daemon) warnFiles() {
	for _, f := range d.opts.Files() {
		if err := f.Unreadable(); err != nil {
			d.log.Warn("a file that the configuration names cannot be read", "key", f.Key, "file", f.Path, "err", err, "without", f.Without)
		}
	}
}

// warnAddressRules warns at the start of networks with DHCP relays that any host can pose as.
func (d *daemon) warnAddressRules() {
	for _, n := range d.opts.DHCP {
		if n.Listen != "" && len(n.Relays) == 0 && n.Leases() && n.Boots() {
			d.log.Warn("any host that reaches Ingot can pose as a relay of this network, and as any server behind one: "+
				"name the relays' addresses in relays", "network", n.Name)
		}
	}
}

// warnIndistinct warns once, when Git was read, of the servers whose boot is refused unless
// they share a link with this machine. Where one of the networks boots servers it does not:
// which of them are behind a router that relays nothing is known only once they ask, and
// then their condition BootRefused says so.
func (d *daemon) warnIndistinct(ctx context.Context) error {
	if d.opts.AddressRule() != netboot.BindMachine || slices.ContainsFunc(d.opts.DHCP, dhcp.Network.Boots) {
		return nil
	}
	for d.desired() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
	if names := addresses.ServersWithout(d.desired(), d.registry.Observed(), d.registry.Boots.MACs); len(names) > 0 {
		const maxNames = 20
		d.log.Warn("servers that boot over a router are refused, because they cannot be identified: write an Endpoint with ip and "+
			"macAddress for each, or relay their DHCP to Ingot as well (dhcp with mode proxy), or set boot.bindTickets",
			"reason", "CannotTell", "servers", strings.Join(names[:min(len(names), maxNames)], ", "), "all", len(names))
	}
	return nil
}
