package lease

import (
	"net/netip"
	"time"

	"ingot/model"
)

// declines are how often each client declined an address.
type declines map[deviceID]*declineCount

// declineCount is how often a MAC address declined since.
type declineCount struct {
	since time.Time
	count int
}

// Release takes q.Wish back from a client, and reports whether it was its own. The
// lease is to be committed; it is nil while others of the client's associations hold
// the address.
func (t *Table) Release(q Query) (l *model.Lease, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.leasedTo(q)
	if e == nil {
		return nil, false
	}
	return e.giveBack(q), true
}

// Decline sets q.Wish aside for as long as a client may find it in use by another device, or shortly if the client only refuses
// it; it returns what Release does. A client that declines too much only gives its address back, so that no client can
// empty a pool.
func (t *Table) Decline(q Query, refuses bool) (l *model.Lease, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.leasedTo(q)
	switch {
	case e == nil:
		return nil, false
	case !t.declines.allow(q) || e.pool.declined > e.pool.limit/4:
		return e.giveBack(q), true
	}
	aside := model.Lease{Address: e.address, Bits: e.pool.bits, Expires: q.Now.Add(setAside), Renewed: q.Now, Since: q.Now, Declined: true}
	if refuses {
		aside.Expires = q.Now.Add(refusedFor)
	}
	if told := timeOf(e.expires); e.removeHolder(q.association(), q.Now) && told.After(aside.Expires) {
		aside.Expires = told // another association uses it, and may until then
	}
	t.index.set(e, aside)
	aside = e.lease()
	return &aside, true
}

// ConfirmDecline keeps an address aside that another device was found to use after its client had declined it. The caller
// commits the lease. It is nil if the address is no longer aside.
func (t *Table) ConfirmDecline(a netip.Addr, now time.Time) *model.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.bySlot[slot{a, 0}]
	if e == nil || !e.declined {
		return nil
	}
	l := e.lease()
	l.Expires = timeOf(max(e.expires, seconds(now.Add(setAside))))
	t.index.set(e, l)
	return &l
}

// Unasked reports whether a is only offered, and nobody was asked yet whether somebody uses it.
func (t *Table) Unasked(a netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.bySlot[slot{a, 0}]
	return e != nil && e.expires == 0 && !e.asked
}

// SetAsked notes that nobody uses a.
func (t *Table) SetAsked(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.index.bySlot[slot{a, 0}]; e != nil {
		e.asked = true
	}
}

// How much of a pool is set aside at most: a share of it, or a few addresses of a small one.
// Somebody who answers for whatever is asked for must not leave nothing to others.
const (
	asideShare = 4
	asideFew   = 4
)

// SetAside sets aside what a client is offered, q.Wish, and somebody else was found to use. The
// lease is to be committed. It is invalid when no more is set aside, and then the client may have
// the address; offered is false when the address is not offered to it any more.
func (t *Table) SetAside(q Query) (aside model.Lease, offered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.bySlot[slot{q.Wish, q.Bits}]
	if e == nil || e.device != q.device() || e.expires != 0 {
		return model.Lease{}, false
	}
	if e.pool.declined >= max(asideFew, e.pool.limit/asideShare) {
		e.asked = true
		return model.Lease{}, true
	}
	t.index.set(e, model.Lease{Address: e.address, Bits: e.pool.bits, Expires: q.Now.Add(setAside), Renewed: q.Now, Since: q.Now, Declined: true})
	return e.lease(), true
}

// leasedTo returns what q.Wish is leased as, if the client that asks holds it. What it was only
// offered is free again.
func (t *Table) leasedTo(q Query) *entry {
	e := t.index.bySlot[slot{q.Wish, q.Bits}]
	if e == nil || e.device != q.device() || e.pool.subnet.network != q.Network || !e.isHeldBy(q.association()) {
		return nil
	}
	if e.expires == 0 {
		t.index.remove(e)
		return nil
	}
	return e
}

// giveBack returns the lease to commit when the asking client gives e back, or nil when others
// still hold it.
func (e *entry) giveBack(q Query) *model.Lease {
	if e.removeHolder(q.association(), q.Now) {
		return nil
	}
	e.returned = true
	l := e.forgotten()
	return &l
}

// returned is the address that each client gave back last. A machine whose firmware gave its address back
// goes on as iPXE, which finds the address if no other client has asked for it meanwhile (RFC 2131 §4.3.4).
type returned map[device]netip.Addr

func (r returned) add(e *entry) {
	if len(r) >= maxReturned {
		clear(r)
	}
	r[device{e.device, e.kind()}] = e.address
}

// allow counts a decline, and reports whether it may set the address aside.
func (d declines) allow(q Query) bool {
	who := idOf(q.MAC, q.association(), 0)
	c := d[who]
	if c == nil || q.Now.Sub(c.since) >= setAside {
		if len(d) >= maxDecliners {
			d.forget(q.Now)
		}
		if len(d) >= maxDecliners {
			return false
		}
		c = &declineCount{since: q.Now}
		d[who] = c
	}
	c.count++
	return c.count <= maxDeclines
}

func (d declines) forget(now time.Time) {
	for who, c := range d {
		if now.Sub(c.since) >= setAside {
			delete(d, who)
		}
	}
}
