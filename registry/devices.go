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

// maxEndpointFacts bounds the devices on bmc networks, so that a device with changing MAC addresses cannot
// fill memory.
const maxEndpointFacts = 1 << 16

// tenancy has the addresses of devices after the edits before, as the difference from memory.
type tenancy struct {
	memory  *memory
	facts   map[string]*model.EndpointFacts // by MAC address; nil = deleted
	holder  map[string]string               // MAC address by IP address, "" = unused
	count   int                             // of all facts
	changed map[string]bool                 // MAC addresses that the present edit changed
}

func newTenancy(m *memory) *tenancy {
	return &tenancy{memory: m, facts: make(map[string]*model.EndpointFacts), holder: make(map[string]string), count: m.endpointCount()}
}

// observeLeases returns the changes of the endpoint facts that follow from leases. Almost all leases are
// renewals, which change nothing.
func (d *draft) observeLeases(leases []model.Lease, now time.Time) (store.Batch, error) {
	var valid []*model.Lease
	isFirst := d.tenancy == nil // otherwise an edit before may have changed what memory has
	for i := range leases {
		l := &leases[i]
		if isLeased(l, now) && !(isFirst && len(valid) == 0 && d.memory.matches(l)) {
			valid = append(valid, l)
		}
	}
	if len(valid) == 0 {
		return nil, nil
	}
	if d.tenancy == nil {
		d.tenancy = newTenancy(d.memory)
	}
	t := d.tenancy
	t.changed = make(map[string]bool)
	for _, l := range valid {
		t.observe(l, now)
	}
	var e encoder
	for _, mac := range slices.Sorted(maps.Keys(t.changed)) {
		if f := t.facts[mac]; f != nil {
			e.set(store.BucketEndpointFacts, mac, f)
		} else {
			e.drop(mac, store.BucketEndpointFacts)
		}
	}
	return e.batch, e.err
}

// isLeased reports whether a device has the address of a lease now. After the end of the lease the device
// may still use it, so that changes nothing.
func isLeased(l *model.Lease, now time.Time) bool {
	return (l.MAC != "" || l.ClientID != "") && l.Bits == 0 && !l.Declined && l.Expires.After(now)
}

// isEndpoint reports whether a valid lease makes an Endpoint: it is the first one of a BMC with a MAC address.
func isEndpoint(l *model.Lease) bool { return l.Role == model.RoleBMC && l.MAC != "" && l.Nth == 0 }

// matches reports whether the endpoint facts in memory agree with a valid lease. It does not allocate.
func (m *memory) matches(l *model.Lease) bool {
	var space [64]byte
	ip := l.Address.AppendTo(space[:0])
	m.mu.RLock()
	defer m.mu.RUnlock()
	holder := m.byIP[string(ip)]
	if !isEndpoint(l) {
		return holder == "" || holder == l.MAC
	}
	f := m.state.EndpointFacts[l.MAC]
	return holder == l.MAC && f != nil && f.IP == string(ip) && f.Network == l.Network && f.Reserved == l.Reserved
}

// observe applies a valid lease. The address is then unused by all other devices on any network, so that no
// device receives the password of another BMC.
func (t *tenancy) observe(l *model.Lease, now time.Time) {
	ip := l.Address.String()
	if previous := t.holderOf(ip); previous != "" && previous != l.MAC {
		old := t.fact(previous)
		if isOlder(l, old, now) {
			return
		}
		cleared := *old
		cleared.IP = ""
		t.set(previous, &cleared)
	}
	if !isEndpoint(l) {
		return
	}
	old := t.fact(l.MAC)
	if next, isNew := nextFacts(old, l, now); isNew && (old != nil || t.makeRoom()) {
		t.set(l.MAC, next)
	}
}

// nextFacts returns the facts of a device after a lease, and whether they differ from the old ones.
func nextFacts(old *model.EndpointFacts, l *model.Lease, now time.Time) (*model.EndpointFacts, bool) {
	next := &model.EndpointFacts{MACAddress: l.MAC, IP: l.Address.String(), Network: l.Network, Since: l.Since.UTC(), Reserved: l.Reserved}
	switch {
	case old == nil:
		return next, true
	case old.IP == next.IP && old.Network == next.Network && old.Reserved == next.Reserved, isOlder(l, old, now), isIPv4(old.IP) && !l.Address.Is4():
		return old, false
	case old.IP != "" && old.IP != next.IP && old.Network != next.Network && !l.Arrived && l.Renewed.After(l.Since):
		return old, false // it is on both networks, and only renews its lease there
	case old.IP == next.IP: // only the name of its network, or the reservation, has changed
		next.Since = old.Since
	case next.Since.Before(old.Since): // it returned to an address that it still had
		next.Since = lease.LastSeen(l).UTC()
	}
	return next, true
}

// isOlder reports whether a lease is older than the facts, as when all leases are saved again. Facts from
// the future were written by a wrong clock, and are replaced.
func isOlder(l *model.Lease, known *model.EndpointFacts, now time.Time) bool {
	return lease.LastSeen(l).Before(known.Since) && !known.Since.After(now)
}

func isIPv4(ip string) bool {
	a, err := netip.ParseAddr(ip)
	return err == nil && a.Is4()
}

// makeRoom reports whether there is room for another device. If not, it first deletes the devices whose
// address another device has.
func (t *tenancy) makeRoom() bool {
	if t.count < maxEndpointFacts {
		return true
	}
	for _, mac := range slices.AppendSeq(t.memory.withoutAddress(), maps.Keys(t.facts)) {
		if f := t.fact(mac); f != nil && f.IP == "" {
			t.set(mac, nil)
		}
	}
	return t.count < maxEndpointFacts
}

func (t *tenancy) fact(mac string) *model.EndpointFacts {
	if f, edited := t.facts[mac]; edited {
		return f
	}
	return t.memory.endpoint(mac)
}

func (t *tenancy) holderOf(ip string) string {
	if mac, edited := t.holder[ip]; edited {
		return mac
	}
	return t.memory.holder(ip)
}

// set replaces the facts of a device; nil deletes them.
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
	t.facts[mac], t.changed[mac] = f, true
}

// endpoint returns the facts of a device, nil if it is unknown.
func (m *memory) endpoint(mac string) *model.EndpointFacts {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.EndpointFacts[mac]
}

// holder returns the MAC address of the device with an IP address, or "".
func (m *memory) holder(ip string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byIP[ip]
}

// withoutAddress returns the MAC addresses of devices whose address another device has.
func (m *memory) withoutAddress() (macs []string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for mac, f := range m.state.EndpointFacts {
		if f.IP == "" {
			macs = append(macs, mac)
		}
	}
	return macs
}

func (m *memory) endpointCount() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.state.EndpointFacts)
}
