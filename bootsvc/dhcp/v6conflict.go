package dhcp

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/insomniacslk/dhcp/dhcpv6"

	"ingot/bootsvc/dhcp/lease"
)

// unasked returns what the table was asked for the addresses of an answer of which nobody knows yet whether somebody
// uses them. A client that renews uses its own; an address that is derived is this client's or nobody's.
func (n service6) unasked(x *exchange6, d decision6) (all []lease.Query) {
	if !n.probes() || x.kind != dhcpv6.MessageTypeSolicit && x.kind != dhcpv6.MessageTypeRequest {
		return nil
	}
	for i, ia := range d.ias { // of which there are as many as x.ias, in their order
		if ia.lease.prefix.Bits() != 128 {
			continue
		}
		q, ok := x.query(i)
		if _, isDerived := x.derived(q); !ok || isDerived {
			continue
		}
		if q.Wish = ia.lease.prefix.Addr(); n.server.table.Unasked(q.Wish) {
			all = append(all, q)
		}
	}
	return all
}

// answerFirst6 is answerFirst for DHCPv6.
func (n service6) answerFirst6(ctx context.Context, x *exchange6, d decision6, from netip.AddrPort) bool {
	if len(n.unasked(x, d)) == 0 {
		return false
	}
	return n.server.conflicts.later(func() {
		defer n.recoverPanic(true, from)
		unused, err := n.unused6(x, d)
		if err != nil {
			n.drop6(ctx, x, from, err)
			return
		}
		n.commit6(ctx, x, unused, from)
	})
}

// unused6 returns an answer to x whose addresses nobody uses: d, or what x gets in its place. What is in use is set
// aside.
func (n service6) unused6(x *exchange6, d decision6) (decision6, error) {
	for range maxConflicts {
		uses := n.usesOf(x, n.unasked(x, d))
		switch {
		case slices.Contains(uses, usedNotOffered):
			return d, drop6InUse
		case !slices.Contains(uses, usedByOther):
			return d, nil
		}
		x.now = n.server.options.Clock()
		next, err := x.decide()
		if err != nil {
			return d, err
		}
		next.asked, next.boot, next.site = d.asked, d.boot, d.site
		d = next
	}
	if len(n.unasked(x, d)) > 0 {
		return d, drop6InUse
	}
	return d, nil
}

// usesOf finds out who uses addresses that the client is offered, of all at once.
func (n service6) usesOf(x *exchange6, queries []lease.Query) []use {
	uses := make([]use, len(queries))
	var asking sync.WaitGroup
	for i, q := range queries {
		asking.Go(func() {
			defer n.recoverPanic(true, netip.AddrPortFrom(x.peer, 0))
			uses[i] = n.lookFor(q)
		})
	}
	asking.Wait()
	return uses
}
