package dhcp

import (
	"time"

	"ingot/model"
)

// declineCount is how often a MAC address declined since.
type declineCount struct {
	since time.Time
	count int
}

// release takes q.wish back from a client, and reports whether it was its own. The
// lease is to be committed; it is nil while others of the client's associations hold
// the address.
func (t *table) release(q query) (l *model.Lease, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.held(q)
	if e == nil {
		return nil, false
	}
	return e.giveBack(q), true
}

// decline sets q.wish aside, which a client found in use by somebody else; it returns
// what release does. A client that declines too much only gives its address back, so
// that nobody can empty a pool.
func (t *table) decline(q query) (l *model.Lease, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.held(q)
	switch {
	case e == nil:
		return nil, false
	case !t.mayDecline(q) || e.pool.declined > e.pool.limit/4:
		return e.giveBack(q), true
	}
	aside := model.Lease{Address: e.address, Bits: e.pool.bits, Expires: q.now.Add(setAside), Renewed: q.now, Since: q.now, Declined: true}
	if told := timeOf(e.expires); e.leave(q.association(), q.now) && told.After(aside.Expires) {
		aside.Expires = told // another association uses it, and may until then
	}
	t.set(e, aside)
	aside = e.lease()
	return &aside, true
}

// held returns what q.wish is leased as, if who asks holds it. What it was only
// offered is free again.
func (t *table) held(q query) *entry {
	e := t.bySlot[slot{q.wish, q.bits}]
	if e == nil || e.mac != q.mac || e.declined || e.pool.subnet.network != q.network || !e.heldBy(q.association()) {
		return nil
	}
	if e.expires == 0 {
		t.remove(e)
		return nil
	}
	return e
}

// giveBack returns the lease to commit when who asks leaves e, or nil when others
// still hold it.
func (e *entry) giveBack(q query) *model.Lease {
	if e.leave(q.association(), q.now) {
		return nil
	}
	e.leaving = true
	l := e.forgotten()
	return &l
}

// remember notes what e's client gave back: nobody holds it, but a machine whose
// firmware gave it back goes on as iPXE, which finds its address if nobody else has
// asked for it meanwhile (RFC 2131 §4.3.4).
func (t *table) remember(e *entry) {
	if len(t.returned) >= maxReturned {
		clear(t.returned)
	}
	t.returned[device{e.mac, e.kind()}] = e.address
}

// mayDecline counts a decline, and reports whether it is to be believed.
func (t *table) mayDecline(q query) bool {
	c := t.declines[q.mac]
	if c == nil || q.now.Sub(c.since) >= setAside {
		if len(t.declines) >= maxDecliners {
			t.forgetDecliners(q.now)
		}
		if len(t.declines) >= maxDecliners {
			return false
		}
		c = &declineCount{since: q.now}
		t.declines[q.mac] = c
	}
	c.count++
	return c.count <= maxDeclines
}

// forgetDecliners drops the counts that are over.
func (t *table) forgetDecliners(now time.Time) {
	for mac, c := range t.declines {
		if now.Sub(c.since) >= setAside {
			delete(t.declines, mac)
		}
	}
}
