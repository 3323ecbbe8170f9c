package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/model/fault"
	"ingot/registry/store"
)

// The names of the values in buckets with a single value.
const (
	fleetKey    = "fleet"
	sequenceKey = "sequence"
	marksKey    = "marks"
)

var sealCheckKey = store.Key{Bucket: store.BucketSeal, Name: "check"}

// Records are the decisions and observations that the reconciler saves.
type Records struct {
	*database
	sealer sealer
}

// Observed returns everything that is known, except the desired state. It is a snapshot that does not
// change, and the same pointer until something changes.
func (r *Records) Observed() *model.Observed { return r.memory.observed() }

// Changed receives a value after this process or the leader changed something.
func (r *Records) Changed() <-chan struct{} { return r.changed }

// Damage returns the records that were missing or unreadable when the store was last read and that
// memory does not have either. It is nil after Adopt. Until then holes in the store are kept, unless
// the whole store is lost, so that a new process finds the damage too.
func (r *Records) Damage() []store.Damage {
	if damage := r.damage.Load(); damage != nil {
		return slices.Clone(*damage)
	}
	return nil
}

// Changes is one Save: all of it or nothing.
type Changes struct {
	Fleet       *model.FleetRecord
	Servers     []*model.ServerRecord
	BMCs        []*model.BMCRecord
	Claims      []*model.ClaimRecord
	BMCFacts    []*model.BMCFacts
	ServerFacts []*model.ServerFacts
	Endpoints   []*model.EndpointRecord
	// Payloads has what boot tickets serve, by ticket. They are stored sealed; CheckPayload has
	// the limit of their size.
	Payloads map[string]model.Sensitive

	DeleteClaims []model.ClaimName
	DeleteBMCs   []model.BMCName
	// DeleteEndpoints names endpoints whose record is deleted. The facts of the device, which
	// DHCP writes, stay.
	DeleteEndpoints []string
	// DeleteServers names servers whose values are all deleted.
	DeleteServers  []model.ServerName
	DeleteBMCFacts []model.BMCName
}

// Save writes c durably. Unchanged values are not written. The values are not kept, so the caller may
// change them afterwards. After ErrFenced nothing was written. After other errors something may have
// been written, and the store is repaired from memory as soon as it responds.
func (r *Records) Save(ctx context.Context, c Changes) error {
	b, err := c.encode()
	if err != nil {
		return fmt.Errorf("save records: %w", err)
	}
	for id, payload := range c.Payloads {
		if err := CheckPayload(id, payload); err != nil {
			return err
		}
	}
	err = r.write(ctx, func(d *draft) (store.Batch, error) {
		return slices.Concat(b, c.endedTickets(d), r.sealer.payloads(d, c.Payloads)), nil
	})
	if err != nil {
		return fmt.Errorf("save records: %w", err)
	}
	return nil
}

// serverBuckets have the values of servers, by their names.
var serverBuckets = []store.Bucket{
	store.BucketServer, store.BucketServerFacts, store.BucketProbe, store.BucketBootState, store.BucketWipe,
	store.BucketWipeProgress, store.BucketProgress,
}

func (c *Changes) encode() (store.Batch, error) {
	var e encoder
	if c.Fleet != nil {
		e.set(store.BucketFleet, fleetKey, c.Fleet)
	}
	for _, v := range c.Servers {
		e.set(store.BucketServer, string(v.Name), v)
	}
	for _, v := range c.BMCs {
		e.set(store.BucketBMC, string(v.Name), v)
	}
	for _, v := range c.Claims {
		e.set(store.BucketClaim, string(v.Name), v)
	}
	for _, v := range c.BMCFacts {
		e.set(store.BucketBMCFacts, string(v.Name), v)
	}
	for _, v := range c.ServerFacts {
		e.set(store.BucketServerFacts, string(v.Name), v)
	}
	for _, v := range c.Endpoints {
		e.set(store.BucketEndpoint, v.Name, v)
	}
	dropAll(&e, c.DeleteClaims, store.BucketClaim)
	dropAll(&e, c.DeleteBMCs, store.BucketBMC)
	dropAll(&e, c.DeleteEndpoints, store.BucketEndpoint)
	dropAll(&e, c.DeleteServers, serverBuckets...)
	dropAll(&e, c.DeleteBMCFacts, store.BucketBMCFacts)
	return e.batch, e.err
}

// endedTickets deletes what depends on tickets that end with these changes: the progress of wipes, and
// what the tickets of deleted servers serve.
func (c *Changes) endedTickets(d *draft) store.Batch {
	var e encoder
	for _, rec := range c.Servers {
		k := store.Key{Bucket: store.BucketWipeProgress, Name: string(rec.Name)}
		wipe := drafted[model.WipeProgress](d, k)
		if wipe != nil && !(rec.Boot.Ticket.Open() && rec.Boot.Ticket.ID == wipe.Ticket) {
			e.drop(k.Name, k.Bucket)
		}
	}
	for _, name := range c.DeleteServers {
		rec := drafted[model.ServerRecord](d, store.Key{Bucket: store.BucketServer, Name: string(name)})
		if rec != nil && rec.Boot.Ticket != nil {
			e.drop(rec.Boot.Ticket.ID, store.BucketPayload)
		}
	}
	return e.batch
}

type encoder struct {
	batch store.Batch
	err   error // the first one
}

func (e *encoder) set(b store.Bucket, name string, v any) {
	k := store.Key{Bucket: b, Name: name}
	raw, err := encode(k, v)
	switch {
	case e.err != nil:
	case err != nil:
		e.err = err
	case name == "":
		e.err = fmt.Errorf("encode %s: it has no name", b)
	}
	e.batch = append(e.batch, store.Change{Key: k, Value: raw})
}

func (e *encoder) drop(name string, from ...store.Bucket) {
	for _, b := range from {
		e.batch = append(e.batch, store.Change{Key: store.Key{Bucket: b, Name: name}})
	}
}

func dropAll[N ~string](e *encoder, names []N, from ...store.Bucket) {
	for _, name := range names {
		e.drop(string(name), from...)
	}
}

func encode(k store.Key, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", k.Bucket, k.Name, err)
	}
	return raw, nil
}

// SaveMarks saves the marks of the status branch. They are in Observed.
func (r *Records) SaveMarks(ctx context.Context, m model.Marks) error {
	var e encoder
	e.set(store.BucketMarks, marksKey, &m)
	fault.Point(fault.BeforePublished)
	if err := r.write(ctx, func(*draft) (store.Batch, error) { return e.batch, e.err }); err != nil {
		return fmt.Errorf("save the marks of the status branch: %w", err)
	}
	fault.Point(fault.AfterPublished)
	return nil
}

// NotePush adds a push to the marks, in a commit with the number of the push. It returns the newest
// mark of Pushing.
func (r *Records) NotePush(ctx context.Context, add func(m *model.Marks, number uint64)) (model.Mark, error) {
	var noted model.Mark
	err := r.join(ctx, func(d *draft) (store.Batch, error) {
		m := d.memory.observed().Marks
		add(&m, r.store.Next())
		noted = m.Pushing[len(m.Pushing)-1]
		return numberedMarks(&m)
	})
	if err != nil {
		return noted, fmt.Errorf("note a push to the status branch: %w", err)
	}
	return noted, nil
}

// numberedMarks are the changes of a commit that has a number even if it changes no record.
func numberedMarks(m *model.Marks) (store.Batch, error) {
	var e encoder
	e.set(store.BucketMarks, marksKey, m)
	e.set(store.BucketSequence, sequenceKey, 0)
	return e.batch, e.err
}

// Adopt writes the records that a start decided on, and the marks of the status branch with which they
// are valid, in one commit with a number higher than above. With only set, other records are deleted.
// It ends the damage that Damage reported.
func (r *Records) Adopt(ctx context.Context, records *model.Records, only bool, m model.Marks, above uint64) error {
	err := r.raise(ctx, above)
	if err == nil {
		err = r.write(ctx, func(d *draft) (store.Batch, error) {
			marks, err := numberedMarks(&m) // a copy of the store differs by the number
			if err != nil || records == nil {
				return marks, err
			}
			c := adopted(records)
			if only {
				c.deleteOthers(&d.memory.observed().Records, records)
			}
			b, err := c.encode()
			return slices.Concat(marks, b, c.endedTickets(d)), err
		})
	}
	if err == nil {
		err = r.repair(ctx)
	}
	if err != nil {
		return fmt.Errorf("save the records that count: %w", err)
	}
	return nil
}

func adopted(r *model.Records) *Changes {
	return &Changes{
		Fleet: &r.Fleet, Servers: slices.Collect(maps.Values(r.Servers)), BMCs: slices.Collect(maps.Values(r.BMCs)),
		Claims: slices.Collect(maps.Values(r.Claims)), Endpoints: slices.Collect(maps.Values(r.Endpoints)),
	}
}

func (c *Changes) deleteOthers(stored, r *model.Records) {
	c.DeleteServers = missing(stored.Servers, r.Servers)
	c.DeleteBMCs = missing(stored.BMCs, r.BMCs)
	c.DeleteClaims = missing(stored.Claims, r.Claims)
	c.DeleteEndpoints = missing(stored.Endpoints, r.Endpoints)
}

func missing[N ~string, R any](stored, r map[N]*R) (names []N) {
	for name := range stored {
		if r[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// KeepSequence selects whether records are saved without a new number. Until the store was compared
// with the status branch it must not become newer, because it may be an older copy.
func (r *Records) KeepSequence(keep bool) { r.keepsSequence.Store(keep) }

// raise makes the numbers of further commits higher than above.
func (r *Records) raise(ctx context.Context, above uint64) error {
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.endTurn()
	r.store.Raise(above)
	return nil
}
