package registry

import (
	"context"

	"ingot/model"
)

func (r *Registry) SavePayload(ctx context.Context, ticketID string, ignition model.Sensitive) error {
	return r.Save(ctx, Changes{Payloads: map[string]model.Sensitive{ticketID: ignition}})
}
