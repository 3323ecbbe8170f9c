package registry

import (
	"context"
	"fmt"
	"slices"

	"ingot/model"
	"ingot/registry/lease"
	"ingot/registry/store"
)

// MaxLeases is how many DHCP leases are kept at most.
const MaxLeases = 1_000_000

// ErrLeasesFull is returned by SaveLeases when there would be more than MaxLeases.
var ErrLeasesFull = fmt.Errorf("there are %d leases, as many as are kept", MaxLeases)

// Leases returns all DHCP leases that are kept, ended ones too, sorted by network,
// address and prefix length. One that cannot be read is logged and left out. The
// registry does not hold them in memory: it is for DHCP to ask once, at its start.
func (r *Registry) Leases(ctx context.Context) ([]model.Lease, error) {
	if err := r.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer r.endTurn()
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var leases []model.Lease
	var bad leaseFaults
	err := r.store.EachLease(ctx, func(name, value []byte) {
		l, err := lease.Decode(name, value)
		switch {
		case err != nil:
			bad.add(err)
		case len(leases) == MaxLeases:
			bad.add(ErrLeasesFull)
		default:
			leases = append(leases, l)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	r.leaseBound = len(leases) + bad.count
	r.logLeaseFaults(bad)
	slices.SortFunc(leases, lease.Compare)
	return slices.CompactFunc(leases, func(a, b model.Lease) bool { return lease.Compare(a, b) == 0 }), nil
}

// leaseFaults are the leases that cannot be used: how many, and what is wrong with
// the first.
type leaseFaults struct {
	count int
	first error
}

func (f *leaseFaults) add(err error) {
	if f.count++; f.first == nil {
		f.first = err
	}
}

func (r *Registry) logLeaseFaults(bad leaseFaults) {
	if bad.count == 0 {
		return
	}
	r.metrics.corrupt.Add(float64(bad.count))
	r.log.Error("stored leases cannot be used and are ignored", "count", bad.count, "err", bad.first)
}

// SaveLeases makes DHCP leases durable, in one commit for each 4,096 of them; of
// those with the same network, address and prefix length the last counts. One
// whose Expires is zero is forgotten. What they say of the devices on bmc networks
// is in Observed's EndpointFacts when it returns; a renewal changes nothing there.
//
// Nothing was written after ErrFenced, and none of a commit after ErrLeasesFull or
// for a lease that cannot be kept. After other errors it may have been: what DHCP
// believes then is to be saved again.
func (r *Registry) SaveLeases(ctx context.Context, leases []model.Lease) error {
	b := make(store.Batch, len(leases))
	for i := range leases {
		ch, err := leaseChange(&leases[i])
		if err != nil {
			return fmt.Errorf("save leases: %w", err)
		}
		b[i] = ch
	}
	for from := 0; from < len(b); from += store.LeaseGroup {
		to := min(from+store.LeaseGroup, len(b))
		if err := r.join(ctx, r.saveLeases(ctx, leases[from:to], b[from:to:to])); err != nil {
			return fmt.Errorf("save leases: %w", err)
		}
	}
	return nil
}

// saveLeases is the edit of SaveLeases; b is how leases are stored.
func (r *Registry) saveLeases(ctx context.Context, leases []model.Lease, b store.Batch) edit {
	now := r.options.Clock()
	return func(d *draft) (store.Batch, error) {
		if err := r.checkRoom(ctx, b); err != nil {
			return nil, err
		}
		facts, err := d.observeLeases(leases, now)
		return append(b, facts...), err
	}
}

// checkRoom refuses new leases where there are too many. It is called by turn.
// The store is asked only when there might be: otherwise it is enough to know that
// there cannot be more leases than were saved since it was asked.
func (r *Registry) checkRoom(ctx context.Context, b store.Batch) error {
	if r.leaseBound+len(b) <= MaxLeases {
		r.leaseBound += len(b)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	total, fresh, err := r.store.CountLeases(ctx, b)
	switch {
	case err != nil:
		return err
	case fresh > 0 && total+fresh > MaxLeases:
		return ErrLeasesFull
	}
	r.leaseBound = total + fresh
	return nil
}

// LeaseEpoch is a number that changes when the store was lost, and leases with it:
// the registry writes again what it has in memory, but of the leases only DHCP has
// a copy. Who saves leases looks at it every few seconds, and at another number
// than before saves all that it has, until that succeeded:
//
//	if epoch := r.LeaseEpoch(); epoch != saved && r.SaveLeases(ctx, all) == nil {
//		saved = epoch
//	}
func (r *Registry) LeaseEpoch() uint64 { return r.leaseEpoch.Load() }

// leaseChange is how a lease is saved.
func leaseChange(l *model.Lease) (store.Change, error) {
	name, value, err := lease.Encode(l)
	if err != nil {
		return store.Change{}, err
	}
	return store.Change{Key: store.Key{Bucket: store.BucketLease, Name: name}, Value: value}, nil
}
