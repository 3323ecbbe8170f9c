package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// sayBindings says at the start which settings are called otherwise now, or leave out what
// tells machines apart.
func (d *daemon) sayBindings() {
	names := []string{d.opts.Boot.BindTickets}
	for _, n := range d.opts.DHCP {
		names = append(names, n.BindTickets)
		if n.Listen != "" && len(n.Relays) == 0 && n.Leases() && n.Boots() {
			d.log.Warn("anybody who reaches it can pose as a relay of this network, and as any server behind one: name the relays' addresses in relays", "network", n.Name)
		}
	}
	if slices.ContainsFunc(names, netboot.IsFormer) {
		d.log.Warn("bindTickets: leases means machine now: who cannot be told apart is refused; write machine, or first-client where that is wished")
	}
}

// sayUntold says once, when Git was read, which servers are refused their boot unless they
// share a link with this machine. Where a network of ours boots, nothing is said: which
// servers are behind a router that relays nothing to it is known only once they ask, and
// their condition BootRefused says it then.
func (d *daemon) sayUntold(ctx context.Context) error {
	if d.opts.AddressRule() != netboot.BindMachine || slices.ContainsFunc(d.opts.DHCP, dhcp.Network.Boots) {
		return nil
	}
	for d.source.Desired() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
	if names := untold(d.source.Desired(), d.registry.Observed(), d.registry.MACs); len(names) > 0 {
		const most = 20
		d.log.Warn("servers that boot over a router are refused, for nothing tells them apart: write an Endpoint with ip and macAddress for each, or relay their DHCP to Ingot as well (dhcp with mode proxy), or set boot.bindTickets",
			"reason", "CannotTell", "servers", strings.Join(names[:min(len(names), most)], ", "), "all", len(names))
	}
	return nil
}

// untold are the known servers of whose MAC addresses none is in an Endpoint in Git.
func untold(d *model.Desired, o *model.Observed, macs func(model.ServerName) []string) (names []string) {
	placed := make(map[string]bool)
	for _, e := range d.Endpoints {
		placed[e.Spec.MACAddress] = e.Spec.IP != ""
	}
	for name := range o.Servers {
		if !slices.ContainsFunc(macs(name), func(mac string) bool { return placed[mac] }) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}
