package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/registry/lease"
	"ingot/registry/store"
)

// maxLeases bounds the stored DHCP leases.
const maxLeases = 1_000_000

// errLeasesFull is returned by SaveLeases if there would be more than maxLeases.
var errLeasesFull = fmt.Errorf("the store has %d leases, which is the limit", maxLeases)

// Leases are the DHCP leases. They are not in memory, because the DHCP server has them, but the endpoint
// facts that follow from them are.
type Leases struct {
	*database
	clock func() time.Time
	bound int // by turn: the store has no more leases than this
}

// Leases returns all stored leases, also ended ones, ordered by network, address and prefix length. An
// unreadable lease is logged and left out. DHCP calls it once, when it starts.
func (r *Leases) Leases(ctx context.Context) ([]model.Lease, error) {
	if err := r.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer r.endTurn()
	var leases []model.Lease
	var first error // of the unusable leases
	unusable := 0
	err := r.each(ctx, func(l *model.Lease, err error) {
		if err == nil && len(leases) == maxLeases {
			err = errLeasesFull
		}
		switch {
		case err == nil:
			leases = append(leases, *l)
			return
		case first == nil:
			first = err
		}
		unusable++
	})
	if err != nil {
		return nil, err
	}
	r.bound = len(leases) + unusable
	if unusable > 0 {
		r.metrics.corrupt.Add(float64(unusable))
		r.log.Error("stored leases cannot be used and are ignored", "count", unusable, "err", first)
	}
	slices.SortFunc(leases, lease.Compare)
	return slices.CompactFunc(leases, func(a, b model.Lease) bool { return lease.Compare(a, b) == 0 }), nil
}

// each calls visit for each stored lease, or with the error of an unreadable one. The caller has the turn.
func (r *Leases) each(ctx context.Context, visit func(*model.Lease, error)) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	err := r.store.EachLease(ctx, func(name, value []byte) {
		l, err := lease.Decode(name, value)
		visit(&l, err)
	})
	if err != nil {
		return fmt.Errorf("read leases: %w", err)
	}
	return nil
}

// SaveLeases makes leases durable, in one commit for each 4,096 of them. Of leases with the same network,
// address and prefix length the last one is valid. A lease with a zero Expires is deleted. The endpoint
// facts that follow from the leases are in Observed when it returns; a renewal does not change them.
//
// After ErrFenced nothing was written. A commit with an invalid lease, or with too many leases, is not
// made. After other errors a commit may have been made, and the caller saves its leases again.
func (r *Leases) SaveLeases(ctx context.Context, leases []model.Lease) error {
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
		if err := r.join(ctx, r.save(ctx, leases[from:to], b[from:to:to])); err != nil {
			return fmt.Errorf("save leases: %w", err)
		}
	}
	return nil
}

// save is the edit of SaveLeases; b are the stored forms of leases.
func (r *Leases) save(ctx context.Context, leases []model.Lease, b store.Batch) edit {
	now := r.clock()
	return func(d *draft) (store.Batch, error) {
		if err := r.checkRoom(ctx, b); err != nil {
			return nil, err
		}
		facts, err := d.observeLeases(leases, now)
		return append(b, facts...), err
	}
}

// checkRoom refuses new leases if there are too many. The caller has the turn. The store counts its leases
// only if the leases that were saved since the last count could reach the limit.
func (r *Leases) checkRoom(ctx context.Context, b store.Batch) error {
	if r.bound+len(b) <= maxLeases {
		r.bound += len(b)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	total, fresh, err := r.store.CountLeases(ctx, b)
	switch {
	case err != nil:
		return err
	case fresh > 0 && total+fresh > maxLeases:
		return errLeasesFull
	}
	r.bound = total + fresh
	return nil
}

// LeaseEpoch returns another number after the store was lost, and the leases with it. The DHCP server then
// saves all its leases.
func (r *Leases) LeaseEpoch() uint64 { return r.losses.Load() }

// leaseChange is the change that saves or deletes a lease.
func leaseChange(l *model.Lease) (store.Change, error) {
	name, value, err := lease.Encode(l)
	return store.Change{Key: store.Key{Bucket: store.BucketLease, Name: name}, Value: value}, err
}
