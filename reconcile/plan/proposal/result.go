package proposal

import "ingot/model"

// Changes is what is saved at once, durably.
type Changes struct {
	Fleet       *model.FleetRecord
	Servers     []*model.ServerRecord
	BMCs        []*model.BMCRecord
	Claims      []*model.ClaimRecord
	DropClaims  []model.ClaimName
	BMCFacts    []*model.BMCFacts
	ServerFacts []*model.ServerFacts
	// Payloads are what boot tickets serve, by ticket.
	Payloads map[string]model.Sensitive

	Endpoints     []*model.EndpointRecord
	DropEndpoints []string
	// DropServers are forgotten, with all that is known of them; DropBMCFacts are BMCs that are
	// gone, whose facts would be taken for what is there should one of that name come.
	DropServers  []model.ServerName
	DropBMCFacts []model.BMCName
}
