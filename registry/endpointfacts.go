package registry

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"ingot/model"
	"ingot/registry/lease"
	"ingot/registry/store"
)

// maxEndpointFacts is how many devices on bmc networks are known at most: a device
// that shows ever new MAC addresses must not fill memory.
const maxEndpointFacts = 1 << 16

// tenancy is which device has which address once the edits before were made: what
// differs from memory.
type tenancy struct {
	memory *memory
	facts  map[string]*model.EndpointFacts // by MAC address; nil = forgotten
	holder map[string]string               // MAC address by IP, "" = nobody
	count  int                             // of all facts, with those in memory
}

func newTenancy(m *memory) *tenancy {
	return &tenancy{
		memory: m, facts: make(map[string]*model.EndpointFacts), holder: make(map[string]string),
		count: m.endpointCount(),
	}
}

// observeLeases returns what leases change in the endpoint facts.
func (d *draft) observeLeases(leases []model.Lease, now time.Time) (store.Batch, error) {
	var telling []*model.Lease
	isFirst := d.tenancy == nil // or a lease before may have changed what memory knows
	for i := range leases {
		l := &leases[i]
		if isLeased(l, now) && !(isFirst && len(telling) == 0 && d.memory.knows(l)) {
			telling = append(telling, l)
		}
	}
	if len(telling) == 0 {
		return nil, nil
	}
	return d.observe(telling, now)
}

// observe returns what leases that show something change in the endpoint facts.
func (d *draft) observe(telling []*model.Lease, now time.Time) (store.Batch, error) {
	if d.tenancy == nil {
		d.tenancy = newTenancy(d.memory)
	}
	changed := make(map[string]bool)
	for _, l := range telling {
		d.tenancy.observe(l, now, changed)
	}
	var e encoder
	for _, mac := range slices.Sorted(maps.Keys(changed)) {
		if f := d.tenancy.facts[mac]; f != nil {
			e.set(store.BucketEndpointFacts, mac, f)
		} else {
			e.drop(mac, store.BucketEndpointFacts)
		}
	}
	return e.batch, e.err
}

// knows reports whether a lease that shows something says what memory has, as a
// renewal does. It is what almost all are, and takes no memory to find out.
func (m *memory) knows(l *model.Lease) bool {
	var space [64]byte
	ip := l.Address.AppendTo(space[:0])
	m.mu.RLock()
	defer m.mu.RUnlock()
	holder := m.byIP[string(ip)]
	if !names(l) {
		return holder == "" || holder == l.MAC
	}
	f := m.state.EndpointFacts[l.MAC]
	return holder == l.MAC && f != nil && f.IP == string(ip) && f.Network == l.Network && f.Reserved == l.Reserved
}

// isLeased reports whether a lease says that a device has an address now. One that
// was given back or has ended does not: the device may be there still.
func isLeased(l *model.Lease, now time.Time) bool {
	return (l.MAC != "" || l.ClientID != "") && l.Bits == 0 && !l.Declined && l.Expires.After(now)
}

// names reports whether a lease that shows something makes an Endpoint: that of a BMC by its MAC
// address, and not what it has besides.
func names(l *model.Lease) bool { return l.Role == model.RoleBMC && l.MAC != "" && l.Nth == 0 }

// observe takes in that a device has an address. Whatever network it is on, no
// other has the address any more: nobody may send it the password of another's BMC.
func (t *tenancy) observe(l *model.Lease, now time.Time, changed map[string]bool) {
	ip := l.Address.String()
	if previous := t.holderOf(ip); previous != "" && previous != l.MAC {
		old := t.fact(previous)
		if isOlder(l, old, now) {
			return
		}
		cleared := *old
		cleared.IP = ""
		t.set(previous, &cleared)
		changed[previous] = true
	}
	if !names(l) {
		return
	}
	old := t.fact(l.MAC)
	next, isNew := nextFacts(old, l, now)
	if !isNew || old == nil && !t.makeRoom(changed) {
		return
	}
	t.set(l.MAC, next)
	changed[l.MAC] = true
}

// nextFacts decides what a lease makes of what is known of its device.
func nextFacts(old *model.EndpointFacts, l *model.Lease, now time.Time) (*model.EndpointFacts, bool) {
	next := &model.EndpointFacts{MACAddress: l.MAC, IP: l.Address.String(), Network: l.Network, Since: l.Since.UTC(), Reserved: l.Reserved}
	switch {
	case old == nil:
		return next, true
	case old.IP == next.IP && old.Network == next.Network && old.Reserved == next.Reserved, isOlder(l, old, now), isIPv4(old.IP) && !l.Address.Is4():
		return old, false
	case old.IP == next.IP: // its network got another name, or another reservation is why it has it
		next.Since = old.Since
	case next.Since.Before(old.Since): // it came back to an address that was still its own
		next.Since = lease.LastSeen(l).UTC()
	}
	return next, true
}

// isOlder reports whether a lease is from before what is known, as when all of
// them are saved again. What is from the future was written by a wrong clock, and
// holds nothing up.
func isOlder(l *model.Lease, known *model.EndpointFacts, now time.Time) bool {
	return lease.LastSeen(l).Before(known.Since) && !known.Since.After(now)
}

func isIPv4(ip string) bool {
	a, err := netip.ParseAddr(ip)
	return err == nil && a.Is4()
}

// makeRoom reports whether there is room for one more device. When there is none,
// all whose address another device got are forgotten.
func (t *tenancy) makeRoom(changed map[string]bool) bool {
	if t.count < maxEndpointFacts {
		return true
	}
	for _, mac := range slices.AppendSeq(t.memory.homeless(), maps.Keys(t.facts)) {
		if f := t.fact(mac); f != nil && f.IP == "" {
			t.set(mac, nil)
			changed[mac] = true
		}
	}
	return t.count < maxEndpointFacts
}

func (t *tenancy) fact(mac string) *model.EndpointFacts {
	if f, edited := t.facts[mac]; edited {
		return f
	}
	f, _ := t.memory.meaning(store.Key{Bucket: store.BucketEndpointFacts, Name: mac}).(*model.EndpointFacts)
	return f
}

func (t *tenancy) holderOf(ip string) string {
	if mac, edited := t.holder[ip]; edited {
		return mac
	}
	return t.memory.holder(ip)
}

// set makes f what is known of a device, nil for nothing.
func (t *tenancy) set(mac string, f *model.EndpointFacts) {
	old := t.fact(mac)
	switch {
	case old == nil && f != nil:
		t.count++
	case old != nil && f == nil:
		t.count--
	}
	if old != nil && old.IP != "" && t.holderOf(old.IP) == mac {
		t.holder[old.IP] = ""
	}
	if f != nil && f.IP != "" {
		t.holder[f.IP] = mac
	}
	t.facts[mac] = f
}

// putEndpointFacts keeps the indexes of endpoint facts beside the column's map.
func putEndpointFacts(m *memory, b store.Bucket, mac string, v any) {
	if old := m.state.EndpointFacts[mac]; old != nil {
		delete(m.withoutIP, mac)
		if m.byIP[old.IP] == mac {
			delete(m.byIP, old.IP)
		}
	}
	endpointFacts.put(m, b, mac, v)
	now, ok := v.(*model.EndpointFacts)
	switch {
	case !ok:
	case now.IP == "":
		m.withoutIP[mac] = struct{}{}
	default:
		m.byIP[now.IP] = mac
	}
}

var endpointFacts = mapped(func(o *model.Observed) *map[string]*model.EndpointFacts { return &o.EndpointFacts })

// holder returns the MAC address of the device that has an address, or "".
func (m *memory) holder(ip string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byIP[ip]
}

// homeless returns the MAC addresses of devices whose address another one got.
func (m *memory) homeless() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Keys(m.withoutIP))
}

func (m *memory) endpointCount() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.state.EndpointFacts)
}
