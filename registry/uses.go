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
	// useEvery is the time between two writes of uses.
	useEvery = time.Second
	// useCountEvery is the time between two writes for a server if only the counts of uses changed,
	// so that a client that repeats its request costs little.
	useCountEvery = 10 * time.Second

	// maxRefusedUses bounds the refusals among the uses of a ticket. Any client can cause refusals
	// from many addresses, and must not displace the server's own uses.
	maxRefusedUses = model.MaxTicketUses / 2
)

// Use records a request with t, which may be nil. It returns at once: Run writes the uses about once a
// second. Uses of a ticket that is not its server's newest are dropped, and so are those that exceed the
// bounds of a ticket.
func (b *Boots) Use(t *model.Ticket, what model.TicketThing, by model.Asker, refusal model.TicketRefusal) {
	if t == nil {
		return
	}
	now := b.clock().UTC()
	u := model.TicketUse{
		What: what, Client: clientText(by.Client), MAC: by.MAC, Own: by.Own, Token: by.Token, Port: by.Port,
		Refusal: refusal, First: now, Last: now, Count: 1,
	}
	if !b.uses.add(ticketKey{t.Server, t.ID}, u, now) {
		b.metrics.unnoted.Inc()
	}
}

// clientText is the IP address of a client, "" if it is unknown. Before DHCP a machine has none.
func clientText(client netip.Addr) string {
	if !client.IsValid() || client.IsUnspecified() {
		return ""
	}
	return client.Unmap().String()
}

type ticketKey struct {
	server model.ServerName
	id     string
}

// pendingTicket has the uses of a ticket that are not written yet.
type pendingTicket struct {
	ticketKey
	since time.Time // of the first of them
	uses  []model.TicketUse
}

// pendingUses are the uses of all tickets that are not written yet.
type pendingUses struct {
	mu      sync.Mutex
	tickets map[ticketKey]*pendingTicket
}

func (p *pendingUses) add(k ticketKey, u model.TicketUse, now time.Time) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tickets[k]
	if t == nil {
		t = &pendingTicket{ticketKey: k, since: now}
		p.tickets[k] = t
	}
	t.uses, ok = addUse(t.uses, u)
	return ok
}

// take removes and returns the tickets that are due, ordered by server.
func (p *pendingUses) take(isDue func(*pendingTicket) bool) (taken []*pendingTicket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, t := range p.tickets {
		if isDue(t) {
			taken = append(taken, t)
			delete(p.tickets, k)
		}
	}
	slices.SortFunc(taken, func(a, b *pendingTicket) int {
		return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.id, b.id))
	})
	return taken
}

// giveBack adds tickets that could not be written. It returns the number of uses without room.
func (p *pendingUses) giveBack(taken []*pendingTicket) (lost int) {
	for _, t := range taken {
		for _, u := range t.uses {
			if !p.add(t.ticketKey, u, t.since) {
				lost += u.Count
			}
		}
	}
	return lost
}

// keepUses writes uses until ctx ends, and once more then.
func (b *Boots) keepUses(ctx context.Context) {
	ticker := time.NewTicker(useEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.saveUses(ctx, b.isDue(b.clock()))
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
			defer cancel()
			if b.lead.Healthy() == nil {
				b.saveUses(ctx, func(*pendingTicket) bool { return true })
			}
			return
		}
	}
}

// isDue selects the tickets whose uses are written at now: those with a new use, and those whose first
// use is old. A clock that went back delays none.
func (b *Boots) isDue(now time.Time) func(*pendingTicket) bool {
	return func(t *pendingTicket) bool {
		waited := now.Sub(t.since)
		if waited >= useCountEvery || waited < 0 {
			return true
		}
		known, _ := b.memory.value(store.Key{Bucket: store.BucketProgress, Name: string(t.server)}).(*model.Progress)
		return known == nil || known.Ticket != t.id || slices.ContainsFunc(t.uses, func(u model.TicketUse) bool {
			return indexOf(known.Uses, &u) < 0 && hasRoom(known.Uses, &u)
		})
	}
}

// saveUses writes the uses of the tickets that are due. If that fails they stay pending, unless another
// process leads.
func (b *Boots) saveUses(ctx context.Context, isDue func(*pendingTicket) bool) {
	if b.lead.Fence() == 0 {
		return
	}
	taken := b.uses.take(isDue)
	if len(taken) == 0 {
		return
	}
	lost := 0
	err := b.write(ctx, func(d *draft) (batch store.Batch, err error) {
		batch, lost, err = noteUses(d, taken)
		return batch, err
	})
	if err != nil && !errors.Is(err, store.ErrFenced) {
		lost = b.uses.giveBack(taken)
	}
	b.metrics.unnoted.Add(float64(lost))
}

// noteUses is the edit of saveUses. It also returns the number of uses without room.
func noteUses(d *draft, taken []*pendingTicket) (_ store.Batch, lost int, _ error) {
	var e encoder
	for _, t := range taken {
		newest, progress := newestTicket(d, t.server)
		if newest == nil || newest.ID != t.id {
			continue
		}
		progress.Uses = slices.Clone(progress.Uses)
		for _, u := range t.uses {
			var ok bool
			if progress.Uses, ok = addUse(progress.Uses, u); !ok {
				lost += u.Count
			}
		}
		e.set(store.BucketProgress, string(t.server), progress)
	}
	return e.batch, lost, e.err
}

// addUse adds a use to the uses of a ticket in place, and reports whether they had room for it.
func addUse(uses []model.TicketUse, u model.TicketUse) ([]model.TicketUse, bool) {
	i := indexOf(uses, &u)
	if i < 0 {
		if !hasRoom(uses, &u) {
			return uses, false
		}
		return append(uses, u), true
	}
	known := &uses[i]
	known.Count += u.Count
	if u.First.Before(known.First) {
		known.First = u.First
	}
	if u.Last.After(known.Last) {
		known.Last = u.Last
	}
	return uses, true
}

// indexOf returns the index of the use that differs from u in its count and times at most, or -1.
func indexOf(uses []model.TicketUse, u *model.TicketUse) int {
	return slices.IndexFunc(uses, func(known model.TicketUse) bool {
		known.First, known.Last, known.Count = u.First, u.Last, u.Count
		return known == *u
	})
}

func hasRoom(uses []model.TicketUse, u *model.TicketUse) bool {
	refused := 0
	for i := range uses {
		if !uses[i].Served() {
			refused++
		}
	}
	return len(uses) < model.MaxTicketUses && (u.Served() || refused < maxRefusedUses)
}
