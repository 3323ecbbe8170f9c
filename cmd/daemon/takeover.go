package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"ingot/cmd/daemon/holder"
	"ingot/gitsource"
	"ingot/model"
	"ingot/reconcile"
	"ingot/reconcile/merge"
	"ingot/reconcile/report"
)

// ErrAnotherIngot is returned by Run when another Ingot that does not share the store
// acts for the same repository.
var ErrAnotherIngot = holder.ErrAnother

// takeOver makes this process the one that acts, and its records the newest of store and
// status branch. Nothing is done to any machine before. It waits for as long as the status
// branch cannot be read.
func (d *daemon) takeOver(ctx context.Context) error {
	snapshot, err := d.readBranch(ctx)
	if err != nil {
		return err
	}
	if err := d.challenge(snapshot.Holder).Run(ctx, snapshot.Holder); err != nil {
		return err
	}
	if err := d.registry.RaiseFence(ctx, snapshot.Fence); err != nil {
		return fmt.Errorf("take a fencing number above %d, which the status branch shows: %w", snapshot.Fence, err)
	}
	if err := d.merge(ctx, snapshot); err != nil {
		return err
	}
	if d.healing != nil && d.registry.Observed().Fleet.Applied != d.begun {
		return errors.New("the status branch knows a newer revision than the one that power was healed by: starting anew")
	}
	d.begin()
	d.sighted()
	d.setState(reconcile.State{})
	return nil
}

// readBranch reads the status branch, and tries again until it can be read: without it
// nobody knows whether the store has the newest records.
func (d *daemon) readBranch(ctx context.Context) (gitsource.Snapshot, error) {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		snapshot, err := d.status.Read(ctx)
		if err == nil || ctx.Err() != nil {
			d.stopHealing()
			return snapshot, ctx.Err()
		}
		why := fmt.Sprintf("the status branch cannot be read, so nobody knows whether the store is up to date: %v", err)
		d.log.Error("nothing is done yet", "err", err)
		if d.opts.Status.MirrorFirst || d.registry.Empty() {
			d.setState(reconcile.State{ObserveOnly: why})
		} else {
			d.heal(ctx, why)
		}
		if err := sleep(ctx, pause); err != nil {
			d.stopHealing()
			return snapshot, err
		}
	}
}

// heal powers bound servers on again while the status branch cannot be read, where
// status.mirrorFirst is false: the Git host may run on one of them.
func (d *daemon) heal(ctx context.Context, why string) {
	d.setState(reconcile.State{HealOnly: why})
	if d.healing != nil {
		return
	}
	d.begin()
	d.registry.KeepVersions(true)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.loop.Run(ctx, d.opts.Resync); err != nil {
			d.log.Error("power is not restored", "err", err)
		}
	}()
	d.healing = func() { cancel(); <-done }
}

// stopHealing ends what heal began, and waits for it.
func (d *daemon) stopHealing() {
	if d.healing != nil {
		d.healing()
		d.registry.KeepVersions(false)
	}
}

// sleep waits for d. It returns an error if ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// merge brings the store's records up to the newest of store and status branch.
func (d *daemon) merge(ctx context.Context, snapshot gitsource.Snapshot) error {
	observed := d.registry.Observed()
	in := merge.Input{
		Store: &observed.Records, Published: observed.Published, Now: d.clock(), Seed: rand.Text(),
	}
	for _, damage := range d.registry.Damage() {
		d.log.Error("the store has lost something", "err", damage)
		if damage.Name != "" {
			in.StoreUnreadable = append(in.StoreUnreadable, report.RecordName{Kind: report.RecordKind(damage.Bucket), Name: damage.Name})
		}
	}
	if snapshot.Exists {
		in.Branch = d.branchRecords(snapshot)
	}
	result := merge.Records(in)
	for _, e := range result.Events {
		d.log.Warn("records of store and status branch were compared",
			"reason", string(e.Reason), "object", e.Object.String(), "message", e.Message)
	}
	result.Published.Next, result.Published.Former = d.holder, snapshot.Holder
	if err := d.registry.Restore(ctx, result.Records, result.Published); err != nil {
		return fmt.Errorf("save the newest records of store and status branch: %w", err)
	}
	d.status.Expect(observed.Published.Commit)
	return nil
}

// branchRecords decodes the status branch. A file that is wrong is logged, and concerns its
// own object only.
func (d *daemon) branchRecords(snapshot gitsource.Snapshot) *report.BranchRecords {
	branch, problems := report.ReadBranch(snapshot.Files)
	for _, p := range problems {
		d.log.Error("file of the status branch cannot be used", "err", p)
	}
	for path, err := range snapshot.Skipped {
		d.log.Error("file of the status branch cannot be read", "path", path, "err", err)
		branch.Unreadable = append(branch.Unreadable, path)
	}
	branch.Head = snapshot.Head
	branch.Fence = max(branch.Fence, snapshot.Fence)
	if snapshot.Holder.ID != "" {
		branch.Holder = snapshot.Holder
	}
	if snapshot.Version.After(branch.Version) {
		branch.Version = snapshot.Version
	}
	return &branch
}

// begin tells the source which revision was applied last and what depends on it.
func (d *daemon) begin() {
	observed := d.registry.Observed()
	d.begun = observed.Fleet.Applied
	d.source.Begin(gitsource.BeginningOf(observed))
}

// challenge returns the question to theirs, the Ingot that wrote the status branch last. The store
// knows it as its last one, too, if it was killed before it noted its first push.
func (d *daemon) challenge(theirs model.Holder) *holder.Challenge {
	published := d.registry.Observed().Published
	last := published.Holder
	for _, other := range []model.Holder{published.Next, published.Former} {
		if theirs.ID == other.ID {
			last = other
		}
	}
	return &holder.Challenge{
		Branch: d.status, Ours: d.holder, Last: last,
		SharedStore: d.opts.Redis.URL != "", TakeOver: d.opts.TakeOver,
		Waiting: func(why string) { d.setState(reconcile.State{ObserveOnly: why}) },
		Clock:   d.clock, Log: d.log,
	}
}

// watch polls the status branch: an Ingot with a newer fencing number ends this one's lead,
// and one that asks whether this one is alive is answered.
func (d *daemon) watch(ctx context.Context) error {
	for sleep(ctx, d.opts.Git.Interval) == nil {
		seen, err := d.status.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			d.log.Warn("status branch cannot be read", "err", err)
			continue
		case d.newer(seen):
			d.registry.EndLead()
			return fmt.Errorf("%w: the one on host %s has written the status branch with fencing number %d",
				reconcile.ErrFenced, seen.Holder.Host, seen.Fence)
		case seen.Challenger != "" && seen.Challenger != d.holder.ID:
			d.log.Warn("another Ingot asks whether this one is alive", "challenger", seen.Challenger)
			if err := d.status.Answer(ctx, d.holder); err != nil {
				d.log.Error("the other Ingot was not answered, this is retried", "err", err)
			}
		}
		d.sighted()
	}
	return nil
}

// newer reports whether another process has written the branch after this one.
func (d *daemon) newer(seen gitsource.Sighting) bool {
	fence := d.registry.Fence()
	return seen.Fence > fence || seen.Fence == fence && seen.Holder.ID != "" && seen.Holder.ID != d.holder.ID
}

// setState sets what this process may do, and has it planned with.
func (d *daemon) setState(s reconcile.State) {
	d.mu.Lock()
	d.state = s
	d.mu.Unlock()
	d.loop.Wake()
}

// present returns what the plan has to know of this process now. Where another Ingot may
// take over from a silent one, this one stops before the other may begin.
func (d *daemon) present() reconcile.State {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.Serving = d.serving
	if after := d.opts.Status.TakeOverAfter; after > 0 && !d.seenAt.IsZero() && d.clock().Sub(d.seenAt) > after/2 {
		s.ObserveOnly = fmt.Sprintf("the status branch was not seen since %s, and another Ingot may take over after %s of silence",
			d.seenAt.Format(time.RFC3339), after)
	}
	return s
}

// sighted notes that the status branch was seen to be this Ingot's.
func (d *daemon) sighted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seenAt = d.clock()
}

// servesNow notes that machines can boot from this process from now on.
func (d *daemon) servesNow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.serving.IsZero() {
		d.serving = d.clock()
	}
}

// permit is asked before each request that changes a machine: an Ingot that may not lead any
// more, or that could not record what it does, makes none.
func (d *daemon) permit(ctx context.Context, _ model.BMCTarget, _ string) error {
	if err := d.registry.Healthy(); err != nil {
		return fmt.Errorf("nothing is asked for while the store is not healthy: %w", err)
	}
	if !d.registry.Leading() {
		return errors.New("nothing is asked for by an Ingot that does not lead")
	}
	return d.registry.Confirm(ctx)
}
