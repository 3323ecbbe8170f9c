package registry

import (
	"context"
	"fmt"

	"ingot/model"
	"ingot/model/fault"
	"ingot/registry/store"
)

// SavePublished keeps what of the store the status branch is known to show. It is in
// Observed, and has no version: nothing mirrors it, or each push would ask for the next.
func (r *Registry) SavePublished(ctx context.Context, p model.Published) error {
	var e encoder
	e.set(store.BucketPublished, publishedKey, &p)
	if e.err != nil {
		return fmt.Errorf("save what was published: %w", e.err)
	}
	fault.Point(fault.BeforePublished)
	if err := r.write(ctx, always(e.batch)); err != nil {
		return fmt.Errorf("save what was published: %w", err)
	}
	fault.Point(fault.AfterPublished)
	return nil
}
