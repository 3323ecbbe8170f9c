package lease

import (
	"slices"
	"time"

	"ingot/model"
)

// maxShared bounds how many identity associations share one lease. Firmware has two.
const maxShared = 8

// association is who asks for a lease: an identity association of a client (RFC 8415
// §12). In DHCPv4 a client has one, 0.
//
// A MAC address has one lease on a link, so several associations may come to share it:
// OVMF has two at a time, and gives back the one while it goes on by the other. What
// one gives back the others of the client still hold. Of another client, by its client
// identifier or DUID, it is not so: a machine runs firmware, iPXE and operating system
// one after the other, so the lease is with the client that asked last, and what those
// before it give back late is no longer theirs to give. After a restart the association
// that asked last is known alone; who else renews is known again.
type association struct {
	clientID string // hexadecimal
	iaid     uint32
}

func (q Query) association() association { return association{q.ClientID, q.IAID} }

// is reports whether the client that asked is the one that asks now. A DHCPv4 client that
// shows no identifier this time is known by its MAC address alone (RFC 2131 §4.2).
func (a association) is(now association) bool {
	return a == now || now == association{}
}

// share is an association that holds a lease beside the one that asked last.
type share struct {
	iaid  uint32
	until int64 // seconds since 1970: the end that it was told
}

// shared returns who holds e beside l's association once e is the lease l.
func (e *entry) shared(l model.Lease) []share {
	if e.expires == 0 || l.Declined || l.ClientID != e.clientID {
		return nil
	}
	left := slices.DeleteFunc(e.shares, func(s share) bool { return s.iaid == l.IAID || s.until <= seconds(l.Renewed) })
	if l.IAID != e.iaid {
		left = append(left, share{e.iaid, e.expires})
	}
	return left[max(0, len(left)-maxShared):]
}

func (e *entry) isHeldBy(a association) bool {
	if e.expires == 0 {
		return e.asker.is(a)
	}
	last := association{e.clientID, e.iaid}
	return last.is(a) || a.clientID == e.clientID && slices.ContainsFunc(e.shares, func(s share) bool { return s.iaid == a.iaid })
}

// removeHolder takes a off those who hold e, and reports whether anybody is left: another
// association, or one that is just asking for e, whose lease may be being stored.
func (e *entry) removeHolder(a association, now time.Time) bool {
	e.shares = slices.DeleteFunc(e.shares, func(s share) bool { return s.iaid == a.iaid || s.until <= now.Unix() })
	last := association{e.clientID, e.iaid}
	switch n := len(e.shares); {
	case !last.is(a):
	case n > 0:
		e.iaid, e.shares = e.shares[n-1].iaid, e.shares[:n-1]
	case e.offeredUntil > now.Unix() && !e.asker.is(a):
		e.clientID, e.iaid = e.asker.clientID, e.asker.iaid
	default:
		return false
	}
	return true
}
