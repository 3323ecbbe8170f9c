package lease

import (
	"container/heap"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// How long things are kept that a client may or may not come back for.
const (
	offerFor     = time.Minute      // an offer that was not taken yet
	shortOffer   = 10 * time.Second // the same when a pool is full of offers
	setAside     = 10 * time.Minute // an address that somebody else was found to use
	keptFor      = 10 * time.Minute // an ended lease of a Reserved server, before it is looked at again
	leastRest    = 60               // seconds of a lease that ends for a reservation: who asks later asks anew
	maxDeclines  = 3                // that one MAC address may make in setAside
	maxDecliners = 4096             // MAC addresses whose declines are counted
	maxRefused   = 1024             // MAC addresses of the refused that are counted
	maxReturned  = 4096             // what devices gave back and may get again
	maxGone      = 64               // leases that are forgotten with the next that is stored
)

// ErrExhausted is returned when no address is left to give.
var ErrExhausted = errors.New("no address is left")

// errTaken is returned for a lease whose address has gone to another device
// meanwhile.
var errTaken = errors.New("the address is another device's now")

// errKept is returned for a lease that was given back, and that its client has
// asked for again meanwhile.
var errKept = errors.New("its device has asked for the address again")

// Query is what a client asks of the table.
type Query struct {
	Network *Network
	// Subnets are those of the client's link, all of one family, the preferred first.
	Subnets  []*Subnet
	MAC      string // canonical; "" = nothing shows it, and ClientID and IAID tell who asks
	ClientID string // hexadecimal
	IAID     uint32
	// Port is where a relay that is trusted heard the client, Relay what is shown of any relay.
	Port     model.RelayPort
	Relay    model.LeaseRelay
	Nth      int  // of the leases that MAC has at once, see Table.Nth
	Unproven bool // MAC is the client's own word
	// Unreserved: what is reserved for MAC is not given, for it is the client's own word.
	Unreserved bool
	Binding    bool       // what is found is leased now, and not only offered
	Wish       netip.Addr // the address asked for; invalid = none
	Bits       int        // length of the prefix asked for, 0 = an address
	Now        time.Time
}

// kind tells apart what one MAC address has one of on each link.
type kind uint8

const (
	kindV4 kind = iota
	kindV6
	kindPrefix
	kinds
)

// kindOf returns the kind of an address or prefix.
func kindOf(a netip.Addr, bits int) kind {
	switch {
	case bits > 0:
		return kindPrefix
	case a.Is4():
		return kindV4
	}
	return kindV6
}

// String returns the name of a kind, for metrics.
func (k kind) String() string { return [kinds]string{"IPv4", "IPv6", "prefix"}[k] }

// devices are entries by what they belong to: a MAC address, if it is known, whatever client
// identifier or DUID it shows (RFC 2131 §4.2 would have it otherwise, but firmware,
// iPXE and the operating system of one machine show three). It has one of each kind
// on each link: a machine may be on several, by one network interface, as VLANs. The key is
// that of deviceID.
type devices map[client][]*entry

// add adds e.
func (d devices) add(e *entry) { d[e.device.client] = append(d[e.device.client], e) }

// drop drops e, if it is there.
func (d devices) drop(e *entry) {
	left := slices.DeleteFunc(d[e.device.client], func(other *entry) bool { return other == e })
	if len(left) == 0 {
		delete(d, e.device.client)
		return
	}
	d[e.device.client] = left
}

// on returns what a device has of a kind on the link that has subnets, or nil.
func (d devices) on(link []*Subnet, id deviceID, k kind) *entry {
	return entryOn(d[id.client], link, id, k)
}

// entryOn is on of what a client has.
func entryOn(all []*entry, link []*Subnet, id deviceID, k kind) *entry {
	for _, e := range all {
		if e.device == id && e.kind() == k && slices.Contains(link, e.pool.subnet) {
			return e
		}
	}
	return nil
}

// besides returns what else the device of e has of its kind on its link.
func (d devices) besides(e *entry) []*entry {
	var others []*entry
	for _, other := range d[e.device.client] {
		if other != e && other.device == e.device && other.kind() == e.kind() && slices.Contains(e.pool.subnet.link(), other.pool.subnet) {
			others = append(others, other)
		}
	}
	return others
}

// slot is what at most one device has.
type slot struct {
	address netip.Addr
	bits    int
}

// Table knows who has which address. It lives in memory only: what must outlast a
// restart goes through the Committer. It is safe for concurrent use.
type Table struct {
	networks []*Network
	keep     func(mac string) bool
	changed  func() // a pool ran out, or has room again
	refused  *prometheus.CounterVec
	log      *slog.Logger

	mu       sync.Mutex
	bySlot   map[slot]*entry
	leases   devices       // those that are leased, ended or not
	offers   devices       // those that are only offered
	offered  []*entry      // offers, about in the order they end
	gone     []model.Lease // that were forgotten, and are stored still
	reserved reservations
	own      map[netip.Addr]bool // addresses of this machine
	declines map[deviceID]*declineCount
	warned   map[netip.Addr]bool   // reservations that somebody else was said to hold
	returned map[device]netip.Addr // what each gave back last
}

// device is a network interface that asks for something.
type device struct {
	id   deviceID
	kind kind
}

// Options are the options of NewTable.
type Options struct {
	Networks []*Network
	// Keep reports whether a MAC address is that of a Reserved server, whose address is
	// not given to others even when its lease has ended; nil = none is. It is called with
	// the table locked.
	Keep func(mac string) bool
	// Changed is called when a pool ran out, or has room again; nil = nobody is told. It
	// is called with the table locked.
	Changed func()

	Log        *slog.Logger
	Registerer prometheus.Registerer // nil = nothing is counted
	Clock      func() time.Time      // of what Registerer is told
}

// NewTable returns an empty table of networks.
func NewTable(o Options) *Table {
	t := &Table{
		networks: o.Networks, changed: o.Changed, refused: newRefused(o.Registerer), log: o.Log,
		bySlot: make(map[slot]*entry), leases: make(devices), offers: make(devices),
		own: make(map[netip.Addr]bool), declines: make(map[deviceID]*declineCount), warned: make(map[netip.Addr]bool),
		returned: make(map[device]netip.Addr),
	}
	t.keep = func(mac string) bool { return mac != "" && o.Keep != nil && o.Keep(mac) }
	if t.changed == nil {
		t.changed = func() {}
	}
	for _, n := range t.networks {
		for _, s := range n.Subnets {
			t.refused.WithLabelValues(n.Name, s.CIDR.String())
		}
	}
	if o.Registerer != nil {
		o.Registerer.MustRegister(fill{t, o.Clock})
	}
	return t
}

// kind returns what is asked for.
func (q Query) kind() kind {
	switch {
	case q.Bits > 0:
		return kindPrefix
	case len(q.Subnets) > 0 && q.Subnets[0].CIDR.Addr().Is4():
		return kindV4
	}
	return kindV6
}

// onLink returns the subnet of the client's link that a lies in. A delegated
// prefix lies in where it is delegated from.
func (q Query) onLink(a netip.Addr) (*Subnet, bool) {
	for _, s := range q.Subnets {
		if s.CIDR.Contains(a) || q.Bits > 0 && s.prefixes != nil && s.prefixes.contains(a) {
			return s, true
		}
	}
	return nil, false
}

// insert adds an offer of a to the client. What it was offered before on the link is
// taken back.
func (t *Table) insert(p *pool, a netip.Addr, q Query) *entry {
	e := &entry{mac: q.MAC, nth: q.Nth, device: q.device(), address: a, pool: p, index: -1}
	for _, before := range t.offers.besides(e) {
		t.remove(before)
	}
	t.bySlot[slot{a, p.bits}] = e
	t.offers.add(e)
	t.offered = append(t.offered, e)
	p.entries++
	p.offers++
	return e
}

// keepOffer keeps e for the client that asks, for a while. In a pool that is full of offers the
// while is short: a flood of MAC addresses that do not exist is soon over.
func (t *Table) keepOffer(e *entry, q Query) {
	e.pool.unrequested.note(e, q.Binding)
	while := offerFor
	if e.pool.offers > e.pool.limit/2 {
		while = shortOffer
	}
	e.offeredUntil, e.asker, e.returned = q.Now.Add(while).Unix(), q.association(), false
	if e.index >= 0 {
		heap.Fix(&e.pool.ending, e.index)
	}
}

// dropOffers forgets offers that nobody took. It looks at a few a call, one more
// than a call can add, so that all are looked at again and again.
func (t *Table) dropOffers(now time.Time) {
	for range min(4, len(t.offered)) {
		e := t.offered[0]
		t.offered = t.offered[1:]
		switch {
		case e.removed, e.expires != 0: // it is gone already, or was taken
		case e.free(now):
			t.remove(e)
		default:
			t.offered = append(t.offered, e)
		}
	}
}

// set makes e the lease l, and the only one of its device on its link.
func (t *Table) set(e *entry, l model.Lease) {
	offered := e.expires == 0
	e.pool.unrequested.drop(e)
	switch {
	case offered:
		t.offers.drop(e)
		e.pool.offers--
	case l.Declined:
		t.leases.drop(e)
	}
	if l.Declined && !e.declined {
		e.pool.declined++
	}
	e.shares = e.shared(l)
	e.mac, e.nth, e.device = l.MAC, l.Nth, deviceOf(l)
	e.clientID, e.iaid, e.declined, e.unproven = l.ClientID, l.IAID, l.Declined, l.Unproven
	e.relay = l.Relay
	e.since, e.renewed, e.expires, e.offeredUntil = seconds(l.Since), seconds(l.Renewed), max(seconds(l.Expires), 1), 0
	if e.index < 0 {
		heap.Push(&e.pool.ending, e)
	} else {
		heap.Fix(&e.pool.ending, e.index)
	}
	if e.declined {
		return
	}
	for _, other := range slices.Concat(t.leases.besides(e), t.offers.besides(e)) {
		t.remove(other)
	}
	if offered {
		t.leases.add(e)
	}
}

// remove forgets e.
func (t *Table) remove(e *entry) {
	p := e.pool
	e.removed = true
	delete(t.bySlot, slot{e.address, p.bits})
	p.unrequested.drop(e)
	t.leases.drop(e)
	t.offers.drop(e)
	if e.index >= 0 {
		heap.Remove(&p.ending, e.index)
	}
	p.entries--
	if e.expires == 0 {
		p.offers--
	}
	if e.declined {
		p.declined--
	}
	p.giveBack(e.address)
}

// lease returns e as the lease that q asks for, from now on.
func (t *Table) lease(e *entry, q Query) model.Lease {
	now := q.Now.Truncate(time.Second).UTC()
	l := e.lease()
	l.ClientID, l.IAID, l.Unproven, l.Renewed = q.ClientID, q.IAID, q.Unproven, now
	l.Expires = now.Add(e.pool.subnet.LeaseTime)
	l.Reserved = t.reservedBy(e, q)
	if q.Relay.Address.IsValid() { // who renews by unicast passes by its relay
		l.Relay = q.Relay
	}
	switch {
	case e.expires == 0:
		l.Since = now
	case e.live(q.Now) && t.isToLeave(e, q) && !t.keep(e.mac): // or its own client would wait for ever
		l.Expires = timeOf(min(seconds(l.Expires), e.expires))
	}
	return l
}

// lease returns e as the store knows it.
func (e *entry) lease() model.Lease {
	return model.Lease{
		Network: e.pool.subnet.network.Name, Role: e.pool.subnet.network.Role,
		MAC: e.mac, Nth: e.nth, Address: e.address, Bits: e.pool.bits, ClientID: e.clientID, IAID: e.iaid,
		Since: timeOf(e.since), Renewed: timeOf(e.renewed), Expires: timeOf(e.expires), Declined: e.declined, Unproven: e.unproven,
		Relay: e.relay,
	}
}

// forgotten returns e as the store is told to forget it.
func (e *entry) forgotten() model.Lease {
	l := e.lease()
	l.Expires = time.Time{}
	return l
}

// timeOf returns the time of seconds, zero for none.
func timeOf(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// seconds returns the seconds of a time, 0 for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// SetOwn says which addresses this machine has on the networks.
func (t *Table) SetOwn(own map[netip.Addr]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.own
	t.own = own
	for a := range own {
		if r, reserved := t.reserved.byAddress[a]; reserved && !before[a] {
			t.warnUseless(r)
		}
	}
	t.lookAgain()
}

// lookAgain lets all pools look again for what is fresh.
func (t *Table) lookAgain() {
	for _, n := range t.networks {
		for _, s := range n.Subnets {
			for _, p := range s.pools() {
				p.lookAgain()
			}
		}
	}
}
