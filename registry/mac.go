package registry

import (
	"slices"

	"ingot/model"
	"ingot/registry/store"
)

// macIndex says which servers have a MAC address.
type macIndex map[model.MAC][]macHolder

// macHolder is a server that is said to have a MAC address.
type macHolder struct {
	server model.ServerName
	by     model.MACSource
}

// knownMAC is a MAC address that a server is said to have.
type knownMAC struct {
	mac  model.MAC
	text string // canonical
	by   model.MACSource
}

func (x macIndex) add(server model.ServerName, macs []knownMAC) {
	for _, m := range macs {
		x[m.mac] = append(x[m.mac], macHolder{server, m.by})
	}
}

func (x macIndex) remove(server model.ServerName, macs []knownMAC) {
	for _, m := range macs {
		left := slices.DeleteFunc(x[m.mac], func(h macHolder) bool { return h.server == server })
		if len(left) == 0 {
			delete(x, m.mac)
			continue
		}
		x[m.mac] = left
	}
}

// unprovenSighting is the source of a MAC address that asked under a server's UUID while it
// is being discovered: nobody loses his own by it.
const unprovenSighting model.MACSource = "unproven sighting"

// weight is how much a source counts against another one: Git decides where several
// systems show a MAC address.
func weight(by model.MACSource) int {
	switch by {
	case model.MACByGit:
		return 3
	case model.MACByBMC:
		return 2
	case model.MACBySighting:
		return 1
	}
	return 0
}

// only returns the one server that has a MAC address. Where several are said to have it
// by the same kind of source nobody knows which is meant.
func (x macIndex) only(mac model.MAC) (model.ServerName, bool) {
	var found model.ServerName
	best, alone := -1, false
	for _, h := range x[mac] {
		switch w := weight(h.by); {
		case w > best:
			found, best, alone = h.server, w, true
		case w == best:
			alone = alone && h.server == found
		}
	}
	return found, alone
}

// listMACs brings the index up to date with a server's record and progress.
func (m *memory) listMACs(server model.ServerName) {
	old, now := m.macs[server], m.serverMACs(server)
	if slices.Equal(old, now) {
		return
	}
	m.byMAC.remove(server, old)
	m.byMAC.add(server, now)
	if len(now) == 0 {
		delete(m.macs, server)
		return
	}
	m.macs[server] = now
}

// serverMACs are the MAC addresses that a server is said to have: those of its record, or,
// of a server that none is known of, the sightings that its discovery may prove right.
func (m *memory) serverMACs(server model.ServerName) []knownMAC {
	rec := m.state.Servers[server]
	if rec == nil {
		return nil
	}
	var macs []knownMAC
	add := func(text string, by model.MACSource) {
		if mac, ok := model.ParseMAC(text); ok && mac.IsStation() {
			macs = append(macs, knownMAC{mac, mac.String(), by})
		}
	}
	for _, mac := range rec.MACs {
		add(mac.Address, mac.IdentifiedBy)
	}
	if len(rec.MACs) == 0 {
		for _, s := range sightings(rec, m.state.Progress[server]) {
			add(s.MAC, unprovenSighting)
		}
	}
	return macs
}

// sightings are those that were made since the server was powered on to be discovered.
func sightings(rec *model.ServerRecord, p *model.Progress) []model.Sighting {
	t, from := rec.Boot.Ticket, rec.SoughtFrom()
	if p == nil || !t.Open() || p.Ticket != t.ID || from.IsZero() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Sightings), func(s model.Sighting) bool { return s.Last.Before(from) })
}

// lists is a column whose values bear on the MAC addresses of the server of that name, and on how it
// is found.
func lists(c column) column {
	put := c.put
	c.put = func(m *memory, b store.Bucket, name string, v any) {
		put(m, b, name, v)
		m.hold(model.ServerName(name))
		m.listMACs(model.ServerName(name))
	}
	return c
}
