package config

import (
	"net/netip"
	"slices"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// ListenSetting is a key that says where to listen, and its value: host:port, or empty for
// off.
type ListenSetting struct{ Key, Address string }

// Listeners returns where the boot service, the probe endpoint, the metadata service, the
// admin listener and the one for pushes listen, in this order, those that are off included.
func (o *Options) Listeners() []ListenSetting {
	return []ListenSetting{
		{Key: "boot.listen", Address: o.Boot.Listen},
		{Key: "registry.listen", Address: o.Registry.Listen},
		{Key: "metadata.listen", Address: o.Metadata.Listen},
		{Key: "admin.listen", Address: o.Admin.Listen},
		{Key: "webhook.listen", Address: o.Webhook.Listen},
	}
}

// MayBeBMC reports whether an address is in one of the networks of BMCs. A network of all
// addresses says nothing about where BMCs are.
func (o *Options) MayBeBMC(addr netip.Addr) bool {
	network, named := o.BMC.Networks.Of(addr)
	return named && network.Prefix.Bits() > 0 || slices.ContainsFunc(o.DHCP, func(n dhcp.Network) bool {
		return n.Role == model.RoleBMC && slices.ContainsFunc(n.Subnets, func(s dhcp.Subnet) bool { return s.CIDR.Contains(addr) })
	})
}

// CrossChecker returns the check of objects in Git against one another.
func (o *Options) CrossChecker() model.CrossChecker {
	checker := model.CrossChecker{SecretsElsewhere: o.SecretFiles != ""}
	for _, n := range o.DHCP {
		for _, s := range n.Subnets {
			checker.Subnets = append(checker.Subnets, s.CIDR)
		}
	}
	return checker
}

// ServesLoaders reports whether machines may ask for boot loaders.
func (o *Options) ServesLoaders() bool {
	return slices.ContainsFunc(o.DHCP, dhcp.Network.Boots) || o.TFTP.Listen != ""
}

// LeaseNetworks returns the names of the networks on which Ingot gives out addresses.
func (o *Options) LeaseNetworks() []string {
	names := []string{}
	for _, n := range o.DHCP {
		if n.Leases() {
			names = append(names, n.Name)
		}
	}
	return names
}

// LeasesToServers reports whether Ingot gives servers their addresses.
func (o *Options) LeasesToServers() bool {
	return slices.ContainsFunc(o.DHCP, func(n dhcp.Network) bool { return n.Leases() && n.Boots() })
}

// AddressRule returns the rule of boot.bindTickets. Validate has refused any other value.
func (o *Options) AddressRule() netboot.AddressRule {
	rule, _ := netboot.ParseAddressRule(o.Boot.BindTickets)
	return rule
}

// AddressRuleAt returns the rule of the network that a client is on, "" if that has none of
// its own.
func (o *Options) AddressRuleAt(client netip.Addr) netboot.AddressRule {
	for _, n := range o.DHCP {
		if n.BindTickets != "" && isOn(client, n) {
			rule, _ := netboot.ParseAddressRule(n.BindTickets)
			return rule
		}
	}
	return ""
}

// isOn reports whether an address is on a network. A link-local address names the interface
// that it is on.
func isOn(client netip.Addr, n dhcp.Network) bool {
	if zone := client.Zone(); zone != "" {
		return zone == n.Interface
	}
	return slices.ContainsFunc(n.Subnets, func(s dhcp.Subnet) bool { return s.CIDR.Contains(client.Unmap()) })
}
