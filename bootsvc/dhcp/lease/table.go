package lease

import (
	"errors"
	"log/slog"
	"net/netip"
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
	refusedFor   = time.Minute      // an address that its client refused, so that it is offered another when it asks again
	keptFor      = 10 * time.Minute // an ended lease of a Reserved server, before it is looked at again
	leastRest    = 60               // seconds of a lease that ends for a reservation: who asks later asks anew
	maxDeclines  = 3                // that one MAC address may make in setAside
	maxDecliners = 4096             // MAC addresses whose declines are counted
	maxRefused   = 1024             // MAC addresses of the refused that are counted
	maxReturned  = 4096             // what devices gave back and may get again
	maxGone      = 64               // leases that are forgotten with the next that is stored
)

// ErrNotStored is returned for a client without a lease while leases cannot be stored.
var ErrNotStored = errors.New("leases cannot be stored")

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
	KnownOnly  bool       // leases cannot be stored: the client may keep what it has, and gets nothing new
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

// Table knows who has which address. It lives in memory only: what must outlast a
// restart goes through the Committer. It is safe for concurrent use.
type Table struct {
	networks networks
	keep     func(mac string) bool
	shortage shortage

	mu       sync.Mutex
	index    index
	reserved reservations
	declines declines
	returned returned
}

// networks are those that addresses are given on.
type networks []*Network

// home returns the subnet that a stored lease belongs to: on its own network, or on
// another, for a network that was given another name still has the same devices.
func (all networks) home(l model.Lease) (s *Subnet, ok bool) {
	for _, n := range all {
		found, in := n.SubnetOf(l.Address, l.Bits)
		if in && (!ok || n.Name == l.Network) {
			s, ok = found, true
		}
	}
	return s, ok
}

// lookAgain lets all pools look for fresh addresses from the start.
func (all networks) lookAgain() {
	for _, n := range all {
		for _, s := range n.Subnets {
			for _, p := range s.pools() {
				p.lookAgain()
			}
		}
	}
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
		networks: o.Networks, shortage: shortage{newRefused(o.Registerer), o.Changed, o.Log}, index: newIndex(),
		reserved: reservations{networks: o.Networks, log: o.Log}, declines: make(declines), returned: make(returned),
	}
	t.keep = func(mac string) bool { return mac != "" && o.Keep != nil && o.Keep(mac) }
	if t.shortage.changed == nil {
		t.shortage.changed = func() {}
	}
	for _, n := range t.networks {
		for _, s := range n.Subnets {
			t.shortage.refused.WithLabelValues(n.Name, s.CIDR.String())
		}
	}
	if o.Registerer != nil {
		o.Registerer.MustRegister(fill{t, o.Clock})
	}
	return t
}

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

func (t *Table) lease(e *entry, q Query) model.Lease {
	now := q.Now.Truncate(time.Second).UTC()
	l := e.lease()
	l.ClientID, l.IAID, l.Unproven, l.Renewed = q.ClientID, q.IAID, q.Unproven, now
	l.Expires = now.Add(e.pool.subnet.LeaseTime)
	l.Reserved = t.reserved.nameOf(e, q)
	if q.Relay.Address.IsValid() { // who renews by unicast passes by its relay
		l.Relay = q.Relay
	}
	switch {
	case e.expires == 0:
		l.Since = now
	case e.live(q.Now) && t.reserved.isToLeave(e, q) && !t.keep(e.mac): // or its own client would wait for ever
		l.Expires = timeOf(min(seconds(l.Expires), e.expires))
	}
	return l
}

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
	t.reserved.setOwn(own)
	t.networks.lookAgain()
}
