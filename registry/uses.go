package registry

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"ingot/model"
	"ingot/registry/store"
)

const (
	// useEvery is how often uses are written at most.
	useEvery = time.Second
	// useCountEvery is how often at most they are for a server of whose uses only the
	// counts changed, so that a client that asks again and again costs next to nothing.
	useCountEvery = 10 * time.Second

	// maxRefusedUses is how many of a ticket's uses may be refusals. Anybody can be
	// refused, from ever new addresses: that takes no room from the server's own uses.
	maxRefusedUses = model.MaxTicketUses / 2
	// maxPendingUses is how many different uses of all tickets wait to be written at
	// most, maxPendingRefused how many of them may be refusals.
	maxPendingUses    = 1 << 14
	maxPendingRefused = maxPendingUses / 2
)

// Use notes that t was asked for something. Who asked may be unknown: the zero value. It
// returns at once: Run writes what was noted about once a second.
// Uses of a ticket that is not its server's newest any more are dropped, and so are
// those for which there is no room.
func (r *Registry) Use(t *model.Ticket, what model.TicketThing, by model.Asker, refusal model.TicketRefusal) {
	if t == nil {
		return
	}
	now := r.options.Clock().UTC()
	by.Client = by.Client.Unmap()
	u := use{what: what, by: by, refusal: refusal, first: now, last: now, count: 1}
	if !r.uses.add(ticketKey{t.Server, t.ID}, u, now) {
		r.metrics.unnoted.Inc()
	}
}

// use is a model.TicketUse whose client needs no memory.
type use struct {
	what        model.TicketThing
	by          model.Asker
	refusal     model.TicketRefusal
	first, last time.Time
	count       int
}

func (u *use) isLike(other *use) bool {
	return u.what == other.what && u.by == other.by && u.refusal == other.refusal
}

// join takes in a use that is like u.
func (u *use) join(other use) {
	u.count += other.count
	if other.first.Before(u.first) {
		u.first = other.first
	}
	if other.last.After(u.last) {
		u.last = other.last
	}
}

func (u *use) isRefused() bool { return u.refusal != "" }

func (u *use) shown() model.TicketUse {
	return model.TicketUse{
		What: u.what, Client: clientText(u.by.Client), MAC: u.by.MAC, Own: u.by.Own, Token: u.by.Token, Port: u.by.Port,
		Refusal: u.refusal, First: u.first, Last: u.last, Count: u.count,
	}
}

// clientText is how a client is shown, "" when it is not known. Before DHCP a machine
// has no address.
func clientText(client netip.Addr) string {
	if !client.IsValid() || client.IsUnspecified() {
		return ""
	}
	return client.String()
}

// ticketKey names one ticket.
type ticketKey struct {
	server model.ServerName
	id     string
}

// pendingTicket are the uses of one ticket that wait to be written.
type pendingTicket struct {
	ticketKey
	since time.Time // when the first of them came
	uses  []use
}

// pendingUses are the uses that wait to be written.
type pendingUses struct {
	mu      sync.Mutex
	tickets map[ticketKey]*pendingTicket
	total   int
	refused int // of total
}

func newPendingUses() *pendingUses {
	return &pendingUses{tickets: make(map[ticketKey]*pendingTicket)}
}

// add takes in a use, and reports whether there was room for it.
func (p *pendingUses) add(k ticketKey, u use, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tickets[k]
	if t != nil {
		if i := slices.IndexFunc(t.uses, func(known use) bool { return known.isLike(&u) }); i >= 0 {
			t.uses[i].join(u)
			return true
		}
	}
	if p.total >= maxPendingUses || u.isRefused() && p.refused >= maxPendingRefused {
		return false
	}
	if t == nil {
		t = &pendingTicket{ticketKey: k, since: now}
		p.tickets[k] = t
	}
	if !hasRoom(len(t.uses), countRefused(t.uses), u.isRefused()) {
		return false
	}
	t.uses = append(t.uses, u)
	p.total++
	if u.isRefused() {
		p.refused++
	}
	return true
}

// take takes out the tickets that are due, in the order of their servers.
func (p *pendingUses) take(isDue func(*pendingTicket) bool) []*pendingTicket {
	p.mu.Lock()
	defer p.mu.Unlock()
	var taken []*pendingTicket
	for k, t := range p.tickets {
		if !isDue(t) {
			continue
		}
		taken = append(taken, t)
		delete(p.tickets, k)
		p.total -= len(t.uses)
		p.refused -= countRefused(t.uses)
	}
	slices.SortFunc(taken, func(a, b *pendingTicket) int {
		return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.id, b.id))
	})
	return taken
}

// giveBack takes in again what was taken out and could not be written. It returns for
// how many uses there is no room any more.
func (p *pendingUses) giveBack(taken []*pendingTicket) (lost int) {
	for _, t := range taken {
		for _, u := range t.uses {
			if !p.add(t.ticketKey, u, t.since) {
				lost += u.count
			}
		}
	}
	return lost
}

func countRefused(uses []use) (n int) {
	for i := range uses {
		if uses[i].isRefused() {
			n++
		}
	}
	return n
}

// hasRoom reports whether a ticket with so many different uses, so many of them
// refusals, has room for another one.
func hasRoom(total, refused int, isRefusal bool) bool {
	return total < model.MaxTicketUses && (!isRefusal || refused < maxRefusedUses)
}

// keepUses writes uses until ctx ends, and once more then.
func (r *Registry) keepUses(ctx context.Context) {
	ticker := time.NewTicker(useEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.saveUses(ctx, r.isDue(r.options.Clock()))
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
			defer cancel()
			if r.Healthy() == nil { // otherwise it would only be waited for in vain
				r.saveUses(ctx, func(*pendingTicket) bool { return true })
			}
			return
		}
	}
}

// isDue decides which tickets' uses are to be written at now: those with one that is
// new, and those of which the first was long ago. A clock that went back does not
// hold them up.
func (r *Registry) isDue(now time.Time) func(*pendingTicket) bool {
	return func(t *pendingTicket) bool {
		waited := now.Sub(t.since)
		if waited >= useCountEvery || waited < 0 {
			return true
		}
		known, _ := r.memory.meaning(store.Key{Bucket: store.BucketProgress, Name: string(t.server)}).(*model.Progress)
		return known == nil || known.Ticket != t.id || hasNews(known.Uses, t.uses)
	}
}

// hasNews reports whether joining uses to those that are known makes more than their
// counts change.
func hasNews(known []model.TicketUse, uses []use) bool {
	return slices.ContainsFunc(uses, func(u use) bool {
		shown := u.shown()
		return indexOf(known, &shown) < 0 && isRoomFor(known, &shown)
	})
}

// saveUses writes the uses of the tickets that are due. While the store does not take
// them they wait; once another ingot leads they are that one's no more than ours.
func (r *Registry) saveUses(ctx context.Context, isDue func(*pendingTicket) bool) {
	if r.Fence() == 0 {
		return
	}
	taken := r.uses.take(isDue)
	if len(taken) == 0 {
		return
	}
	lost := 0
	err := r.write(ctx, func(d *draft) (b store.Batch, err error) {
		b, lost, err = noteUses(d, taken)
		return b, err
	})
	if err != nil && !errors.Is(err, store.ErrFenced) {
		lost = r.uses.giveBack(taken)
	}
	r.metrics.unnoted.Add(float64(lost))
}

// noteUses is the edit of saveUses. It returns for how many uses there is no room, too.
func noteUses(d *draft, taken []*pendingTicket) (_ store.Batch, lost int, _ error) {
	var e encoder
	for _, t := range taken {
		newest, progress := newestTicket(d, t.server)
		if newest == nil || newest.ID != t.id {
			continue
		}
		for i := range t.uses {
			joined, ok := joinUse(progress.Uses, t.uses[i].shown())
			if !ok {
				lost += t.uses[i].count
			}
			progress.Uses = joined
		}
		e.set(store.BucketProgress, string(t.server), progress)
	}
	return e.batch, lost, e.err
}

// joinUse returns the known uses with another one joined to them, if there is room for
// it. What is known is not changed.
func joinUse(known []model.TicketUse, u model.TicketUse) (joined []model.TicketUse, ok bool) {
	i := indexOf(known, &u)
	switch {
	case i >= 0:
		joined = slices.Clone(known)
		joined[i].Count += u.Count
		if u.Last.After(joined[i].Last) {
			joined[i].Last = u.Last
		}
		return joined, true
	case isRoomFor(known, &u):
		return append(slices.Clip(known), u), true
	}
	return known, false
}

// indexOf returns the place of the known use that is like u, -1 if there is none.
func indexOf(known []model.TicketUse, u *model.TicketUse) int {
	return slices.IndexFunc(known, func(k model.TicketUse) bool {
		like := *u
		like.First, like.Last, like.Count = k.First, k.Last, k.Count
		return k == like
	})
}

func isRoomFor(known []model.TicketUse, u *model.TicketUse) bool {
	refused := 0
	for i := range known {
		if !known[i].Served() {
			refused++
		}
	}
	return hasRoom(len(known), refused, !u.Served())
}
