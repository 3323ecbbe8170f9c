package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/model/fault"
	"ingot/registry/store"
)

// SaveMarks keeps what is known of the status branch. It is in Observed.
func (r *Registry) SaveMarks(ctx context.Context, m model.Marks) error {
	var e encoder
	e.set(store.BucketMarks, marksKey, &m)
	if e.err != nil {
		return fmt.Errorf("save the marks of the status branch: %w", e.err)
	}
	fault.Point(fault.BeforePublished)
	if err := r.write(ctx, always(e.batch)); err != nil {
		return fmt.Errorf("save the marks of the status branch: %w", err)
	}
	fault.Point(fault.AfterPublished)
	return nil
}

// NotePush adds a push to the marks, in a commit whose number it has, and returns its mark, the
// newest of Pushing.
func (r *Registry) NotePush(ctx context.Context, add func(m *model.Marks, number uint64)) (model.Mark, error) {
	var noted model.Mark
	err := r.join(ctx, func(d *draft) (store.Batch, error) {
		m := d.memory.observed().Marks
		add(&m, r.store.Next())
		noted = m.Pushing[len(m.Pushing)-1]
		var e encoder
		e.set(store.BucketMarks, marksKey, &m)
		e.set(store.BucketSequence, sequenceKey, 0)
		return e.batch, e.err
	})
	if err != nil {
		return noted, fmt.Errorf("note a push to the status branch: %w", err)
	}
	return noted, nil
}

// Adopt writes the records that a start decided upon, and the marks of the status branch with
// which they count, in one commit that has a higher number than above. With only set, records
// that are not among them are deleted. It ends the damage that Damage reported.
func (r *Registry) Adopt(ctx context.Context, records *model.Records, only bool, m model.Marks, above uint64) error {
	err := r.raise(ctx, above)
	if err == nil {
		err = r.write(ctx, func(d *draft) (store.Batch, error) { return adopted(d, records, only, &m) })
	}
	if err == nil {
		err = r.repair(ctx)
	}
	if err != nil {
		return fmt.Errorf("save the records that count: %w", err)
	}
	return nil
}

// adopted are the changes of Adopt.
func adopted(d *draft, records *model.Records, only bool, m *model.Marks) (store.Batch, error) {
	var e encoder
	e.set(store.BucketMarks, marksKey, m)
	e.set(store.BucketSequence, sequenceKey, 0) // numbered also if no record changes: a copy of the store differs by it
	if records != nil {
		if only {
			had := &d.memory.observed().Records
			gone := missing(had.Servers, records.Servers)
			e.batch = append(e.batch, gonePayloads(d, gone)...)
			for _, name := range gone {
				e.drop(string(name), serverBuckets...)
			}
			for _, name := range missing(had.BMCs, records.BMCs) {
				e.drop(string(name), store.BucketBMC)
			}
			for _, name := range missing(had.Claims, records.Claims) {
				e.drop(string(name), store.BucketClaim)
			}
			for _, name := range missing(had.Endpoints, records.Endpoints) {
				e.drop(name, store.BucketEndpoint)
			}
		}
		setAll(&e, store.BucketServer, records.Servers)
		setAll(&e, store.BucketBMC, records.BMCs)
		setAll(&e, store.BucketClaim, records.Claims)
		setAll(&e, store.BucketEndpoint, records.Endpoints)
		e.set(store.BucketFleet, fleetKey, &records.Fleet)
		e.batch = append(e.batch, endedWipes(d, slices.Collect(maps.Values(records.Servers)))...)
	}
	return e.batch, e.err
}

// missing are the names that are in had alone.
func missing[N ~string, R any](had, has map[N]*R) (names []N) {
	for name := range had {
		if has[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

func setAll[N ~string, R any](e *encoder, b store.Bucket, records map[N]*R) {
	for name, r := range records {
		e.set(b, string(name), r)
	}
}

// KeepSequence has records be saved without a new number from now on, or ends that. Before the store
// was compared with the status branch nothing may make it count as newer: it may be an older copy.
func (r *Registry) KeepSequence(keep bool) { r.keepsSequence.Store(keep) }

// raise has what is written from now on have higher numbers than above.
func (r *Registry) raise(ctx context.Context, above uint64) error {
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.endTurn()
	r.store.Raise(above)
	return nil
}
