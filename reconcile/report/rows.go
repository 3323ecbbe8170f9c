package report

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// Row has the fields of all rows. Leases, pools and images are lists of the running process; the
// status branch has no documents of them.
type Row struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`
	Since   time.Time `json:"since,omitzero"`    // when State was entered
	Message string    `json:"message,omitempty"` // empty without a fault
}

// The states of a DHCP lease.
const (
	LeaseLive     = "Live"
	LeaseEnded    = "Ended"    // the address stays reserved for the device until another one needs it
	LeaseDeclined = "Declined" // another device uses the address
)

// LeaseRow is one DHCP lease. Its name is the address, or the prefix.
type LeaseRow struct {
	Row
	Network string           `json:"network"`
	Role    string           `json:"role"` // bmc or host
	MAC     string           `json:"mac,omitempty"`
	Server  model.ServerName `json:"server,omitempty"`
	Renewed time.Time        `json:"renewed,omitzero"`
	Expires time.Time        `json:"expires,omitzero"`
	// Relay is the relay of the last packet. CircuitID and RemoteID are its names for the port and for itself.
	Relay     string `json:"relay,omitempty"`
	CircuitID string `json:"circuitID,omitempty"`
	RemoteID  string `json:"remoteID,omitempty"`
}

// LeaseRows returns the rows of leases at a time, by name. Owner returns the server with a MAC address.
func LeaseRows(leases []model.Lease, owner func(mac string) model.ServerName, now time.Time) []LeaseRow {
	rows := make([]LeaseRow, len(leases))
	for i := range leases {
		l := &leases[i]
		row := LeaseRow{
			Row: Row{Name: l.Address.String(), State: LeaseLive, Since: l.Since}, Network: l.Network, Role: string(l.Role), MAC: l.MAC,
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
			row.State, row.Message = LeaseDeclined, "another device uses the address: it is not offered until the lease ends"
		}
		if l.MAC != "" {
			row.Server = owner(l.MAC)
		}
		rows[i] = row
	}
	slices.SortFunc(rows, func(a, b LeaseRow) int { return text.CompareNatural(a.Name, b.Name) })
	return rows
}

// The states of a pool.
const (
	PoolHasRoom   = "HasRoom"
	PoolExhausted = "Exhausted" // the last request got no address
)

// PoolRow is one DHCP pool. Its name is its subnet.
type PoolRow struct {
	Row
	Actor   proposal.Actor `json:"actor,omitempty"`
	Network string         `json:"network"`
	Size    uint64         `json:"size"`
	Used    uint64         `json:"used"`
	Refused uint64         `json:"refused"` // devices without an address since it was exhausted
}

// PoolRows returns the rows of pools, by name.
func PoolRows(pools []model.PoolFacts) []PoolRow {
	rows := make([]PoolRow, len(pools))
	for i, p := range pools {
		rows[i] = PoolRow{Row: Row{Name: p.Subnet, State: PoolHasRoom}, Network: p.Network, Size: p.Size, Used: p.Used, Refused: p.Refused}
		if !p.Exhausted.IsZero() {
			rows[i].Row = Row{p.Subnet, PoolExhausted, p.Exhausted, "no free address in the range: widen the range, or shorten leaseTime"}
			rows[i].Actor = proposal.RackOperator
		}
	}
	slices.SortFunc(rows, func(a, b PoolRow) int { return text.CompareNatural(a.Name, b.Name) })
	return rows
}

// The states of a blob of an image.
const (
	ImageComplete = "Complete"
	ImageFetching = "Fetching"
)

// ImageRow is one blob in the image cache. Its name is its digest.
type ImageRow struct {
	Row
	Image   string    `json:"image,omitempty"` // the image of the newest boot ticket that needs the blob
	Part    string    `json:"part,omitempty"`  // kernel, initrd, squashfs or uki
	Size    int64     `json:"size"`            // in bytes
	Fetched int64     `json:"fetched"`         // bytes in the cache
	Used    time.Time `json:"used,omitzero"`   // last access
	Pinned  bool      `json:"pinned"`          // needed by an open boot ticket, and not evicted
}
