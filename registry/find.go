package registry

import (
	"slices"

	"ingot/model"
)

// serverIndex finds servers by their identifiers.
type serverIndex struct {
	byUUID map[model.UUID][]model.ServerName // in both byte orders of SMBIOS
	byMAC  map[model.MAC][]macHolder
}

// macHolder is a server that a source reports as the holder of a MAC address.
type macHolder struct {
	server model.ServerName
	source model.MACSource
}

func newServerIndex() serverIndex {
	return serverIndex{make(map[model.UUID][]model.ServerName), make(map[model.MAC][]macHolder)}
}

// add adds a server, whose record may be nil.
func (x *serverIndex) add(name model.ServerName, rec *model.ServerRecord, p *model.Progress) {
	if rec == nil {
		return
	}
	for _, id := range systemUUIDs(rec) {
		x.byUUID[id] = append(x.byUUID[id], name)
	}
	for _, m := range serverMACs(rec, p) {
		x.byMAC[m.mac] = append(x.byMAC[m.mac], macHolder{name, m.source})
	}
}

// remove removes a server with the values that add got.
func (x *serverIndex) remove(name model.ServerName, rec *model.ServerRecord, p *model.Progress) {
	if rec == nil {
		return
	}
	for _, id := range systemUUIDs(rec) {
		removeFrom(x.byUUID, id, func(other model.ServerName) bool { return other == name })
	}
	for _, m := range serverMACs(rec, p) {
		removeFrom(x.byMAC, m.mac, func(h macHolder) bool { return h.server == name })
	}
}

func removeFrom[K comparable, V any](index map[K][]V, k K, isGone func(V) bool) {
	if index[k] = slices.DeleteFunc(index[k], isGone); len(index[k]) == 0 {
		delete(index, k)
	}
}

// named returns the servers with a MAC address or a system UUID, in either byte order. The sources of
// a MAC address have different weights, and only servers of the highest weight are returned.
func (x *serverIndex) named(id string) []model.ServerName {
	if mac, ok := model.ParseMAC(id); ok {
		return x.withMAC(mac)
	}
	uuid, ok := model.ParseUUID(id)
	if !ok {
		return nil
	}
	return x.byUUID[uuid]
}

func (x *serverIndex) withMAC(mac model.MAC) (servers []model.ServerName) {
	best := -1
	for _, h := range x.byMAC[mac] {
		switch w := weight(h.source); {
		case w > best:
			servers, best = []model.ServerName{h.server}, w
		case w == best && !slices.Contains(servers, h.server):
			servers = append(servers, h.server)
		}
	}
	return servers
}

// systemUUIDs are the usable UUID of a server in both byte orders.
func systemUUIDs(rec *model.ServerRecord) []model.UUID {
	u, ok := model.ParseUUID(rec.UUID)
	if !ok || !u.IsUsable() {
		return nil
	}
	return u.Variants()
}

// unprovenSighting is the source of a MAC address that asked under a server's UUID during its
// discovery. It takes the MAC address from no other server.
const unprovenSighting model.MACSource = "unproven sighting"

// weight orders the sources of MAC addresses: the manifest decides between several systems with one
// MAC address.
func weight(source model.MACSource) int {
	switch source {
	case model.MACByGit:
		return 3
	case model.MACByBMC:
		return 2
	case model.MACBySighting:
		return 1
	}
	return 0
}

// knownMAC is a MAC address of a server.
type knownMAC struct {
	mac    model.MAC
	source model.MACSource
}

// serverMACs are the MAC addresses of a server's record or, if it has none, of the sightings that its
// discovery may confirm.
func serverMACs(rec *model.ServerRecord, p *model.Progress) (macs []knownMAC) {
	add := func(text string, source model.MACSource) {
		if mac, ok := model.ParseMAC(text); ok && mac.IsStation() {
			macs = append(macs, knownMAC{mac, source})
		}
	}
	for _, mac := range rec.MACs {
		add(mac.Address, mac.IdentifiedBy)
	}
	if len(rec.MACs) == 0 {
		for _, s := range sightings(rec, p) {
			add(s.MAC, unprovenSighting)
		}
	}
	return macs
}

// sightings are those since the server was powered on for its discovery.
func sightings(rec *model.ServerRecord, p *model.Progress) []model.Sighting {
	t, from := rec.Boot.Ticket, rec.SoughtFrom()
	if p == nil || !t.Open() || p.Ticket != t.ID || from.IsZero() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Sightings), func(s model.Sighting) bool { return s.Last.Before(from) })
}

// holders returns the servers with an identifier, each with its newest ticket and the progress with it.
func (m *memory) holders(id string) []model.TicketHolder {
	m.mu.RLock()
	defer m.mu.RUnlock()
	names := m.servers.named(id)
	holders := make([]model.TicketHolder, len(names))
	for i, name := range names {
		h := model.TicketHolder{Server: name, Ticket: m.state.Servers[name].Boot.Ticket}
		if p := m.state.Progress[name]; p != nil && h.Ticket != nil && p.Ticket == h.Ticket.ID {
			h.Progress = p
		}
		holders[i] = h
	}
	return holders
}

// macsOf returns the MAC addresses that belong to one server only.
func (m *memory) macsOf(server model.ServerName) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	rec := m.state.Servers[server]
	if rec == nil {
		return nil
	}
	var macs []string
	for _, known := range serverMACs(rec, m.state.Progress[server]) {
		if slices.Equal(m.servers.withMAC(known.mac), []model.ServerName{server}) {
			macs = append(macs, known.mac.String())
		}
	}
	return macs
}

// pinned returns a usable ticket whose image has a blob.
func (m *memory) pinned(repository, digest string) *model.Ticket {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, rec := range m.state.Servers {
		if t := rec.Boot.Ticket; usable(t) && t.Image.Repository == repository && hasBlob(&t.Image, digest) {
			return t
		}
	}
	return nil
}

// hasBlob reports whether digest is that of the manifest or of a layer of an image.
func hasBlob(img *model.PinnedImage, digest string) bool {
	isBlob := func(l *model.Layer) bool { return l != nil && l.Digest == digest }
	return img.Digest == digest || slices.ContainsFunc([]*model.Layer{img.Kernel, img.Initrd, img.Squashfs, img.UKI}, isBlob)
}

// usable reports whether a server may still boot with t.
func usable(t *model.Ticket) bool {
	return t.Open() || t != nil && t.Always && t.Ended == model.TicketBooted
}
