package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ingot/model"
)

// Pool is a pool without addresses, as the status branch shows it. It has
// no count of refused devices, for each would be a commit; metrics have them.
type Pool struct {
	Network string    `json:"network"`
	Subnet  string    `json:"subnet"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// ExhaustedPools lists the pools that had no address for the last device that asked, in
// the order of networks and subnets (H17).
func ExhaustedPools(pools []model.PoolFacts) []Pool {
	var out []Pool
	for _, p := range pools {
		if !p.Exhausted.IsZero() {
			out = append(out, Pool{
				p.Network, p.Subnet, fmt.Sprintf("none of the %d addresses of its range is left, and devices get none; widen the range, or shorten leaseTime", p.Size),
				p.Exhausted.UTC().Truncate(time.Second),
			})
		}
	}
	slices.SortFunc(out, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(a.Network, b.Network), cmp.Compare(a.Subnet, b.Subnet))
	})
	return out
}
