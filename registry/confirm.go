package registry

import (
	"context"

	"ingot/registry/store"
)

// Confirm asks the store itself whether nobody leads after us, as the last thing before
// an effect on a machine: in a virtual machine that was paused no clock moved, and the
// lease seems to hold. It may be called concurrently.
func (r *Registry) Confirm(ctx context.Context) error {
	fence := r.Fence()
	if fence == 0 {
		return store.ErrFenced
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return r.store.Confirm(ctx, fence)
}
