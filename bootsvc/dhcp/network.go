package dhcp

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

type network struct {
	Network // with its mode filled in, MAC prefixes in lower case
	leases  *lease.Network
	relays  []netip.Prefix      // that relays send from; nil = from anywhere
	told    []model.DHCPOptions // that clients are told, by subnet
	duid    []byte              // that DHCPv6 clients know us by; nil = it is made of the link
	server  *Server
	metrics networkMetrics

	sockets sockets
}

// newNetwork returns the network of a configuration that Check found right.
func newNetwork(s *Server, cfg Network) *network {
	n := &network{Network: cfg, server: s, metrics: networkMetrics{s.metrics, cfg.Name}}
	if n.Mode == "" {
		n.Mode = ModeServer
	}
	n.metrics.start()
	n.sockets = sockets{network: &n.Network, log: s.options.Log, isThere: s.options.IsThere, metrics: n.metrics}
	if len(s.options.Identity) > 0 {
		n.duid = duid6(n.Name, s.options.Identity)
	}
	n.MACAllow, n.MACDeny = lowerAll(cfg.MACAllow), lowerAll(cfg.MACDeny)
	for _, r := range cfg.Relays {
		p, _ := parseRelay(r) // Check has seen it
		n.relays = append(n.relays, p)
	}
	var subnets []lease.Subnet
	for _, s := range cfg.Subnets {
		told := cfg.Options.encoded()
		maps.Copy(told, s.Options.encoded())
		n.told = append(n.told, told)
		subnets = append(subnets, lease.Subnet{
			CIDR: s.CIDR, Ranges: s.Ranges, Exclude: s.Exclude, Gateway: s.Gateway,
			LeaseTime: s.LeaseTime, Delegate: s.Delegate,
		})
	}
	n.leases = lease.NewNetwork(cfg.Name, cfg.Role, subnets, func(v6 bool) []netip.Prefix { return n.sockets.link().of(v6) })
	return n
}

func lowerAll(all []string) []string {
	lower := make([]string, len(all))
	for i, s := range all {
		lower[i] = strings.ToLower(s)
	}
	return lower
}

func (n *network) config(s *lease.Subnet) *Subnet { return &n.Subnets[s.Index] }

// admits reports whether clients with a MAC address are served (macAllow, macDeny).
func (n *network) admits(mac string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(mac, prefix) }
	return (len(n.MACAllow) == 0 || slices.ContainsFunc(n.MACAllow, begins)) && !slices.ContainsFunc(n.MACDeny, begins)
}

// logNew says which device was given an address, or prefix, that it did not have, and by which
// relay, on which of its ports, it was heard.
func (n *network) logNew(l model.Lease) {
	if l.Declined || l.Expires.IsZero() || !l.Since.Equal(l.Renewed) {
		return
	}
	facts := append(make([]slog.Attr, 0, 8), slog.String("network", n.Name), slog.String("mac", l.MAC),
		slog.String("address", l.Address.String()), slog.Time("until", l.Expires))
	if l.Bits > 0 {
		facts = append(facts, slog.Int("bits", l.Bits))
	}
	if r := l.Relay; r.Address.IsValid() {
		facts = append(facts, slog.String("relay", r.Address.String()), slog.String("port", r.CircuitID))
		if r.RemoteID != "" {
			facts = append(facts, slog.String("remote", r.RemoteID))
		}
	}
	n.server.options.Log.LogAttrs(context.Background(), slog.LevelInfo, "new lease", facts...)
}

// isStoreAway reports whether a new lease could not be stored now. Then it must not be offered either: the client would
// request it without success, and miss the offers of others.
func (n *network) isStoreAway() bool {
	return !n.server.options.Storable() || n.server.committer.IsAway()
}

// trusts reports whether a relay may send from an address (relays).
func (n *network) trusts(from netip.Addr) bool {
	from = from.WithZone("") // prefixes have none
	return len(n.relays) == 0 || slices.ContainsFunc(n.relays, func(p netip.Prefix) bool { return p.Contains(from) })
}
