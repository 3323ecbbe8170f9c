package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/world"
)

// reportOf is the first report of an input.
func reportOf(in *world.Input) *model.Report {
	return NewProjector().Report(in, plan.Plan(in), 1, model.Holder{})
}

// serverStatusOf is what the status branch says of a server.
func serverStatusOf(in *world.Input, name model.ServerName) ServerStatus {
	return reportOf(in).Documents["servers/"+string(name)+".yaml"].Object.(*Document).Status.(ServerStatus)
}

// claimConditionsOf are the conditions of a claim on the status branch.
func claimConditionsOf(in *world.Input, name model.ClaimName) []metav1.Condition {
	return reportOf(in).Documents[ClaimPath(name)].Object.(*Document).Status.(ClaimStatus).Conditions
}

// bootConfigurationOf is what the status branch says of the boot of a claim's server.
func bootConfigurationOf(in *world.Input, name model.ClaimName) BootConfigurationStatus {
	ns, n := model.SplitName(name)
	return reportOf(in).Documents["serverbootconfigurations/"+ns+"/"+n+".yaml"].Object.(*Document).Status.(BootConfigurationStatus)
}
