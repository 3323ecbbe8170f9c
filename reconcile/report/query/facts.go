package query

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// LeaseRows are the rows of DHCP leases as of now. Owner says which server has a MAC address,
// "" for none.
func LeaseRows(leases []model.Lease, owner func(mac string) string, now time.Time) []*Lease {
	rows := make([]*Lease, len(leases))
	for i := range leases {
		l := &leases[i]
		row := &Lease{
			Common: Common{Name: l.Address.String(), State: LeaseLive, Since: l.Since}, Network: l.Network, Role: string(l.Role), MAC: l.MAC,
			Renewed: l.Renewed, Expires: l.Expires, CircuitID: l.Relay.CircuitID, RemoteID: l.Relay.RemoteID,
		}
		if l.Relay.Address.IsValid() {
			row.Relay = l.Relay.Address.String()
		}
		if l.Bits > 0 {
			row.Name = fmt.Sprintf("%s/%d", l.Address, l.Bits)
		}
		switch {
		case !l.Expires.After(now):
			row.State = LeaseEnded
		case l.Declined:
			row.State, row.Why, row.WhySince = LeaseDeclined, "somebody else was found to use the address: it is set aside until the lease ends", l.Since
		}
		if l.MAC != "" {
			row.Server = owner(l.MAC)
		}
		rows[i] = Leases.Ready(row)
	}
	return Leases.Sorted(rows)
}

// PoolRows are the rows of DHCP pools.
func PoolRows(pools []model.PoolFacts) []*Pool {
	rows := make([]*Pool, len(pools))
	for i, p := range pools {
		row := &Pool{Common: Common{Name: p.Subnet, State: PoolHasRoom}, Network: p.Network, Size: p.Size, Used: p.Used, Refused: p.Refused}
		if !p.Exhausted.IsZero() {
			row.State, row.Since = PoolExhausted, p.Exhausted
			row.Why, row.Actor, row.WhySince = "no address of its range is left, and devices get none: widen the range, or shorten leaseTime", string(proposal.RackOperator), p.Exhausted
		}
		rows[i] = Pools.Ready(row)
	}
	return Pools.Sorted(rows)
}
