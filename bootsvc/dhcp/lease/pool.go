package lease

import (
	"container/heap"
	"container/list"
	"math"
	"net/netip"
	"time"

	"ingot/model"
)

// maxLeases bounds the leases of one pool: an IPv6 range has room for more MAC
// addresses than there is memory.
const maxLeases = 1 << 17

// entry is one address, or delegated prefix, that is leased, offered or set aside.
// Times are seconds since 1970, 0 = never: a rack has many of these.
type entry struct {
	mac, clientID string
	device        deviceID // that it belongs to
	nth           int      // of the leases of mac
	address       netip.Addr
	pool          *pool
	since         int64
	renewed       int64
	expires       int64         // end of the lease; 0 = it is only offered
	offeredUntil  int64         // until when an offer of it stands
	index         int           // in pool.ending
	waits         *list.Element // in pool.unrequested, nil = it is not there
	asked         bool          // of an offer: nobody was found to use the address
	requested     bool          // of an offer: its client has asked for it, and it may be being stored
	iaid          uint32
	rightful      bool // of an offer: it was reserved for its client
	declined      bool
	unproven      bool // mac is the client's own word
	relay         model.LeaseRelay
	removed       bool        // from the table
	returned      bool        // its client gave it back, which is not stored yet
	asker         association // that it is held for, or was last
	shares        []share     // that hold the lease beside iaid
}

func (e *entry) kind() kind { return kindOf(e.address, e.pool.bits) }

func (e *entry) live(now time.Time) bool { return e.expires > now.Unix() }

// free reports whether e may be taken from its client.
func (e *entry) free(now time.Time) bool { return max(e.expires, e.offeredUntil) <= now.Unix() }

// pool is what addresses, or prefixes, of one subnet are given from, and what was
// given. A pool without a range takes in what is given from outside it:
// reservations, derived addresses and leases from before the range was changed.
// The table's lock guards it.
type pool struct {
	subnet *Subnet
	bits   int // length of the prefixes, 0 = addresses
	v4     bool

	ranged bool
	blocks []block // what it gives, in order
	shift  int     // from one to the next: 2^shift
	limit  int     // entries at most

	next  number // what lies before was looked at
	at    int    // the block that next lies in
	done  bool   // all was looked at
	freed []netip.Addr

	ending   ending
	entries  int
	offers   int // of them only offered
	declined int

	unrequested unrequested
	tookBack    time.Time // when an offer was taken back last

	reserved []netip.Addr // of what it gives, by Table.SetReservations

	exhausted time.Time
	refused   map[deviceID]bool // those that got nothing since
}

// block is what lies from first to last, both included.
type block struct{ first, last number }

func blockOf(r Range) block { return block{numberOf(r.First), numberOf(r.Last)} }

// newPool returns a pool of what lies in blocks in steps of 2^shift. There is at least one.
func newPool(s *Subnet, blocks []block, bits, shift int) *pool {
	p := &pool{
		subnet: s, bits: bits, v4: s.CIDR.Addr().Is4(), ranged: true, blocks: blocks, shift: shift, limit: maxLeases,
		next: blocks[0].first,
	}
	if size := p.size(); size < maxLeases {
		p.limit = int(size)
	}
	return p
}

// newOtherPool returns the pool for what lies outside s's range.
func newOtherPool(s *Subnet) *pool {
	return &pool{subnet: s, v4: s.CIDR.Addr().Is4(), done: true, limit: maxLeases}
}

func (p *pool) size() (n uint64) {
	for _, b := range p.blocks {
		more := steps(b.first, b.last, p.shift)
		if n+more < n {
			return math.MaxUint64
		}
		n += more
	}
	return n
}

func (p *pool) contains(a netip.Addr) bool {
	if !p.ranged || a.Is4() != p.v4 {
		return false
	}
	n := numberOf(a)
	for _, b := range p.blocks {
		if !n.less(b.first) && !b.last.less(n) {
			return n.minus(b.first).isMultiple(p.shift)
		}
	}
	return false
}

func (p *pool) overlapping(prefix netip.Prefix) []netip.Addr {
	if prefix.Bits() >= p.bits {
		whole := netip.PrefixFrom(prefix.Addr(), p.bits).Masked().Addr()
		if !p.contains(whole) {
			return nil
		}
		return []netip.Addr{whole}
	}
	var all []netip.Addr
	for n := numberOf(prefix.Masked().Addr()); len(all) < p.limit; n = n.plus(p.shift) {
		a := n.address(p.v4)
		if !prefix.Contains(a) || !p.contains(a) {
			return all
		}
		all = append(all, a)
	}
	return all
}

// fresh returns one that nobody has had, or that was given back, if there is any.
// Each is looked at once as the pool fills, so that a call costs little however
// full the pool is.
func (p *pool) fresh(usable func(netip.Addr) bool) (netip.Addr, bool) {
	if p.entries >= p.limit {
		return netip.Addr{}, false
	}
	for !p.done {
		a := p.next.address(p.v4)
		p.advance()
		if usable(a) {
			return a, true
		}
	}
	for len(p.freed) > 0 {
		a := p.freed[0]
		p.freed = p.freed[1:]
		if usable(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// advance moves on to the next that was not looked at.
func (p *pool) advance() {
	switch {
	case !p.blocks[p.at].last.minus(p.next).less(number{}.plus(p.shift)):
		p.next = p.next.plus(p.shift)
	case p.at+1 < len(p.blocks):
		p.at++
		p.next = p.blocks[p.at].first
	default:
		p.done = true
	}
}

// giveBack notes that a may be fresh again.
func (p *pool) giveBack(a netip.Addr) {
	switch {
	case !p.contains(a), !p.done && !numberOf(a).less(p.next):
	case len(p.freed) > 2*p.limit: // full of what was taken again meanwhile
		p.lookAgain()
	default:
		p.freed = append(p.freed, a)
	}
}

func (p *pool) lookAgain() {
	p.freed, p.at, p.done = nil, 0, !p.ranged
	if p.ranged {
		p.next = p.blocks[0].first
	}
}

// longestEnded returns the lease that ended first, if any has ended. One that is
// to be kept is looked at again only after a while.
func (p *pool) longestEnded(keep func(mac string) bool, now time.Time) (*entry, bool) {
	for len(p.ending) > 0 {
		e := p.ending[0]
		if !e.free(now) {
			return nil, false
		}
		if e.declined || !keep(e.mac) {
			return e, true
		}
		e.offeredUntil = now.Add(keptFor).Unix()
		heap.Fix(&p.ending, 0)
	}
	return nil, false
}

type ending []*entry

func (h ending) Len() int { return len(h) }
func (h ending) Less(i, j int) bool {
	return max(h[i].expires, h[i].offeredUntil) < max(h[j].expires, h[j].offeredUntil)
}
func (h ending) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *ending) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *ending) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.index = -1
	return e
}

// unrequested are the offers of a pool that no client has requested, the oldest first.
type unrequested struct{ list.List }

// note puts an offer that was just made, again perhaps, behind all others, and leaves out one
// that is requested.
func (u *unrequested) note(e *entry, requested bool) {
	u.drop(e)
	e.requested = e.requested || requested
	if e.expires == 0 && !e.requested {
		e.waits = u.PushBack(e)
	}
}

func (u *unrequested) drop(e *entry) {
	if e.waits != nil {
		u.Remove(e.waits)
		e.waits = nil
	}
}

// oldest returns the offer that was made first, or nil.
func (u *unrequested) oldest() *entry {
	first := u.Front()
	if first == nil {
		return nil
	}
	return first.Value.(*entry)
}
