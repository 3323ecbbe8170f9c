package registry

import (
	"context"

	"ingot/model"
)

// SavePayload keeps the Ignition that a boot ticket hands out.
func (r *Registry) SavePayload(ctx context.Context, ticketID string, ignition model.Sensitive) error {
	return r.Save(ctx, Changes{Payloads: map[string]model.Sensitive{ticketID: ignition}})
}
