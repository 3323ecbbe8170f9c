package registry

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"ingot/model"
	"ingot/registry/store"
)

// versionField is how an encoded record begins that has a version: the field is the
// first of each record's type, and left out while it is zero.
var versionField = []byte(`{"version":"`)

// splitVersion takes the version out of an encoded record. What is left begins after
// the opening brace, and is the same for all versions of an unchanged record.
func splitVersion(raw []byte) (v model.Version, body []byte) {
	rest, found := bytes.CutPrefix(raw, versionField)
	if !found {
		return model.Version{}, bytes.TrimPrefix(raw, []byte("{"))
	}
	text, rest, found := bytes.Cut(rest, []byte(`"`))
	if !found || v.UnmarshalText(text) != nil {
		return model.Version{}, bytes.TrimPrefix(raw, []byte("{"))
	}
	return v, bytes.TrimPrefix(rest, []byte(","))
}

// withVersion returns an encoded record with its version in the place of any other.
func withVersion(raw []byte, v model.Version) []byte {
	_, body := splitVersion(raw)
	out := make([]byte, 0, len(raw)+len(versionField)+42) // for two numbers of 20 digits, and their dot
	if v.IsZero() {
		return append(append(out, '{'), body...)
	}
	out = append(append(append(out, versionField...), v.String()...), '"')
	if !bytes.HasPrefix(body, []byte("}")) {
		out = append(out, ',')
	}
	return append(out, body...)
}

// bodyOf is what of a value tells whether another one differs: a record that differs
// in its version alone was not changed.
func bodyOf(ch store.Change) []byte {
	if !ch.Bucket.IsRecord() {
		return ch.Value
	}
	_, body := splitVersion(ch.Value)
	return body
}

// versionGiven is the version that a change brings along.
func versionGiven(ch store.Change) model.Version {
	if !ch.Bucket.IsRecord() {
		return model.Version{}
	}
	v, _ := splitVersion(ch.Value)
	return v
}

// versionOf is the version of a decoded record, the zero Version of all else.
func versionOf(v any) model.Version {
	switch rec := v.(type) {
	case *model.FleetRecord:
		return rec.Version
	case *model.ServerRecord:
		return rec.Version
	case *model.BMCRecord:
		return rec.Version
	case *model.ClaimRecord:
		return rec.Version
	case *model.EndpointRecord:
		return rec.Version
	}
	return model.Version{}
}

// newest returns the highest version of the records, and the highest Seq among them,
// which may be another's.
func newest(r *model.Records) (highest model.Version, seq uint64) {
	for _, v := range r.Versions() {
		if v.After(highest) {
			highest = v
		}
		seq = max(seq, v.Seq)
	}
	return highest, seq
}

// withoutVersions returns a batch whose records have none, so that those that changed
// are given the version of the commit.
func withoutVersions(b store.Batch) store.Batch {
	out := slices.Clone(b)
	for i, ch := range out {
		if !versionGiven(ch).IsZero() {
			out[i].Value = withVersion(ch.Value, model.Version{})
		}
	}
	return out
}

// KeepVersions has records that are saved from now on keep the versions that they have, and new ones
// have none, or ends that. Before they were compared with those of the status branch, none of them
// may count as newer for what is noted of it: the store may be an older copy.
func (r *Registry) KeepVersions(keep bool) { r.keepsVersions.Store(keep) }

// datedIntents are the changes of the servers whose Intent is not dated yet. One that
// the stored record has already keeps its date: saving it again asks for no other
// publication. A new one has the date of the commit, or of the version that a record
// is restored with.
func datedIntents(d *draft, servers []*model.ServerRecord, restored bool) (store.Batch, error) {
	var e encoder
	for _, rec := range servers {
		if rec.Intent == nil || !rec.Intent.At.IsZero() {
			continue
		}
		dated, intent := *rec, *rec.Intent
		if intent.At = rec.Version; !restored || intent.At.IsZero() {
			intent.At = d.version
		}
		old := drafted[model.ServerRecord](d, store.Key{Bucket: store.BucketServer, Name: string(rec.Name)})
		if old != nil && old.Intent != nil && sameIntent(*old.Intent, intent) {
			intent.At = old.Intent.At
		}
		dated.Intent = &intent
		e.set(store.BucketServer, string(rec.Name), &dated)
	}
	if !restored {
		return withoutVersions(e.batch), e.err
	}
	return e.batch, e.err
}

func sameIntent(a, b model.Intent) bool {
	a.At = b.At
	return a == b
}

// Restore writes records as they were merged from the store and the status branch, and
// what is known of the branch since. A version that is not zero is kept, and what is changed later has a higher one. What
// is stored and not among records stays. It ends the damage that Damage reported.
func (r *Registry) Restore(ctx context.Context, records model.Records, published model.Published) error {
	c := Changes{
		Servers:   slices.Collect(maps.Values(records.Servers)),
		BMCs:      slices.Collect(maps.Values(records.BMCs)),
		Claims:    slices.Collect(maps.Values(records.Claims)),
		Endpoints: slices.Collect(maps.Values(records.Endpoints)),
	}
	if isFleet := !reflect.ValueOf(records.Fleet).IsZero(); isFleet || r.Empty() {
		c.Fleet = &records.Fleet
	}
	if err := r.restore(ctx, c, &records, published); err != nil {
		return fmt.Errorf("restore records: %w", err)
	}
	return nil
}

func (r *Registry) restore(ctx context.Context, c Changes, records *model.Records, published model.Published) error {
	b, err := c.encode()
	if err != nil {
		return err
	}
	var e encoder
	if r.Observed().Published != published {
		e.set(store.BucketPublished, publishedKey, &published)
	}
	if e.err != nil {
		return e.err
	}
	b = append(b, e.batch...)
	if err := r.raiseSeq(ctx, records); err != nil {
		return err
	}
	err = r.write(ctx, func(d *draft) (store.Batch, error) {
		intents, err := datedIntents(d, c.Servers, true)
		return append(append(slices.Clip(b), intents...), endedWipes(d, c.Servers)...), err
	})
	if err != nil {
		return err
	}
	return r.repair(ctx)
}

// raiseSeq has what is changed from now on be newer than all of records.
func (r *Registry) raiseSeq(ctx context.Context, records *model.Records) error {
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.endTurn()
	_, seq := newest(records)
	r.store.Raise(seq)
	return nil
}
