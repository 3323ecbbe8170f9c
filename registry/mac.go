package registry

import (
	"bytes"
	"slices"

	"ingot/model"
)

// macIndex says which servers have a MAC address. A server is named once for each
// source that says so, so that what one source no longer says can be taken out.
type macIndex map[macAddress][]model.ServerName

func (x macIndex) add(server model.ServerName, macs []macAddress) {
	for _, mac := range macs {
		x[mac] = append(x[mac], server)
	}
}

func (x macIndex) remove(server model.ServerName, macs []macAddress) {
	for _, mac := range macs {
		servers := x[mac]
		if i := slices.Index(servers, server); i >= 0 {
			servers = slices.Delete(servers, i, i+1)
		}
		if len(servers) == 0 {
			delete(x, mac)
			continue
		}
		x[mac] = servers
	}
}

// only returns the one server that has a MAC address. Where several have it nobody
// knows which is meant.
func (x macIndex) only(mac macAddress) (model.ServerName, bool) {
	servers := x[mac]
	if len(servers) == 0 || slices.ContainsFunc(servers, func(s model.ServerName) bool { return s != servers[0] }) {
		return "", false
	}
	return servers[0], true
}

// indexed is a column whose values name the MAC addresses of a server.
func indexed[V any](c column, macsOf func(*V) []macAddress) column {
	put := c.put
	c.put = func(m *memory, b bucket, name string, v any) {
		server := model.ServerName(name)
		if old, ok := c.get(&m.state, name).(*V); ok {
			m.byMAC.remove(server, macsOf(old))
		}
		put(m, b, name, v)
		if now, ok := v.(*V); ok {
			m.byMAC.add(server, macsOf(now))
		}
		m.listMACs(server)
	}
	return c
}

// listMACs keeps the other direction of the index.
func (m *memory) listMACs(server model.ServerName) {
	var all macSet
	if facts := m.state.ServerFacts[server]; facts != nil {
		all = append(all, inventoryMACs(facts)...)
	}
	if probe := m.state.Probes[server]; probe != nil {
		all = append(all, probeMACs(probe)...)
	}
	if len(all) == 0 {
		delete(m.macs, server)
		return
	}
	macs := all.distinct()
	names := make([]string, len(macs))
	for i, mac := range macs {
		names[i] = mac.String()
	}
	m.macs[server] = names
}

// inventoryMACs are the MAC addresses that a server's BMC knows.
func inventoryMACs(f *model.ServerFacts) []macAddress {
	if f.Inventory == nil {
		return nil
	}
	var macs macSet
	for _, nic := range f.Inventory.NetworkInterfaces {
		macs.add(nic.MACAddress)
	}
	return macs.distinct()
}

// probeMACs are the MAC addresses that the probe on a server found: those of its
// cards' ports, and of its interfaces where a probe knows no cards.
func probeMACs(p *model.ProbeReport) []macAddress {
	var macs macSet
	for _, nic := range p.Data.NICs {
		macs.add(nic.MAC)
	}
	for _, i := range p.Data.NetworkInterfaces {
		macs.add(i.MACAddress)
	}
	return macs.distinct()
}

// macSet collects MAC addresses that can be one machine's.
type macSet []macAddress

func (s *macSet) add(text string) {
	if mac, ok := parseMAC(text); ok && mac.isStation() {
		*s = append(*s, mac)
	}
}

func (s macSet) distinct() []macAddress {
	slices.SortFunc(s, func(a, b macAddress) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(s)
}
