package adapter

import (
	"context"

	"ingot/reconcile/plan/proposal"
	"ingot/registry"
)

// Store is the registry as reconcile knows it.
type Store struct{ *registry.Records }

// Save implements reconcile.Store.
func (s Store) Save(ctx context.Context, c proposal.Changes) error {
	return s.Records.Save(ctx, registry.Changes{
		Fleet: c.Fleet, Servers: c.Servers, BMCs: c.BMCs, Claims: c.Claims,
		BMCFacts: c.BMCFacts, ServerFacts: c.ServerFacts, DeleteClaims: c.DropClaims,
		Endpoints: c.Endpoints, DeleteEndpoints: c.DropEndpoints, Payloads: c.Payloads,
		DeleteServers: c.DropServers, DeleteBMCFacts: c.DropBMCFacts,
	})
}
