package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ingot/model/fault"
	"ingot/registry/store"
)

// LeadState is who leads, as far as this process can tell.
type LeadState string

// The states of leadership.
const (
	// Leads: this process leads, and nobody else can.
	Leads LeadState = "Leads"
	// Follows: another process leads.
	Follows LeadState = "Follows"
	// StoreSilent: the store does not answer, so nobody knows.
	StoreSilent LeadState = "StoreSilent"
	// LeadEnded: this process led, and will not again.
	LeadEnded LeadState = "LeadEnded"
)

// errLeaseUnsure is the detail of a leader that could not renew its lease in time.
var errLeaseUnsure = errors.New("the lease was not renewed in time: another ingot may lead")

// LeadState returns who leads and, unless it is this process, more for people to read:
// why the store cannot be used, or who leads instead.
func (r *Registry) LeadState() (LeadState, error) {
	health := r.Healthy()
	switch {
	case r.ended.Load():
		return LeadEnded, ErrLeadershipLost
	case health != nil && !errors.Is(health, store.ErrFenced):
		return StoreSilent, health
	case r.Leading():
		return Leads, nil
	case r.Fence() != 0:
		return StoreSilent, errLeaseUnsure
	case r.led.Load():
		return LeadEnded, ErrLeadershipLost
	}
	if holder := r.holder.Load(); holder != nil && *holder != "" {
		return Follows, fmt.Errorf("another ingot leads: %s", *holder)
	}
	return Follows, errors.New("this ingot does not lead yet")
}

// EndLead gives leadership up for good in this process, as when the status branch shows
// a newer fencing number: Fence is 0 and Leading false from now on, Save and Lead
// return ErrFenced and ErrLeadershipLost, and so does Run.
func (r *Registry) EndLead() {
	r.ended.Store(true)
	if fence := r.Fence(); fence != 0 {
		r.log.Error("leadership ended", "fence", fence)
	}
	r.setFence(0)
}

// maxFence bounds the fencing numbers that are believed: they begin with the Unix time
// and grow by one for each lead.
const maxFence = 1 << 53

// RaiseFence makes our fencing number higher than above, the one that the status branch
// shows, in the store too. It is to be called after Lead and before anything is saved,
// for a store that was rolled back or lost gives out numbers anew. Where ours is higher
// already it does nothing.
func (r *Registry) RaiseFence(ctx context.Context, above uint64) error {
	if above > maxFence {
		return fmt.Errorf("no fencing number is raised above %d: no Ingot wrote that; set the status branch back to a commit before", above)
	}
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.endTurn()
	switch fence := r.Fence(); {
	case fence == 0:
		return store.ErrFenced
	case fence > above:
		return nil
	}
	if err := r.raiseFence(ctx, above); err != nil {
		r.recordHealth(err)
		return fmt.Errorf("raise the fencing number above %d: %w", above, err)
	}
	return nil
}

// raiseFence is RaiseFence, by turn.
func (r *Registry) raiseFence(ctx context.Context, above uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
	defer cancel()
	asked := time.Now()
	fault.Point(fault.BeforeCommit)
	fence, err := r.store.RaiseFence(ctx, above)
	if errors.Is(err, store.ErrLost) {
		if err = r.rewrite(ctx, err); err == nil {
			fence, err = r.store.RaiseFence(ctx, above)
		}
	}
	if err != nil {
		return err
	}
	fault.Point(fault.AfterCommit)
	r.extend(asked)
	r.setFence(fence)
	r.log.Info("the fencing number was raised", "fence", fence, "above", above)
	return nil
}
