package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/world"
)

// reportBy is the next report of a projector.
func reportBy(p *Projector, in *world.Input) *model.Report {
	r, _ := p.Report(in, plan.Plan(in), 1, model.Holder{})
	return r
}

// reportOf is the first report of an input.
func reportOf(in *world.Input) *model.Report { return reportBy(new(Projector), in) }

// documentsOf are the documents of an input's first report.
func documentsOf(in *world.Input) *Documents {
	_, docs := new(Projector).Report(in, plan.Plan(in), 1, model.Holder{})
	return docs
}

// serverStatusOf is the status of a server on the status branch.
func serverStatusOf(in *world.Input, name model.ServerName) ServerStatus {
	return documentsOf(in).Get(Servers, string(name)).Status.(ServerStatus)
}

// claimConditionsOf are the conditions of a claim on the status branch.
func claimConditionsOf(in *world.Input, name model.ClaimName) []metav1.Condition {
	return documentsOf(in).Get(Claims, string(name)).Conditions()
}

func bootConfigurationOf(in *world.Input, name model.ClaimName) BootConfigurationStatus {
	return documentsOf(in).Get(BootConfigurations, string(name)).Status.(BootConfigurationStatus)
}
