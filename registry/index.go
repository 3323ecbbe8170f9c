package registry

import (
	"slices"

	"ingot/model"
	"ingot/registry/store"
)

// blob names one layer or manifest of an image repository.
type blob struct{ repository, digest string }

var servers = mapped(func(o *model.Observed) *map[model.ServerName]*model.ServerRecord { return &o.Servers })

func putServer(m *memory, b store.Bucket, name string, v any) {
	if old := m.state.Servers[model.ServerName(name)]; old != nil {
		m.unindex(model.ServerName(name), old)
	}
	servers.put(m, b, name, v)
	if v != nil {
		m.index(model.ServerName(name), v.(*model.ServerRecord))
	}
}

func (m *memory) index(name model.ServerName, rec *model.ServerRecord) {
	holder := m.found[name]
	if holder == nil {
		holder = new(model.TicketHolder)
		m.found[name] = holder
	}
	alone := []*model.TicketHolder{holder} // under both, for nobody changes it
	for _, id := range systemUUIDs(rec.UUID) {
		if others := m.byUUID[id]; len(others) > 0 {
			m.byUUID[id] = append(slices.Clip(others), holder)
		} else {
			m.byUUID[id] = alone
		}
	}
	for _, b := range pinnedBlobs(rec.Boot.Ticket) {
		if m.byBlob[b] == nil {
			m.byBlob[b] = make(map[model.ServerName]*model.Ticket)
		}
		m.byBlob[b][name] = rec.Boot.Ticket
	}
}

func (m *memory) unindex(name model.ServerName, rec *model.ServerRecord) {
	holder := m.found[name]
	for _, id := range systemUUIDs(rec.UUID) {
		others := slices.DeleteFunc(slices.Clone(m.byUUID[id]), func(h *model.TicketHolder) bool { return h == holder })
		if m.byUUID[id] = others; len(others) == 0 {
			delete(m.byUUID, id)
		}
	}
	for _, b := range pinnedBlobs(rec.Boot.Ticket) {
		delete(m.byBlob[b], name)
		if len(m.byBlob[b]) == 0 {
			delete(m.byBlob, b)
		}
	}
}

// pinnedBlobs are the parts of the image that t lets its server fetch.
func pinnedBlobs(t *model.Ticket) []blob {
	if !usable(t) {
		return nil
	}
	blobs := []blob{{t.Image.Repository, t.Image.Digest}}
	for _, l := range []*model.Layer{t.Image.Kernel, t.Image.Initrd, t.Image.Squashfs, t.Image.UKI} {
		if l != nil {
			blobs = append(blobs, blob{t.Image.Repository, l.Digest})
		}
	}
	return blobs
}

// usable reports whether a server may still boot with t.
func usable(t *model.Ticket) bool {
	return t.Open() || (t != nil && t.Always && t.Ended == model.TicketBooted)
}

// hold brings what is found of a server up to date with its record and progress.
func (m *memory) hold(name model.ServerName) {
	rec := m.state.Servers[name]
	if rec == nil {
		delete(m.found, name)
		return
	}
	*m.found[name] = model.TicketHolder{Server: name, Ticket: rec.Boot.Ticket}
	if p := m.state.Progress[name]; p != nil && rec.Boot.Ticket != nil && p.Ticket == rec.Boot.Ticket.ID {
		m.found[name].Progress = p
	}
}

// server returns the one server with this UUID in either byte order of SMBIOS. No server
// is known when several have it, for nobody knows which is meant.
func (m *memory) server(uuid model.UUID) (holder model.TicketHolder, known bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := m.byUUID[uuid]
	if len(found) != 1 {
		return model.TicketHolder{}, false
	}
	return *found[0], true
}

// namesakes returns all servers with this UUID in either byte order.
func (m *memory) namesakes(uuid string) []model.TicketHolder {
	u, ok := model.ParseUUID(uuid)
	if !ok {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var offers []model.TicketHolder
	for _, holder := range m.byUUID[u] {
		offers = append(offers, *holder)
	}
	return offers
}

// named reports whether any server, be it one or several, has this UUID in either byte
// order, or this MAC address.
func (m *memory) named(id string) bool {
	if mac, ok := model.ParseMAC(id); ok {
		m.mu.RLock()
		defer m.mu.RUnlock()
		return len(m.byMAC[mac]) > 0
	}
	return len(m.namesakes(id)) > 0
}

// serverWith returns the one server with this MAC address.
func (m *memory) serverWith(mac model.MAC) (holder model.TicketHolder, known bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	name, known := m.byMAC.only(mac)
	if !known {
		return model.TicketHolder{}, false
	}
	return *m.found[name], true
}

// macsOf returns the MAC addresses that are one server's alone.
func (m *memory) macsOf(server model.ServerName) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	known := m.macs[server]
	macs := make([]string, 0, len(known))
	for _, h := range known {
		if only, ok := m.byMAC.only(h.mac); ok && only == server {
			macs = append(macs, h.text)
		}
	}
	return macs
}

// pinned returns a ticket that lets its server fetch b.
func (m *memory) pinned(b blob) *model.Ticket {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, t := range m.byBlob[b] {
		return t
	}
	return nil
}

// systemUUIDs are a usable UUID in both byte orders: servers are found under each of them.
func systemUUIDs(text string) []model.UUID {
	u, ok := model.ParseUUID(text)
	if !ok || !u.IsUsable() {
		return nil
	}
	return u.Variants()
}
