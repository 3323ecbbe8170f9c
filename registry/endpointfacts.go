package registry

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"ingot/model"
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
func (d *draft) observeLeases(leases []model.Lease, now time.Time) (batch, error) {
	if d.tenancy == nil {
		d.tenancy = newTenancy(d.memory)
	}
	changed := make(map[string]bool)
	for i := range leases {
		if tells(&leases[i], now) {
			d.tenancy.observe(&leases[i], now, changed)
		}
	}
	var e encoder
	for _, mac := range slices.Sorted(maps.Keys(changed)) {
		if f := d.tenancy.facts[mac]; f != nil {
			e.set(bucketEndpointFacts, mac, f)
		} else {
			e.drop(mac, bucketEndpointFacts)
		}
	}
	return e.batch, e.err
}

// tells reports whether a lease says that a device has an address now. One that
// was given back or has ended does not: the device may be there still.
func tells(l *model.Lease, now time.Time) bool {
	return l.MAC != "" && l.Bits == 0 && !l.Declined && l.Expires.After(now)
}

// observe takes in that a device has an address. Whatever network it is on, no
// other has the address any more: nobody may send it the password of another's BMC.
func (t *tenancy) observe(l *model.Lease, now time.Time, changed map[string]bool) {
	ip := l.Address.String()
	if former := t.holderOf(ip); former != "" && former != l.MAC {
		old := t.fact(former)
		if isOlder(l, old, now) {
			return
		}
		cleared := *old
		cleared.IP = ""
		t.set(former, &cleared)
		changed[former] = true
	}
	if l.Role != model.RoleBMC {
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
	next := &model.EndpointFacts{MACAddress: l.MAC, IP: l.Address.String(), Network: l.Network, Since: l.Since.UTC()}
	switch {
	case old == nil:
		return next, true
	case old.IP == next.IP && old.Network == next.Network, isOlder(l, old, now), isIPv4(old.IP) && !l.Address.Is4():
		return old, false
	case old.IP == next.IP: // its network got another name
		next.Since = old.Since
	case next.Since.Before(old.Since): // it came back to an address that was still its own
		next.Since = lastSeen(l).UTC()
	}
	return next, true
}

// isOlder reports whether a lease is from before what is known, as when all of
// them are saved again. What is from the future was written by a wrong clock, and
// holds nothing up.
func isOlder(l *model.Lease, known *model.EndpointFacts, now time.Time) bool {
	return lastSeen(l).Before(known.Since) && !known.Since.After(now)
}

// lastSeen is when a lease was last asked for.
func lastSeen(l *model.Lease) time.Time {
	if l.Renewed.After(l.Since) {
		return l.Renewed
	}
	return l.Since
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
	f, _ := t.memory.meaning(key{bucketEndpointFacts, mac}).(*model.EndpointFacts)
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
func putEndpointFacts(m *memory, b bucket, mac string, v any) {
	if old := m.state.EndpointFacts[mac]; old != nil {
		delete(m.roaming, mac)
		if m.byIP[old.IP] == mac {
			delete(m.byIP, old.IP)
		}
	}
	endpointFacts.put(m, b, mac, v)
	now, ok := v.(*model.EndpointFacts)
	switch {
	case !ok:
	case now.IP == "":
		m.roaming[mac] = struct{}{}
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
	return slices.Collect(maps.Keys(m.roaming))
}

func (m *memory) endpointCount() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.state.EndpointFacts)
}
