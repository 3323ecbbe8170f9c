package lease

import (
	"net/netip"
	"slices"

	"ingot/model"
)

// maxNth is how many leases of a kind one network interface has on a link at most.
const maxNth = 8

// deviceID is what a lease belongs to. That is a network interface by its MAC address, and
// by a number where the interface has several at once (RFC 8415 §12); or, of a client whose
// MAC address nothing shows, an identity association. The zero deviceID is nobody's.
type deviceID struct {
	client
	nth int
}

// client is a network interface by its MAC address, or an identity association by the client
// identifier, which has no colons, and its number.
type client struct {
	id   string
	iaid uint32
}

func interfaceOf(mac string) client { return client{id: mac} }

// idOf returns the deviceID of an interface's n-th lease, or of an association if there is no
// MAC address.
func idOf(mac string, a association, nth int) deviceID {
	switch {
	case mac != "":
		return deviceID{interfaceOf(mac), nth}
	case a.clientID == "":
		return deviceID{}
	}
	return deviceID{client: client{a.clientID, a.iaid}}
}

func (q Query) device() deviceID { return idOf(q.MAC, q.association(), q.Nth) }

func deviceOf(l model.Lease) deviceID {
	if l.Declined {
		return deviceID{}
	}
	return idOf(l.MAC, association{l.ClientID, l.IAID}, l.Nth)
}

// isOf reports whether e is one of the leases of the network interface that asks.
func (e *entry) isOf(q Query) bool {
	if q.MAC == "" {
		return e.device == q.device()
	}
	return e.mac == q.MAC
}

// Nths returns which of the leases that their interface may have queries are about, all of
// one kind and of one message: the lease of which the client names the address, or that
// the association had, and of the others the first that is left. It is -1 for those for which
// none of the maxNth is left.
func (t *Table) Nths(queries []Query, names [][]netip.Addr) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	nths := make([]int, len(queries))
	var taken [maxNth]bool
	left := maxNth
	for i, q := range queries {
		if nths[i] = t.index.nthOf(q, names[i], taken); nths[i] >= 0 {
			taken[nths[i]] = true
			left--
		}
	}
	for i, q := range queries {
		if nths[i] >= 0 || left <= 0 {
			continue
		}
		left--
		if nths[i] = 0; q.MAC != "" {
			nths[i] = slices.Index(taken[:], false)
			taken[nths[i]] = true
		}
	}
	return nths
}

// Nth is Nths for one query.
func (t *Table) Nth(q Query, names []netip.Addr) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, t.index.nthOf(q, names, [maxNth]bool{}))
}
