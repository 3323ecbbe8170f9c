package plan

import (
	"ingot/model"
)

// claimWhy is why a claim has no server.
func claimWhy(in *Input, name model.ClaimName) Why {
	for _, c := range Plan(in).Claims {
		if c.Name == name {
			return c.Why
		}
	}
	return Why{Reason: "unknown"}
}
