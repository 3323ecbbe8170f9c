package merge

import (
	"ingot/model"
	"ingot/reconcile/plan"
)

// claimWhy is why a claim has no server.
func claimWhy(in *plan.Input, name model.ClaimName) plan.Why {
	for _, c := range plan.Plan(in).Claims {
		if c.Name == name {
			return c.Why
		}
	}
	return plan.Why{Reason: "unknown"}
}
