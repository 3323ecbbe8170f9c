package bootsvc

import (
	"slices"
	"sync/atomic"
	"time"

	"ingot/model"
)

// What is worked out of tickets is remembered of at most maxBoots servers, and of at most
// maxPrevious older boots of each.
const (
	maxBoots    = 1 << 15
	maxPrevious = 4
)

// boot is what a ticket amounts to in one boot, worked out of it once since it does not
// change.
type boot struct {
	ticket *model.Ticket
	number int // as Progress counts boots
	token  model.Sensitive
	err    error // why the ticket cannot stand in a boot script, if it cannot
	// options are what its payload means for the script, once that was looked at.
	options atomic.Pointer[scriptOptions]
	script  atomic.Pointer[servedScript]
	// previous are the boots that the server had before, with this ticket and others, as far
	// as they were asked for here: only so can a token that was good once be told from one
	// that never was.
	previous []*boot
}

// servedScript is what ticketScript made of a base and options.
type servedScript struct {
	base    string
	options scriptOptions
	text    string
}

func newBoot(t *model.Ticket, token model.Sensitive) *boot {
	return &boot{ticket: t, token: token, err: checkTicket(t, token)}
}

// bootOf returns what a server's present ticket amounts to in a boot.
func (g *gate) bootOf(t *model.Ticket, number int) *boot {
	last, _ := g.boots.Get(t.UUID)
	if last != nil && last.ticket == t && last.number == number {
		return last
	}
	b := newBoot(t, g.token(t, number))
	b.number = number
	switch {
	case last == nil:
	case last.ticket.ID == t.ID && last.number == number: // written anew, which leaves what it gives as it is
		b.previous = last.previous
		b.options.Store(last.options.Load())
	default:
		b.previous = append([]*boot{{ticket: last.ticket, token: last.token}}, last.previous[:min(len(last.previous), maxPrevious-1)]...)
	}
	g.boots.Put(t.UUID, b, 1)
	return b
}

// presentBoot is the number of the boot that a server is in, as far as it was told its token.
func presentBoot(o model.TicketHolder) int {
	if p := o.Progress; p != nil && p.Ticket == o.Ticket.ID {
		return p.Boots
	}
	return 0
}

// nextBoot is the number of the boot that the server begins that is served its script now.
func nextBoot(o model.TicketHolder) int {
	if !configured(o).IsZero() {
		return presentBoot(o) + 1
	}
	return presentBoot(o)
}

// configured is when the server's configuration was fetched in its present boot.
func configured(o model.TicketHolder) time.Time {
	if p := o.Progress; p != nil && p.Ticket == o.Ticket.ID {
		return p.Configured()
	}
	return time.Time{}
}

// hadPinned reports whether an older ticket of t's server pinned a layer.
func (g *gate) hadPinned(o model.TicketHolder, name, sum string) bool {
	return slices.ContainsFunc(g.bootOf(o.Ticket, presentBoot(o)).previous, func(b *boot) bool { return layerIn(b.ticket, name, sum) != nil })
}
