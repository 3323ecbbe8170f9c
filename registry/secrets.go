package registry

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"ingot/model"
	"ingot/registry/store"
)

// maxPayload is the size of the largest Ignition that is kept, in bytes.
const maxPayload = 4 << 20

// CheckPayload returns an error if what a boot ticket hands out is too large to be kept:
// it may have 4 MiB.
func CheckPayload(ticketID string, payload model.Sensitive) error {
	if size := len(payload.Reveal()); size > maxPayload {
		return fmt.Errorf("save Ignition of ticket %s: it has %d bytes, allowed are %d", ticketID, size, maxPayload)
	}
	return nil
}

// sealedPayloads are the changes that keep payloads.
func (r *Registry) sealedPayloads(d *draft, payloads map[string]model.Sensitive) (b store.Batch) {
	for _, id := range slices.Sorted(maps.Keys(payloads)) {
		b = append(b, r.sealed(d, store.Key{Bucket: store.BucketPayload, Name: id}, []byte(payloads[id].Reveal()))...)
	}
	return b
}

// Payload returns what was kept for a ticket, or ErrNotFound.
func (r *Registry) Payload(_ context.Context, ticketID string) (model.Sensitive, error) {
	k := store.Key{Bucket: store.BucketPayload, Name: ticketID}
	if known, ok := r.memory.decryptedValue(k); ok {
		return known, nil
	}
	sealed := r.memory.kept(k)
	raw, err := r.open(k, sealed)
	if err != nil {
		return model.Sensitive{}, fmt.Errorf("Ignition of ticket %s: %w", ticketID, err) //nolint:staticcheck // Ignition is a name
	}
	plain := model.NewSensitive(string(raw))
	r.memory.remember(k, sealed, plain)
	return plain, nil
}

// DropPayloads forgets the Ignition of all tickets but those to keep.
func (r *Registry) DropPayloads(ctx context.Context, keep func(ticketID string) bool) error {
	var e encoder
	for _, id := range r.memory.sealedNames(store.BucketPayload) {
		if !keep(id) {
			e.drop(id, store.BucketPayload)
		}
	}
	if err := r.write(ctx, always(e.batch)); err != nil {
		return fmt.Errorf("drop Ignition of spent tickets: %w", err)
	}
	return nil
}

// sealed is the change that keeps a value sealed, none if it is kept already: no two seals
// of it are alike.
func (r *Registry) sealed(d *draft, k store.Key, plain []byte) store.Batch {
	if sealed := d.sealed(k); sealed != nil {
		if old, err := r.sealer.open(k, sealed); err == nil && bytes.Equal(old, plain) {
			return nil
		}
	}
	return store.Batch{{Key: k, Value: r.sealer.seal(k, plain)}}
}

// open returns what was sealed, or ErrNotFound when nothing was.
func (r *Registry) open(k store.Key, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, ErrNotFound
	}
	return r.sealer.open(k, sealed)
}
